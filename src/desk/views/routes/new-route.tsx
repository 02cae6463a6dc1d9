// The dialog that makes a route: which requests, what they cost, and what that means before it is made.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { moneyText, priceFault } from '../../format/money.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { problemText } from '../../parts/states.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { CallProblem } from '../../net/client.ts';
import type { RouteView } from '../../wire/billing.ts';
import { PatternHelp } from './pattern-help.tsx';
import { nameOf, ROUTES } from './route-calls.ts';
import { bodyOf, NEW_ROUTE, WhatItCosts, WhichRequests, type RouteFaults } from './route-form.tsx';

type NewRouteProps = {
  readonly routes: readonly RouteView[];
  readonly onClose: () => void;
  readonly onMade: (route: RouteView) => void;
};

export function NewRoute({ routes, onClose, onMade }: NewRouteProps) {
  const { client, notices } = useDesk();
  const values = useSignal(NEW_ROUTE);
  const faults = useSignal<RouteFaults>({});
  const problem = useSignal<CallProblem | 'away' | null>(null);
  const isBusy = useSignal(false);
  const make = async (): Promise<void> => {
    if (isBusy.value) return;
    const { route_pattern: pattern, amount } = values.value;
    const price = priceFault(amount.trim());
    faults.value = { route_pattern: pattern.trim() === '' ? 'A path such as /reports/*.' : null, amount: price };
    if (pattern.trim() === '' || price !== null) return;
    isBusy.value = true;
    const outcome = await client.call<RouteView>('POST', ROUTES, { body: bodyOf(values.value) });
    isBusy.value = false;
    if (outcome.kind === 'ok') {
      const route = outcome.value;
      notices.say(`${nameOf(route)} costs ${moneyText(route.amount, route.currency)} from now on.`);
      return onMade(route);
    }
    problem.value = outcome.kind === 'problem' ? outcome.problem : 'away';
    if (outcome.kind === 'problem') faults.value = faultsOf(outcome.problem);
  };
  const existing = problem.value === null || problem.value === 'away' ? null : problem.value.existingId;
  const change = (next: typeof NEW_ROUTE): void => {
    values.value = next;
    problem.value = null;
  };
  return (
    <Dialog title="New route" onClose={onClose}>
      <DialogForm does="Create route" isOff={isBusy.value} onSend={make} onCancel={onClose}>
        <div>
          <WhichRequests values={values.value} faults={faults.value} onChange={change} />
          <PatternHelp pattern={values.value.route_pattern.trim()} method={values.value.method} routes={routes} />
        </div>
        <WhatItCosts values={values.value} faults={faults.value} onChange={change} />
        {problem.value !== null && (
          <p class="problem" role="alert">
            {problemText(problem.value)} {existing !== null && <a href={hrefOf('routes', existing)}>Open that route</a>}
          </p>
        )}
      </DialogForm>
    </Dialog>
  );
}

/** What is wrong with which field, as the registry's pointers name it. */
export function faultsOf(problem: CallProblem): RouteFaults {
  return Object.fromEntries(problem.errors.map(({ pointer, detail }) => [pointer.split('/')[1] ?? '', detail]));
}
