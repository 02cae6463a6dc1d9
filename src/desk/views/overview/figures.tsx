// The four key figures, each with what it was in the same time before and its shape over the range.
import type { ComponentChildren } from 'preact';
import { Sparkline } from '../../charts/sparkline.tsx';
import { groupAmount } from '../../format/money.ts';
import { changeOf, countText, shareText, type Shift } from '../../format/numbers.ts';
import { Icon } from '../../parts/icon.tsx';
import { PLAN_OUTCOMES, type OverviewAnswer, type SeriesAnswer } from '../../wire/billing.ts';

type FiguresProps = { readonly overview: OverviewAnswer; readonly series: SeriesAnswer | null; readonly range: string };

/** Names of requests that a plan let pass without a payment. */
const PASSED_WORDS: Readonly<Record<(typeof PLAN_OUTCOMES)[number], string>> = {
  ...{ customer: 'of customers', quota: 'free by plan', pass: 'by pass', observed: 'in a dry run' },
};

export function Figures({ overview, series, range }: FiguresProps) {
  const { requests, previous, revenue, conversion } = overview;
  const [paid, shown] = [requests.paid ?? 0, requests.payment_required ?? 0];
  const [paidBefore, shownBefore] = [previous.paid ?? 0, previous.payment_required ?? 0];
  const conversionBefore = shownBefore === 0 ? null : Math.min(1, paidBefore / shownBefore);
  return (
    <section class="figures" aria-label={`Key figures of the last ${range}`}>
      <Revenue revenue={revenue} series={series} range={range} />
      <Figure
        label="Paid requests"
        change={changeOf(paid, paidBefore)}
        range={range}
        spark={series?.requests.paid}
        tone={2}
        note={PLAN_OUTCOMES.flatMap((outcome) => {
          const count = requests[outcome] ?? 0;
          return count === 0
            ? []
            : [
                <span key={outcome} class="also">
                  {countText(count)} <small>{PASSED_WORDS[outcome]}</small>
                </span>,
              ];
        })}
      >
        {countText(paid)}
      </Figure>
      <Figure
        label="402 shown"
        change={changeOf(shown, shownBefore)}
        range={range}
        spark={series?.requests.payment_required}
        tone={3}
        isNeutral
      >
        {countText(shown)}
      </Figure>
      <Figure
        label="Conversion"
        change={conversion === null || conversionBefore === null ? null : changeOf(conversion, conversionBefore)}
        range={range}
        spark={series === null ? undefined : conversionSeries(series)}
        tone={4}
      >
        {conversion === null ? <span class="muted">none yet</span> : shareText(conversion)}
      </Figure>
    </section>
  );
}

function Revenue({ revenue, series, range }: Pick<FiguresProps, 'series' | 'range'> & Pick<OverviewAnswer, 'revenue'>) {
  const [first, ...others] = revenue;
  const amounts = series?.revenue.find(({ currency }) => currency === first?.currency)?.amounts;
  return (
    <Figure
      label="Revenue"
      change={first === undefined ? null : changeOf(Number(first.amount), Number(first.previous))}
      range={range}
      spark={amounts?.map(Number)}
      tone={1}
      isLong={groupAmount(first?.amount ?? '').length > 11}
      note={others.map(({ currency, amount }) => (
        <span key={currency} class="also">
          {groupAmount(amount)} <small>{currency}</small>
        </span>
      ))}
    >
      {first === undefined ? (
        '0.00'
      ) : (
        <>
          {groupAmount(first.amount)} <small>{first.currency}</small>
        </>
      )}
    </Figure>
  );
}

type FigureProps = {
  readonly label: string;
  readonly change: Shift | null;
  readonly range: string;
  readonly spark: readonly number[] | undefined;
  readonly tone: number;
  /** More of it is neither good nor bad. */
  readonly isNeutral?: boolean;
  /** More characters than fit at the full size. */
  readonly isLong?: boolean;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
};

function Figure({ label, change, range, spark, tone, isNeutral = false, isLong = false, note, children }: FigureProps) {
  return (
    <div class="figure">
      <h2>{label}</h2>
      <p class={isLong ? 'value long' : 'value'}>{children}</p>
      {note}
      <div class="figure-foot">
        <ChangeMark change={change} range={range} isNeutral={isNeutral} />
        {spark && <Sparkline values={spark} tone={tone} />}
      </div>
    </div>
  );
}

function ChangeMark({ change, range, isNeutral }: Pick<FigureProps, 'change' | 'range'> & { isNeutral: boolean }) {
  if (change === null) return <span class="change muted">new</span>;
  const tone = isNeutral || change.direction === 'same' ? 'calm' : change.direction === 'up' ? 'good' : 'bad';
  return (
    <span class={`change ${tone}`} title={`Compared with the ${range} before`}>
      {change.direction !== 'same' && <Icon name={change.direction} size={14} />}
      {change.direction !== 'same' && <span class="unseen">{change.direction === 'up' ? 'more by' : 'less by'}</span>}
      {change.text}
    </span>
  );
}

function conversionSeries({ requests, times }: SeriesAnswer): readonly number[] {
  return times.map((_, index) => {
    const shown = requests.payment_required?.[index] ?? 0;
    return shown === 0 ? 0 : Math.min(1, (requests.paid?.[index] ?? 0) / shown);
  });
}
