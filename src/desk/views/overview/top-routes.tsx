// The ten routes that earned the most in the range, or were asked for most often if none earned.
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Amount, Method } from '../../parts/text.tsx';
import { Loaded, Skeleton } from '../../parts/states.tsx';
import { countText, shareText } from '../../format/numbers.ts';
import { hrefOf } from '../../router/view-addresses.ts';
import type { TopRoute, TopRoutesAnswer } from '../../wire/billing.ts';

type TopRoutesProps = {
  readonly bounds: { readonly from: string; readonly to: string };
  readonly attempt: number;
  readonly currency: string | null;
};

export function TopRoutes({ bounds, attempt, currency }: TopRoutesProps) {
  const by = currency === null ? { by: 'requests' } : { by: 'revenue', currency };
  const path = withQuery('/v1/billing/top-routes', { ...bounds, ...by, limit: 10 });
  const top = useResource<TopRoutesAnswer>(path, { attempt });
  return (
    <section class="card">
      <header class="card-head">
        <h2>Top routes</h2>
        <a href={hrefOf('routes')}>All routes</a>
      </header>
      <Loaded of={top} what="Top routes" skeleton={<Skeleton lines={6} />}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="muted nothing">No request for a protected route in this time.</p>
          ) : (
            <TopTable rows={data} currency={currency} />
          )
        }
      </Loaded>
    </section>
  );
}

function TopTable({ rows, currency }: { readonly rows: readonly TopRoute[]; readonly currency: string | null }) {
  const sizeOf = (row: TopRoute): number =>
    currency === null
      ? Object.values(row.requests).reduce((sum, each) => sum + each, 0)
      : Number(row.revenue.find((each) => each.currency === currency)?.amount ?? 0);
  const highest = Math.max(...rows.map(sizeOf));
  return (
    <table class="top">
      <thead>
        <tr>
          <th scope="col">Route</th>
          <th scope="col" class="number">
            Paid
          </th>
          <th scope="col" class="number wide-only">
            Conversion
          </th>
          <th scope="col" class="number">
            {currency === null ? 'Requests' : 'Revenue'}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.route_id} data-row>
            <th scope="row" class="a1">
              <RouteName row={row} />
              <span class="meter" aria-hidden="true">
                <span style={{ width: `${highest > 0 ? Math.max(1, (sizeOf(row) / highest) * 100) : 0}%` }} />
              </span>
            </th>
            <td class="number b2">
              {countText(row.requests.paid ?? 0)}
              <span class="narrow-only"> paid</span>
            </td>
            <td class="number wide-only">{row.conversion === null ? '–' : shareText(row.conversion)}</td>
            <td class="number a2">
              {currency === null ? (
                countText(sizeOf(row))
              ) : (
                <Amount
                  amount={row.revenue.find((each) => each.currency === currency)?.amount ?? '0'}
                  currency={currency}
                />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RouteName({ row }: { readonly row: TopRoute }) {
  if (row.route === null)
    return <span class="muted">{row.route_id === 'other' ? 'Other routes' : 'A deleted route'}</span>;
  return (
    <a class="route-name" data-open href={hrefOf('routes', row.route.id)}>
      <Method>{row.route.method}</Method>
      <code>{row.route.route_pattern}</code>
    </a>
  );
}
