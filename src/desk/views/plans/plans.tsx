// The plans by which routes are sold: what each one decides, what it earned and gave away in a time, and who need not pay. They
// are changed in the configuration alone.
import { useDesk } from '../../desk-context.ts';
import { countText } from '../../format/numbers.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Choice } from '../../parts/choice.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Amount, Moment, State } from '../../parts/text.tsx';
import type { PlansAnswer, PlanView } from '../../wire/sold-plans.ts';
import { boundsOf, RANGES, readRange } from '../overview/range.ts';
import { Counts, type Count } from './counts.tsx';
import { Customers } from './plan-customers.tsx';

const MINUTE_MS = 60_000;

const EXAMPLE = `selling:
  plans:
    - id: default
      customers: [partners]
      free: { requests: 50, window: day }
  customers:
    - { id: partners, header: X-Api-Key, keys_file: partners.txt }`;

export function PlansView() {
  const { router, clock } = useDesk();
  const range = readRange(router.query.value.get('range'));
  // The bounds move once a minute, not with every drawing.
  const bounds = boundsOf(range, Math.floor(clock.value / MINUTE_MS) * MINUTE_MS);
  const plans = useResource<PlansAnswer>(withQuery('/v1/billing/plans', bounds), { every: 30_000 });
  return (
    <>
      <PageHead
        title="Plans"
        about="How routes are sold besides their price. They are changed in the configuration alone."
      >
        <Choice
          label="Range"
          value={range}
          onChange={(value) => router.setQuery({ range: value === '24h' ? null : value }, { push: true })}
          options={RANGES.map((value) => ({ value, text: value }))}
        />
      </PageHead>
      <Loaded of={plans} what="Plans" skeleton={<Skeleton lines={6} tall />}>
        {({ data, customers }) =>
          data.length + customers.length === 0 ? (
            <Empty title="No plans" command={EXAMPLE}>
              Every request of a route costs its price, from everybody. A plan lets customers of yours pass, gives some
              requests away, or shows in a dry run what would be earned. Declare one in the configuration of the proxy.
            </Empty>
          ) : (
            <div class="stack">
              {data.map((plan) => (
                <Plan key={plan.id} plan={plan} />
              ))}
              {customers.map((entry) => (
                <Customers key={entry.id} entry={entry} />
              ))}
            </div>
          )
        }
      </Loaded>
    </>
  );
}

function Plan({ plan }: { readonly plan: PlanView }) {
  const { id, sells, known, observing, observe_until: until, routes, requests, revenue } = plan;
  const counts: readonly Count[] = [
    ...revenue.map(({ currency, amount }): Count => ['earned', <Amount amount={amount} currency={currency} />]),
    ...plan.would_charge.map(({ currency, amount }): Count => [
      'would have been earned',
      <Amount amount={amount} currency={currency} />,
    ]),
    ...OUTCOMES.flatMap(([outcome, text]): Count[] => {
      const count = requests[outcome] ?? 0;
      return count === 0 && !ALWAYS.has(outcome) ? [] : [[text, countText(count)]];
    }),
  ];
  return (
    <section class="card" aria-label={`Plan ${id}`}>
      <header class="card-head">
        <h2>{id}</h2>
        {!known && <State tone="warn">not configured here</State>}
        {observing && (
          <span class="tag warned">
            dry run until <Moment at={until} />
          </span>
        )}
        <p class="muted">
          {countText(routes)} {routes === 1 ? 'route' : 'routes'}
        </p>
      </header>
      <p class="plan-words">
        {sells === null
          ? 'Proxies elsewhere may sell by it; a proxy that does not know it answers 503.'
          : `${sells.charAt(0).toUpperCase()}${sells.slice(1)}.`}
      </p>
      <Counts of={counts} label={`Requests of the plan ${id}`} />
    </section>
  );
}

/** Outcomes of requests in words, in the order in which they are shown. */
const OUTCOMES = [
  ['paid', 'paid'],
  ['payment_required', '402 shown'],
  ['customer', 'of customers'],
  ['quota', 'free'],
  ['pass', 'by pass'],
  ['observed', 'in a dry run'],
  ['refused', 'refused'],
  ['error', 'failed'],
] as const;
const ALWAYS: ReadonlySet<string> = new Set(['paid', 'payment_required']);
