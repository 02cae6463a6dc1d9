// Whether a route costs anything: a switch for an admin, a word for a viewer. What was just switched can be switched back.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { State } from '../../parts/text.tsx';
import { problemText } from '../../parts/states.tsx';
import type { RouteView } from '../../wire/billing.ts';
import { nameOf, saveRoute } from './route-calls.ts';

type StatusSwitchProps = { readonly route: RouteView; readonly onSaved: (route: RouteView) => void };

export function StatusSwitch({ route, onSaved }: StatusSwitchProps) {
  const { client, notices, session } = useDesk();
  const isBusy = useSignal(false);
  const isActive = route.status === 'active';
  const turn = async (from: RouteView, status: RouteView['status'], isBack = false): Promise<void> => {
    if (isBusy.value) return;
    isBusy.value = true;
    const saved = await saveRoute(client, from, { status });
    isBusy.value = false;
    if (saved.kind === 'problem') return notices.say(problemText(saved.problem), { tone: 'bad' });
    if (saved.kind === 'conflict') {
      onSaved(saved.theirs);
      return notices.say(`${nameOf(from)} was changed meanwhile: look at it again.`, { tone: 'bad' });
    }
    onSaved(saved.route);
    notices.say(
      status === 'paused'
        ? `${nameOf(from)} is paused: it costs nothing now.`
        : `${nameOf(from)} is active: it costs again.`,
      isBack ? {} : { action: { label: 'Undo', run: () => void turn(saved.route, from.status, true) } },
    );
  };
  if (!session.isAdmin.value) return <State tone={isActive ? 'good' : 'calm'}>{route.status}</State>;
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={isActive}
      aria-label={`${nameOf(route)} costs something`}
      onClick={() => void turn(route, isActive ? 'paused' : 'active')}
    >
      <i aria-hidden="true" />
      {isActive ? 'Active' : 'Paused'}
    </button>
  );
}
