// The passes that were sold: newest first, found by payer, plan and life, with what is left of each, and a sheet for one of them.
import { useDesk } from '../../desk-context.ts';
import { shortened } from '../../format/shortened.ts';
import { withQuery } from '../../net/query.ts';
import { useResource } from '../../net/resource.ts';
import { Brought } from '../../parts/brought.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Pages, readCursors } from '../../parts/pages.tsx';
import { SearchForm } from '../../parts/search-form.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Amount, Moment } from '../../parts/text.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { PageOf } from '../../wire/billing.ts';
import type { PassRecord } from '../../wire/sold-passes.ts';
import { PassPanel } from './pass-panel.tsx';
import { PassState } from './pass-state.tsx';
import { leftText, readPassSearch } from './pass-words.ts';

const PAGE = 50;
const EXAMPLE = `selling:
  plans:
    - id: default
      passes: [{ id: hundred, amount: "0.50", uses: 100 }]`;

export function PassesView({ id }: { readonly id: string | null }) {
  const { router } = useDesk();
  const query = router.query.value;
  const [plan, pass, payer, live] = ['plan', 'pass', 'payer', 'live'].map((name) => query.get(name));
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<PassRecord>>(
    withQuery('/v1/billing/passes', { plan, pass, payer, live, limit: PAGE, cursor: cursors.at(-1) }),
  );
  const here = (passId: string | null): string => hrefOf('passes', passId) + location.search;
  const isFiltered = [plan, pass, payer, live].some((value) => value !== null);
  return (
    <>
      <PageHead title="Passes" about="What was sold beforehand, and what is left of it." />
      <PassSearch payer={payer ?? ''} />
      <div class="filters">
        <div class="pills" role="group" aria-label="Life">
          {LIVES.map(([value, text]) => (
            <button
              key={value}
              type="button"
              class="pill"
              aria-pressed={live === value}
              onClick={() => router.setQuery({ live: live === value ? null : value })}
            >
              {text}
            </button>
          ))}
        </div>
        <Brought name="plan" word="Plan" value={plan ?? null} />
        <Brought name="pass" word="Pass" value={pass ?? null} />
      </div>
      <section class="card" aria-label="Passes">
        <Loaded of={page} what="Passes" skeleton={<Skeleton lines={8} />}>
          {({ data, next_cursor: next }) =>
            data.length === 0 ? (
              <NoPasses isFiltered={isFiltered} />
            ) : (
              <>
                <PassTable rows={data} hrefTo={here} isLoading={page.isLoading} />
                <Pages cursors={cursors} next={next} shown={data.length} what="passes" />
              </>
            )
          }
        </Loaded>
      </section>
      {id !== null && (
        <PassPanel
          key={id}
          id={id}
          onChanged={() => void page.reload()}
          onClose={() => router.go(here(null), { replace: true, state: router.state.value })}
        />
      )}
    </>
  );
}

const LIVES = [
  ['true', 'live'],
  ['false', 'over'],
] as const;

function PassSearch({ payer }: { readonly payer: string }) {
  const { router } = useDesk();
  const find = (text: string): void => {
    const wanted = readPassSearch(text);
    if ('id' in wanted) router.go(hrefOf('passes', wanted.id) + location.search);
    else router.setQuery(wanted);
  };
  return (
    <SearchForm
      value={payer}
      label="Search passes"
      placeholder="Payer, pass id or charge id"
      onSearch={find}
      onEmptied={() => router.setQuery({ payer: null })}
    />
  );
}

function NoPasses({ isFiltered }: { readonly isFiltered: boolean }) {
  const { router } = useDesk();
  if (isFiltered)
    return (
      <Empty
        title="No pass is like that"
        action={
          <button type="button" class="button" onClick={() => router.go(hrefOf('passes'))}>
            Show all passes
          </button>
        }
      />
    );
  return (
    <Empty title="No passes were sold yet" command={EXAMPLE}>
      A pass is bought once and used often: a number of requests, a time, or credit. Offer one in a plan of the proxy’s
      configuration:
    </Empty>
  );
}

type PassTableProps = {
  readonly rows: readonly PassRecord[];
  readonly hrefTo: (id: string) => string;
  readonly isLoading: boolean;
};

function PassTable({ rows, hrefTo, isLoading }: PassTableProps) {
  return (
    <table class="rows charges" aria-busy={isLoading}>
      <thead>
        <tr>
          <th scope="col">Pass</th>
          <th scope="col" class="number">
            Left
          </th>
          <th scope="col">State</th>
          <th scope="col" class="wide-only">
            Payer
          </th>
          <th scope="col" class="middle-only number">
            Price
          </th>
          <th scope="col">Sold</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id} data-row>
            <th scope="row" class="a1">
              <a class="route-name" data-open href={hrefTo(row.id)}>
                <strong>{row.pass}</strong>
                <code>{row.plan}</code>
              </a>
            </th>
            <td class="number a2">{leftText(row) ?? <Until at={row.ends_at} />}</td>
            <td class="b1">
              <PassState status={row.status} />
            </td>
            <td class="wide-only">
              <code title={row.payer}>{shortened(row.payer, 6, 4)}</code>
            </td>
            <td class="middle-only number">
              <Amount amount={row.amount} currency={row.currency} />
            </td>
            <td class="b2 muted">
              <Moment at={row.sold_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Until({ at }: { readonly at: string }) {
  return (
    <>
      until <Moment at={at} />
    </>
  );
}
