// The large chart of the overview, revenue or requests by outcome, and the small one of the time that Tollgate adds.
import { useSignal } from '@preact/signals';
import { TimeChart, type ChartSeries } from '../../charts/time-chart.tsx';
import { axisAmount, moneyText } from '../../format/money.ts';
import { countText, millisecondsText, shortCount } from '../../format/numbers.ts';
import { Choice } from '../../parts/choice.tsx';
import { OUTCOMES, type OutcomeName, type OverviewAnswer, type SeriesAnswer } from '../../wire/billing.ts';

const OUTCOME_WORDS: Readonly<Record<OutcomeName, string>> = {
  ...{ paid: 'Paid', free: 'Free', payment_required: '402 shown', refused: 'Refused', error: 'Failed' },
  ...{ customer: 'Customers', quota: 'Free by plan', pass: 'By pass', observed: 'Dry run' },
};
const OUTCOME_TONES: Readonly<Record<OutcomeName, number>> = {
  ...{ paid: 2, free: 5, payment_required: 1, refused: 3, error: 4 },
  ...{ customer: 6, quota: 7, pass: 8, observed: 9 },
};

export function Traffic({ series }: { readonly series: SeriesAnswer }) {
  const kind = useSignal<'requests' | 'revenue'>('revenue');
  const currency = useSignal<string | null>(null);
  const money = series.revenue.find((each) => each.currency === currency.value) ?? series.revenue[0];
  const isMoney = kind.value === 'revenue' && money !== undefined;
  return (
    <section class="card">
      <header class="card-head">
        <h2>{isMoney ? `Revenue by ${series.step}` : `Requests by ${series.step}`}</h2>
        {isMoney && series.revenue.length > 1 && (
          <Choice
            label="Currency"
            value={money.currency}
            onChange={(value) => (currency.value = value)}
            options={series.revenue.map((each) => ({ value: each.currency, text: each.currency }))}
          />
        )}
        <Choice
          label="What the chart shows"
          value={isMoney ? 'revenue' : 'requests'}
          onChange={(value) => (kind.value = value)}
          options={[
            { value: 'revenue', text: 'Revenue' },
            { value: 'requests', text: 'Requests' },
          ]}
        />
      </header>
      {isMoney ? (
        <TimeChart
          title={`Revenue in ${money.currency} by ${series.step}`}
          kind="columns"
          times={series.times}
          step={series.step}
          completeUntil={series.complete_until}
          series={[{ name: money.currency, tone: 1, values: money.amounts.map(Number) }]}
          axis={axisAmount}
          exact={(_, index) => moneyText(money.amounts[index] ?? '0', money.currency)}
        />
      ) : (
        <TimeChart
          title={`Requests by ${series.step} and outcome`}
          kind="columns"
          times={series.times}
          step={series.step}
          completeUntil={series.complete_until}
          series={requestSeries(series)}
          axis={shortCount}
          exact={(value) => countText(value)}
        />
      )}
    </section>
  );
}

/** Outcomes that occurred; paid and free stay, so that their colours have a name. */
function requestSeries({ requests, times }: SeriesAnswer): readonly ChartSeries[] {
  return OUTCOMES.flatMap((outcome) => {
    const values = requests[outcome] ?? times.map(() => 0);
    const isShown = outcome === 'paid' || outcome === 'free' || values.some((value) => value > 0);
    return isShown ? [{ name: OUTCOME_WORDS[outcome], tone: OUTCOME_TONES[outcome], values }] : [];
  });
}

export function Latency({ series, overview }: { series: SeriesAnswer; overview: OverviewAnswer | null }) {
  const added = series.overhead_ms;
  if (added === null || added.p50.length === 0) return null;
  const now = overview?.overhead_ms ?? null;
  const numbers = (values: readonly (number | null)[]): readonly number[] => values.map((value) => value ?? 0);
  return (
    <section class="card">
      <header class="card-head">
        <h2>Added latency</h2>
        {now !== null && (
          <p class="muted">
            {millisecondsText(now.p50)} at the median, {millisecondsText(now.p99)} at p99
          </p>
        )}
      </header>
      <TimeChart
        title={`Latency that Tollgate adds, by ${series.step}`}
        kind="lines"
        times={series.times}
        step={series.step}
        height={150}
        series={[
          { name: 'p99', tone: 3, values: numbers(added.p99) },
          { name: 'p50', tone: 1, values: numbers(added.p50) },
        ]}
        axis={(value) => millisecondsText(value)}
        exact={(value) => millisecondsText(value)}
      />
    </section>
  );
}
