// The charges: one search that knows ids by their form, filters, rows that move while somebody looks, a sheet for one of them, and
// all of them as a file.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Pages, readCursors } from '../../parts/pages.tsx';
import { SearchForm } from '../../parts/search-form.tsx';
import { Empty, Loaded, problemText, Skeleton } from '../../parts/states.tsx';
import { Amount, ChargeState, Method, Moment } from '../../parts/text.tsx';
import { shortened } from '../../format/shortened.ts';
import { hrefOf } from '../../router/view-addresses.ts';
import type { ChargeRecord, PageOf } from '../../wire/billing.ts';
import { ChargeFilters } from './charge-filters.tsx';
import { csvFault, csvPath, isFiltered, questionOf, readChargeFilter, type ChargeChoice } from './charge-filter.ts';
import { ChargePanel } from './charge-panel.tsx';
import { mergeCharges } from './charge-merge.ts';
import { useLiveCharges } from './live-charges.ts';

const PAGE = 50;

export function ChargesView({ id }: { readonly id: string | null }) {
  const { router } = useDesk();
  const query = router.query.value;
  const filter = readChargeFilter(query);
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<ChargeRecord>>(
    withQuery('/v1/billing/charges', { ...questionOf(filter), limit: PAGE, cursor: cursors.at(-1) }),
  );
  const isLive = useSignal(true);
  const { state, changed, skipped } = useLiveCharges(isLive.value);
  const here = (charge: string | null): string => hrefOf('charges', charge) + location.search;
  const rows = rowsOf(page.value?.data ?? [], changed, cursors.length === 0 && !isFiltered(filter));
  return (
    <>
      <PageHead title="Charges">
        <button
          type="button"
          role="switch"
          class="switch"
          aria-checked={isLive.value && state !== 'absent'}
          data-state={state}
          disabled={state === 'absent'}
          onClick={() => (isLive.value = !isLive.value)}
        >
          <i aria-hidden="true" />
          {state === 'absent' ? 'Live is not to be had' : isLive.value && state === 'waiting' ? 'Connecting' : 'Live'}
        </button>
        <Csv filter={filter} />
      </PageHead>
      <SearchBox q={filter.q ?? ''} />
      <ChargeFilters filter={filter} />
      {skipped > 0 && (
        <p class="stale-note" role="status">
          {skipped} changes went by too fast to be shown.
          <button type="button" class="button small" onClick={() => void page.reload()}>
            Load again
          </button>
        </p>
      )}
      <section class="card" aria-label="Charges">
        <Loaded of={page} what="Charges" skeleton={<Skeleton lines={8} />}>
          {({ next_cursor: next }) =>
            rows.length === 0 ? (
              <NoCharges isFiltered={isFiltered(filter)} />
            ) : (
              <>
                <ChargeTable rows={rows} hrefTo={here} fresh={changed} isLoading={page.isLoading} />
                <Pages cursors={cursors} next={next} shown={rows.length} what="charges" />
              </>
            )
          }
        </Loaded>
      </section>
      {id !== null && (
        <ChargePanel
          key={id}
          id={id}
          changed={changed.find((charge) => charge.id === id) ?? null}
          onClose={() => router.go(here(null), { replace: true, state: router.state.value })}
        />
      )}
    </>
  );
}

/** New charges join only a first page without filters: whether they match a filter is the registry's to say. */
function rowsOf(
  listed: readonly ChargeRecord[],
  changed: readonly ChargeRecord[],
  mayJoin: boolean,
): readonly ChargeRecord[] {
  const known = new Set(listed.map(({ id }) => id));
  const newest = listed[0]?.created_at ?? '';
  return mergeCharges(
    listed,
    changed.filter(({ id, created_at: at }) => known.has(id) || (mayJoin && at >= newest)),
  );
}

function SearchBox({ q }: { readonly q: string }) {
  const { router } = useDesk();
  const search = (text: string): void => router.setQuery({ q: text });
  return (
    <SearchForm
      value={q}
      label="Search charges"
      placeholder="Charge id, request id, payer or transaction"
      onSearch={search}
      onEmptied={() => router.setQuery({ q: null })}
      onPasted={search}
    />
  );
}

function Csv({ filter }: { readonly filter: ChargeChoice }) {
  const { client, notices } = useDesk();
  const isBusy = useSignal(false);
  const download = async (): Promise<void> => {
    const fault = csvFault(filter);
    if (fault !== null) return notices.say(fault, { tone: 'bad' });
    isBusy.value = true;
    const outcome = await client.call<{ url: string }>('POST', '/desk/downloads', { body: { path: csvPath(filter) } });
    isBusy.value = false;
    if (outcome.kind !== 'ok')
      return notices.say(problemText(outcome.kind === 'problem' ? outcome.problem : 'away'), { tone: 'bad' });
    const link = document.createElement('a');
    link.href = outcome.value.url;
    link.download = '';
    link.click();
  };
  return (
    <button type="button" class="button" disabled={isBusy.value} onClick={() => void download()}>
      <Icon name="download" size={16} />
      CSV
    </button>
  );
}

function NoCharges({ isFiltered }: { readonly isFiltered: boolean }) {
  const { router } = useDesk();
  if (isFiltered)
    return (
      <Empty
        title="No charge is like that"
        action={
          <button type="button" class="button" onClick={() => router.go(hrefOf('charges'))}>
            Show all charges
          </button>
        }
      />
    );
  return (
    <Empty title="Nobody has paid yet" command="npm run pay -- http://127.0.0.1:8402/reports/7">
      A charge appears here as soon as somebody pays. To see one, pay for a request of yours with test money:
    </Empty>
  );
}

type ChargeTableProps = {
  readonly rows: readonly ChargeRecord[];
  readonly fresh: readonly ChargeRecord[];
  readonly hrefTo: (id: string) => string;
  readonly isLoading: boolean;
};

function ChargeTable({ rows, fresh, hrefTo, isLoading }: ChargeTableProps) {
  const news = new Set(fresh.map(({ id }) => id));
  return (
    <table class="rows charges" aria-busy={isLoading}>
      <thead>
        <tr>
          <th scope="col">Charge</th>
          <th scope="col" class="number">
            Amount
          </th>
          <th scope="col">State</th>
          <th scope="col" class="wide-only">
            Payer
          </th>
          <th scope="col" class="middle-only">
            Network
          </th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((charge) => (
          <tr key={charge.id} data-row class={news.has(charge.id) ? 'fresh' : ''}>
            <th scope="row" class="a1">
              <a class="route-name" data-open href={hrefTo(charge.id)}>
                <Method>{charge.method}</Method>
                <code>{charge.path}</code>
              </a>
            </th>
            <td class="number a2">
              <Amount amount={charge.amount} currency={charge.currency} />
            </td>
            <td class="b1">
              <ChargeState status={charge.status} owed={charge.owed} />
            </td>
            <td class="wide-only">
              <code title={charge.payer}>{shortened(charge.payer, 6, 4)}</code>
            </td>
            <td class="middle-only muted">{charge.network_name ?? charge.network}</td>
            <td class="b2 muted">
              <Moment at={charge.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
