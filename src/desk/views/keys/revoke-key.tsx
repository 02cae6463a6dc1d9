// Revoking a key: whoever uses it is refused from that moment on, so its name is typed first.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { Field } from '../../parts/field.tsx';
import { problemText } from '../../parts/states.tsx';
import { hourAgoText } from '../../format/moments.ts';
import type { ApiKeyView } from '../../wire/house.ts';

export function RevokeKey({ apiKey, onClose }: { readonly apiKey: ApiKeyView; readonly onClose: () => void }) {
  const { client, notices, now } = useDesk();
  const typed = useSignal('');
  const fault = useSignal<string | null>(null);
  const { id, name, last_used_at: used } = apiKey;
  const revoke = async (): Promise<void> => {
    if (typed.value.trim() !== name) return void (fault.value = 'This is not its name.');
    const outcome = await client.call('DELETE', `/v1/api-keys/${encodeURIComponent(id ?? '')}`);
    if (outcome.kind !== 'ok')
      return void (fault.value = problemText(outcome.kind === 'problem' ? outcome.problem : 'away'));
    notices.say(`The key ${name} is revoked.`);
    onClose();
  };
  return (
    <Dialog title={`Revoke ${name}?`} onClose={onClose}>
      <p>
        Whoever uses this key is refused at once, and a revoked key does not come back.{' '}
        {used === null ? 'It was never used.' : `It was last used ${hourAgoText(Date.parse(used), now())}.`}
      </p>
      <DialogForm does="Revoke key" isDanger onSend={revoke} onCancel={onClose}>
        <Field label={`Type ${name} to revoke it`} fault={fault.value}>
          {(attributes) => (
            <input
              {...attributes}
              autoComplete="off"
              spellcheck={false}
              value={typed.value}
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          )}
        </Field>
      </DialogForm>
    </Dialog>
  );
}
