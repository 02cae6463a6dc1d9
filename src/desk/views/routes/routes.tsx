// The routes: what is protected, what it costs, what it brings. The filter stands in the address, pages come from the registry's
// cursor, and the way back through them is kept with the entry of the history.
import { useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource, type Resource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Pages, readCursors } from '../../parts/pages.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Amount, Method, Moment } from '../../parts/text.tsx';
import { countText } from '../../format/numbers.ts';
import { hrefOf } from '../../router/view-addresses.ts';
import { boundsOf } from '../overview/range.ts';
import type { PageOf, RouteView, TopRoute, TopRoutesAnswer } from '../../wire/billing.ts';
import { NewRoute } from './new-route.tsx';
import { PriceCell } from './price-cell.tsx';
import { ROUTES } from './route-calls.ts';
import { readRouteFilter } from './route-filter.ts';
import { RoutePanel } from './route-panel.tsx';
import { StatusSwitch } from './status-switch.tsx';

const PAGE = 100;

export function RoutesView({ id }: { readonly id: string | null }) {
  const { router, session } = useDesk();
  const query = router.query.value;
  const filter = query.get('filter') ?? '';
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<RouteView>>(
    withQuery(ROUTES, { ...readRouteFilter(filter), limit: PAGE, cursor: cursors.at(-1) }),
  );
  const here = (route: string | null): string =>
    hrefOf('routes', route) + (filter === '' ? '' : `?filter=${encodeURIComponent(filter)}`);
  const replace = (next: RouteView): void => {
    if (page.value !== null)
      page.put({ ...page.value, data: page.value.data.map((route) => (route.id === next.id ? next : route)) });
  };
  const isNew = query.get('new') === '1' && session.isAdmin.value;
  const close = (): void => router.go(here(null), { replace: true, state: router.state.value });
  return (
    <>
      <PageHead title="Routes">
        {session.isAdmin.value && (
          <button
            type="button"
            class="button primary"
            data-new
            onClick={() => router.setQuery({ new: '1' }, { push: true })}
          >
            <Icon name="plus" size={16} />
            New route
          </button>
        )}
      </PageHead>
      <FilterBox filter={filter} />
      <section class="card" aria-label="Routes">
        <Loaded of={page} what="Routes" skeleton={<Skeleton lines={8} />}>
          {({ data, next_cursor: next }) =>
            data.length === 0 ? (
              <NoRoutes isFiltered={filter !== ''} />
            ) : (
              <>
                <RouteTable routes={data} hrefTo={here} onSaved={replace} isLoading={page.isLoading} />
                <Pages cursors={cursors} next={next} shown={data.length} what="routes" />
              </>
            )
          }
        </Loaded>
      </section>
      {id !== null && (
        <RoutePanel
          key={id}
          id={id}
          onClose={close}
          onChanged={replace}
          onDeleted={() => {
            close();
            void page.reload();
          }}
        />
      )}
      {isNew && (
        <NewRoute
          routes={page.value?.data ?? []}
          onClose={() => router.setQuery({ new: null })}
          onMade={() => {
            router.setQuery({ new: null });
            void page.reload();
          }}
        />
      )}
    </>
  );
}

function FilterBox({ filter }: { readonly filter: string }) {
  const { router } = useDesk();
  const field = useRef<HTMLInputElement>(null);
  return (
    <div class="toolbar" role="search">
      <div class="search">
        <Icon name="filter" />
        <input
          ref={field}
          type="search"
          data-search
          aria-label="Filter routes"
          placeholder="status:paused method:GET source:config or words of a pattern or name"
          spellcheck={false}
          autoComplete="off"
          value={filter}
          onInput={(event) => router.setQuery({ filter: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === 'Escape') field.current?.blur();
          }}
        />
        <kbd aria-hidden="true">/</kbd>
      </div>
    </div>
  );
}

function NoRoutes({ isFiltered }: { readonly isFiltered: boolean }) {
  const { router, session } = useDesk();
  if (isFiltered)
    return (
      <Empty
        title="No route is like that"
        action={
          <button type="button" class="button" onClick={() => router.setQuery({ filter: null })}>
            Show all routes
          </button>
        }
      />
    );
  return (
    <Empty
      title="No routes yet"
      command={
        'tollgate serve --upstream http://127.0.0.1:3000 --route "GET /reports/* 0.10 USD" --pay-to 0xYourAddress'
      }
      action={
        session.isAdmin.value && (
          <button type="button" class="button primary" onClick={() => router.setQuery({ new: '1' }, { push: true })}>
            Create a route
          </button>
        )
      }
    >
      A route says which requests cost what. Create one here, declare it under <code>routes</code> in the configuration,
      or start with one:
    </Empty>
  );
}

type RouteTableProps = {
  readonly routes: readonly RouteView[];
  readonly hrefTo: (id: string) => string;
  readonly onSaved: (route: RouteView) => void;
  readonly isLoading: boolean;
};

function RouteTable({ routes, hrefTo, onSaved, isLoading }: RouteTableProps) {
  const { clock } = useDesk();
  const hour = Math.floor(clock.value / 60_000) * 60_000;
  const began = useSignal(hour);
  const top = useResource<TopRoutesAnswer>(
    withQuery('/v1/billing/top-routes', { ...boundsOf('24h', began.value), by: 'requests', limit: 100 }),
  );
  return (
    <table class="rows routes" aria-busy={isLoading}>
      <thead>
        <tr>
          <th scope="col">Route</th>
          <th scope="col" class="number">
            Price
          </th>
          <th scope="col">Status</th>
          <th scope="col" class="number wide-only">
            Paid, 24 h
          </th>
          <th scope="col" class="number">
            Revenue, 24 h
          </th>
          <th scope="col" class="middle-only">
            Source
          </th>
          <th scope="col" class="middle-only">
            Changed
          </th>
        </tr>
      </thead>
      <tbody>
        {routes.map((route) => (
          <tr key={route.id} data-row>
            <th scope="row" class="a1">
              <a class="route-name" data-open href={hrefTo(route.id)}>
                <Method>{route.method}</Method>
                <span>
                  <code>{route.route_pattern}</code>
                  {route.name !== null && <span class="muted">{route.name}</span>}
                </span>
              </a>
            </th>
            <td class="number a2">
              <PriceCell route={route} onSaved={onSaved} />
            </td>
            <td class="b1">
              <StatusSwitch route={route} onSaved={onSaved} />
            </td>
            <Earned top={top} id={route.id} />
            <td class="middle-only muted">{route.source ?? '–'}</td>
            <td class="middle-only muted">
              <Moment at={route.updated_at} ago />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const LISTED = 100;

/** What a route brought in a day. A route that is not among the hundred busiest is only known to be idle if they are fewer. */
function Earned({ top, id }: { readonly top: Resource<TopRoutesAnswer>; readonly id: string }) {
  const rows = top.value?.data;
  const row: TopRoute | undefined = rows?.find((each) => each.route_id === id);
  const unknown = rows === undefined || (row === undefined && rows.length >= LISTED);
  return (
    <>
      <td class="number wide-only">{unknown ? <span class="muted">–</span> : countText(row?.requests.paid ?? 0)}</td>
      <td class="number b2">
        {row === undefined || row.revenue.length === 0 ? (
          <span class="muted">{unknown ? '–' : '0.00'}</span>
        ) : (
          row.revenue.map(({ amount, currency }) => <Amount key={currency} amount={amount} currency={currency} />)
        )}
      </td>
    </>
  );
}
