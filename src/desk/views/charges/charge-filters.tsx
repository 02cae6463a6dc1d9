// The filters of the charges: states as words to press, days, and the ones that a link brought, each to be put away by itself.
import { useDesk } from '../../desk-context.ts';
import { Day } from '../../parts/day.tsx';
import { Icon } from '../../parts/icon.tsx';
import { STATES } from '../../wire/billing.ts';
import { chosenStates, type ChargeChoice, type FilterName } from './charge-filter.ts';

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

/** A filter that somebody chose elsewhere, such as the route whose charges these are. */
function Brought({ name, word, value }: { name: FilterName; word: string; value: string | null }) {
  const { router } = useDesk();
  if (value === null) return null;
  return (
    <button
      type="button"
      class="pill brought"
      aria-label={`Show all again, not only ${word.toLowerCase()} ${value}`}
      onClick={() => router.setQuery({ [name]: null })}
    >
      {word} <code>{value.length > 20 ? `${value.slice(0, 12)}…` : value}</code>
      <Icon name="close" size={14} />
    </button>
  );
}
