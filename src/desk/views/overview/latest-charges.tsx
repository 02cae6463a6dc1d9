// The last five charges, as they happen.
import { useResource } from '../../net/resource.ts';
import { Amount, ChargeState, Moment, State } from '../../parts/text.tsx';
import { Loaded, Skeleton } from '../../parts/states.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { ChargeRecord, PageOf } from '../../wire/billing.ts';
import { mergeCharges } from '../charges/charge-merge.ts';
import { useLiveCharges } from '../charges/live-charges.ts';

const SHOWN = 5;

export function LatestCharges() {
  const page = useResource<PageOf<ChargeRecord>>(`/v1/billing/charges?limit=${SHOWN}`);
  const { state, changed } = useLiveCharges(true);
  return (
    <section class="card">
      <header class="card-head">
        <h2>Latest charges</h2>
        {state === 'on' && <State tone="good">live</State>}
        <a href={hrefOf('charges')}>All charges</a>
      </header>
      <Loaded of={page} what="Charges" skeleton={<Skeleton lines={5} />}>
        {({ data }) => {
          const rows = mergeCharges(data, changed).slice(0, SHOWN);
          return rows.length === 0 ? (
            <p class="muted nothing">Nobody has paid yet.</p>
          ) : (
            <ul class="latest">
              {rows.map((charge) => (
                <LatestCharge key={charge.id} charge={charge} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </section>
  );
}

function LatestCharge({ charge }: { readonly charge: ChargeRecord }) {
  return (
    <li>
      <a href={hrefOf('charges', charge.id)}>
        <code>{charge.path}</code>
        <Amount amount={charge.amount} currency={charge.currency} />
        <ChargeState status={charge.status} owed={charge.owed} />
        <span class="muted">
          <Moment at={charge.created_at} ago />
        </span>
      </a>
    </li>
  );
}
