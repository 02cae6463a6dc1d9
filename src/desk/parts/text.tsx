// Small pieces of text that many views show: a time, a state, a method, an amount.
import { useDesk } from '../desk-context.ts';
import { agoText, hourAgoText } from '../format/moments.ts';
import { groupAmount } from '../format/money.ts';

type MomentProps = {
  readonly at: string | null | undefined;
  /** Says how long ago it was. `hour`: the hour alone is known. */
  readonly ago?: boolean | 'hour';
};

/** A time as people read it; the whole of it in the title. */
export function Moment({ at, ago = false }: MomentProps) {
  const { times, clock } = useDesk();
  const value = at ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(value)) return <span class="muted">never</span>;
  const textOf = ago === 'hour' ? hourAgoText : ago ? agoText : times.moment;
  const text = textOf(value, clock.value);
  return (
    <time dateTime={new Date(value).toISOString()} title={times.whole(value)}>
      {text}
    </time>
  );
}

export type Tone = 'good' | 'warn' | 'bad' | 'calm' | 'busy';

/** A state: a dot and a word, never colour alone. */
export function State({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span class={`state ${tone}`}>
      <i aria-hidden="true" />
      {children}
    </span>
  );
}

const CHARGE_TONES: Readonly<Record<string, Tone>> = {
  ...{ claimed: 'busy', settling: 'busy', settled: 'good', delivered: 'good', released: 'calm', failed: 'bad' },
};

export function ChargeState({ status, owed }: { readonly status: string; readonly owed: string | null }) {
  return owed === null ? (
    <State tone={CHARGE_TONES[status] ?? 'calm'}>{status}</State>
  ) : (
    <State tone="warn">{`${status}, owed`}</State>
  );
}

export function Method({ children }: { readonly children: string }) {
  return <span class="method">{children === '*' ? 'ANY' : children}</span>;
}

export function Amount({ amount, currency }: { readonly amount: string; readonly currency: string }) {
  return (
    <span class="amount">
      {groupAmount(amount)} <small>{currency}</small>
    </span>
  );
}
