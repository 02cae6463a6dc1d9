// The filters of the charges: states as words to press, days, and the ones that a link brought, each to be put away by itself.
import { useDesk } from '../../desk-context.ts';
import { Brought } from '../../parts/brought.tsx';
import { Day } from '../../parts/day.tsx';
import { STATES } from '../../wire/billing.ts';
import { chosenStates, type ChargeChoice } from './charge-filter.ts';

export function ChargeFilters({ filter }: { readonly filter: ChargeChoice }) {
  const { router } = useDesk();
  const chosen = chosenStates(filter.status);
  const toggle = (state: string): void => {
    const next = chosen.includes(state) ? chosen.filter((each) => each !== state) : [...chosen, state];
    router.setQuery({ status: next.length === 0 ? null : next.join(',') });
  };
  return (
    <div class="filters">
      <div class="pills" role="group" aria-label="States">
        {STATES.map((state) => (
          <button
            key={state}
            type="button"
            class="pill"
            aria-pressed={chosen.includes(state)}
            onClick={() => toggle(state)}
          >
            {state}
          </button>
        ))}
        <button
          type="button"
          class="pill"
          aria-pressed={filter.owed === 'true'}
          onClick={() => router.setQuery({ owed: filter.owed === 'true' ? null : 'true' })}
        >
          owed
        </button>
      </div>
      <div class="days">
        <Day name="from" label="From" value={filter.from} />
        <Day name="to" label="To" value={filter.to} />
      </div>
      <Brought name="route_id" word="Route" value={filter.route_id} />
      <Brought name="network" word="Network" value={filter.network} />
      <Brought name="currency" word="Currency" value={filter.currency} />
    </div>
  );
}
