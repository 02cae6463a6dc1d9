// Deleting a route: asked once, and where it earned something in thirty days its pattern has to be typed.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { Field } from '../../parts/field.tsx';
import { problemText } from '../../parts/states.tsx';
import type { RouteView } from '../../wire/billing.ts';
import { nameOf, ROUTES } from './route-calls.ts';

type DeleteRouteProps = { readonly route: RouteView; readonly onClose: () => void; readonly onDeleted: () => void };

const THIRTY_DAYS_MS = 30 * 86_400_000;

export function DeleteRoute({ route, onClose, onDeleted }: DeleteRouteProps) {
  const { client, notices, now } = useDesk();
  const from = new Date(Math.floor((now() - THIRTY_DAYS_MS) / 3_600_000) * 3_600_000).toISOString();
  const earned = useResource<{ readonly data: readonly { readonly charges: number }[] }>(
    withQuery('/v1/billing/summary', { route_id: route.id, from, bucket: 'day' }),
  );
  const typed = useSignal('');
  const fault = useSignal<string | null>(null);
  const charges = earned.value?.data.reduce((sum, each) => sum + each.charges, 0) ?? null;
  // What cannot be known is treated as if it earned.
  const mustType = charges !== 0;
  const isKnown = charges !== null || earned.problem !== null;
  const remove = async (): Promise<void> => {
    if (mustType && typed.value.trim() !== route.route_pattern) {
      fault.value = 'This is not its pattern.';
      return;
    }
    const outcome = await client.call('DELETE', `${ROUTES}/${route.id}`);
    if (outcome.kind === 'ok' || (outcome.kind === 'problem' && outcome.problem.status === 404)) {
      notices.say(`${nameOf(route)} is deleted: its requests cost nothing now.`);
      return onDeleted();
    }
    fault.value = problemText(outcome.kind === 'problem' ? outcome.problem : 'away');
  };
  return (
    <Dialog title="Delete this route?" onClose={onClose}>
      <p>
        Requests to <code>{nameOf(route)}</code> will cost nothing from now on. To charge again later, pause it instead.
      </p>
      <DialogForm does="Delete route" isDanger isOff={!isKnown} onSend={remove} onCancel={onClose}>
        {isKnown && mustType && (
          <Field
            label={`Type ${route.route_pattern} to delete it`}
            fault={fault.value}
            hint={charges === null ? '' : `It was paid for ${charges} times in the last 30 days.`}
          >
            {(attributes) => (
              <input
                {...attributes}
                class="mono"
                autoComplete="off"
                spellcheck={false}
                value={typed.value}
                onInput={(event) => (typed.value = event.currentTarget.value)}
              />
            )}
          </Field>
        )}
        {!mustType && fault.value !== null && <p class="fault">{fault.value}</p>}
      </DialogForm>
    </Dialog>
  );
}
