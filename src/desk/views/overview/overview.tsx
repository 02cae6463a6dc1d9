// The overview: what needs somebody, what was earned, what came through, where it came from, and the last charges as they happen.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Choice } from '../../parts/choice.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { AttentionAnswer, OverviewAnswer, SeriesAnswer } from '../../wire/billing.ts';
import { Attention } from './attention-list.tsx';
import { Figures } from './figures.tsx';
import { LatestCharges } from './latest-charges.tsx';
import { Latency, Traffic } from './traffic.tsx';
import { TopRoutes } from './top-routes.tsx';
import { boundsOf, RANGE_WORDS, RANGES, readRange } from './range.ts';
import { Sidecars } from './sidecars.tsx';

const EVERY_MS = 30_000;

export function OverviewView() {
  const { router, now, times } = useDesk();
  const range = readRange(router.query.value.get('range'));
  const asked = useSignal({ attempt: 0, at: 0 });
  const { attempt, at: askedAt } = asked.value;
  // The bounds move when somebody looks again, not with every drawing.
  const moment = useMoment(askedAt);
  const bounds = boundsOf(range, moment);
  const asking = { every: EVERY_MS, attempt };
  const overview = useResource<OverviewAnswer>(withQuery('/v1/billing/overview', bounds), asking);
  const series = useResource<SeriesAnswer>(withQuery('/v1/billing/series', { ...bounds, step: 'auto' }), asking);
  const attention = useResource<AttentionAnswer>('/v1/billing/attention', asking);
  const isIdle =
    overview.value !== null &&
    overview.value.routes.active + overview.value.routes.paused === 0 &&
    overview.value.revenue.length === 0;
  return (
    <>
      <PageHead title="Overview">
        <Choice
          label="Range"
          value={range}
          onChange={(value) => router.setQuery({ range: value === '24h' ? null : value }, { push: true })}
          options={RANGES.map((value) => ({ value, text: value }))}
        />
        <button
          type="button"
          class="button"
          onClick={() => {
            asked.value = { attempt: attempt + 1, at: now() };
          }}
        >
          <Icon name="refresh" size={16} />
          <span>{overview.at === null ? 'Refresh' : times.clock(overview.at)}</span>
          <span class="unseen">, refresh</span>
        </button>
      </PageHead>
      <Attention of={attention} />
      {isIdle ? (
        <FirstSteps />
      ) : (
        <div class="overview">
          <Loaded of={overview} what="The overview" skeleton={<Skeleton lines={2} tall />}>
            {(value) => <Figures overview={value} series={series.value} range={RANGE_WORDS[range]} />}
          </Loaded>
          <Loaded of={series} what="The chart" skeleton={<Skeleton lines={5} tall />}>
            {(value) => <Traffic series={value} />}
          </Loaded>
          <div class="columns">
            <TopRoutes bounds={bounds} attempt={attempt} currency={overview.value?.revenue[0]?.currency ?? null} />
            <div class="stack">
              <LatestCharges key={attempt} />
              {series.value !== null && <Latency series={series.value} overview={overview.value} />}
            </div>
          </div>
          {overview.value !== null && overview.value.sync.sidecars + overview.value.sync.stale > 0 && (
            <Sidecars attempt={attempt} uncounted={overview.value.sync.uncounted ?? 0} />
          )}
        </div>
      )}
    </>
  );
}

/** The time at which the bounds were last made: at the start, and whenever `asked` changes. */
function useMoment(asked: number): number {
  const { clock } = useDesk();
  // A minute is the smallest step that is shown.
  const minute = Math.floor(clock.value / 60_000) * 60_000;
  return Math.max(asked, minute);
}

function FirstSteps() {
  return (
    <Empty
      title="Nothing costs money yet"
      command={
        'tollgate serve --upstream http://127.0.0.1:3000 --route "GET /reports/* 0.10 USD" --pay-to 0xYourAddress'
      }
      action={
        <a class="button primary" href={`${hrefOf('routes')}?new=1`}>
          Create a route
        </a>
      }
    >
      A route says which requests cost what. Create one here, declare it in the configuration, or let an SDK register
      it. As soon as somebody pays, this page shows it.
    </Empty>
  );
}
