// A meter: the price of a request is the most that it costs, and what it did cost is known only from its response. The
// upstream says the amount in a header or a trailer, or the response holds a number of units. Whatever cannot be read for
// sure is `missing`, and costs all or nothing, as the plan says. Amounts are integers; the one rounding is down.
import { AMOUNT_PATTERN, type Price } from '../../payment/money.ts';

/** Name of the header, and of the trailer, in which an upstream says what a request costs. */
export const CHARGE_AMOUNT = 'Tollgate-Charge-Amount';

export type Meter = {
  readonly source: MeterSource;
  /** What a request costs whose amount is not known: its price, or nothing. */
  readonly missing: 'max' | 'zero';
};

export type MeterSource =
  | { readonly kind: 'header' }
  | { readonly kind: 'trailer' }
  /** A number in the body: names of members from the outside in, the price of one, and the most bytes of an event. */
  | { readonly kind: 'usage'; readonly path: readonly string[]; readonly unit: Price; readonly tailBytes: number };

/** Why the amount of a response is not known. */
export type Unread = 'absent' | 'malformed' | 'twice';

/** What a response said: the text of an amount or of a number of units, or why there is none. */
export type MeterReading = { readonly kind: 'read'; readonly text: string } | { readonly kind: Unread };

/** As the response said, more than the price, or not known. */
export const METER_RESULTS = ['metered', 'over', 'missing'] as const;

/** What a request costs, in the asset's smallest unit. */
export type MeteredAmount = {
  readonly result: (typeof METER_RESULTS)[number];
  readonly amount: bigint;
  /** Why it is not what the response said. */
  readonly because?: Unread | 'client_left';
};

/** The asset that a request is paid in: its price in smallest units is the most that is taken. */
export type MeterLimit = { readonly most: bigint; readonly decimals: number };

/** What a request costs whose response said `reading`. */
export function meteredAmount(
  { source, missing }: Meter,
  reading: MeterReading | { readonly kind: 'client_left' },
  { most, decimals }: MeterLimit,
): MeteredAmount {
  const amount = reading.kind === 'read' ? atomicOf(source, reading.text, decimals) : undefined;
  if (amount === undefined) {
    const because = reading.kind === 'read' ? 'malformed' : reading.kind;
    return { result: 'missing', amount: missing === 'max' ? most : 0n, because };
  }
  return amount > most ? { result: 'over', amount: most } : { result: 'metered', amount };
}

function atomicOf(source: MeterSource, text: string, decimals: number): bigint | undefined {
  return source.kind === 'usage' ? unitsTimes(text, source.unit, decimals) : exactAmount(text, decimals);
}

/** An amount of money as an upstream writes it; undefined if it is none, or finer than the asset: it is never rounded. */
function exactAmount(text: string, decimals: number): bigint | undefined {
  if (!AMOUNT_PATTERN.test(text)) return undefined;
  const [whole = '', fraction = ''] = text.split('.');
  const digits = fraction.replace(/0+$/, '');
  return digits.length > decimals ? undefined : BigInt(whole + digits.padEnd(decimals, '0'));
}

/** Number of JSON that is not negative; its exponent has to be one that some count could have. */
const UNITS = /^(\d{1,64})(?:\.(\d{1,64}))?(?:[eE]([+-]?\d{1,2}))?$/;

/** So many units at the price of one, rounded down; undefined if `text` is no number of units. */
function unitsTimes(text: string, unit: Price, decimals: number): bigint | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = UNITS.exec(text) ?? [];
  if (whole === '') return undefined;
  const product = BigInt(whole + fraction) * unit.units;
  const shift = decimals - fraction.length + Number(exponent) - unit.scale;
  return shift < 0 ? product / 10n ** BigInt(-shift) : product * 10n ** BigInt(shift);
}
