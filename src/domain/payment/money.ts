// Prices as integers. People write a price as a decimal, and it stays exactly that decimal: an integer and a scale,
// never a float, never rounded. Converting it to an asset's smallest unit refuses excess digits: to cut them off could
// make a route free ("0.0000001" at six decimals).

/** The amount as the interface writes it: up to 12 digits before and 18 after the point, no sign, no exponent. */
export const AMOUNT_PATTERN = /^(0|[1-9]\d{0,11})(\.\d{1,18})?$/;

export const AMOUNT_ADVICE =
  'a decimal written as a string, such as "0.10": up to 12 digits before the point and 18 after it, no sign, no exponent, greater than 0';

/** Price as `units / 10^scale`: no trailing zero in `units` if `scale` > 0, so equal prices are equal members. */
export type Price = { readonly units: bigint; readonly scale: number };

/** The price that `amount` writes, or undefined if it is not a price (wrong form, or zero). */
export function parsePrice(amount: string): Price | undefined {
  if (!AMOUNT_PATTERN.test(amount)) return undefined;
  const point = amount.indexOf('.');
  const whole = point < 0 ? amount : amount.slice(0, point);
  const fraction = (point < 0 ? '' : amount.slice(point + 1)).replace(/0+$/, '');
  const units = BigInt(whole + fraction);
  return units === 0n ? undefined : { units, scale: fraction.length };
}

/** Whether `amount` is a price, without making it. */
export function isPrice(amount: string): boolean {
  return AMOUNT_PATTERN.test(amount) && /[1-9]/.test(amount);
}

/** Converts `price` to an asset's smallest units; undefined if the asset has too few decimals to hold it exactly. */
export function toAtomic(price: Price, decimals: number): bigint | undefined {
  return price.scale > decimals ? undefined : price.units * 10n ** BigInt(decimals - price.scale);
}

/** Compares two prices: negative if a < b, 0 if equal, positive if a > b. */
export function comparePrices(a: Price, b: Price): number {
  const scale = Math.max(a.scale, b.scale);
  const left = a.units * 10n ** BigInt(scale - a.scale);
  const right = b.units * 10n ** BigInt(scale - b.scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The decimal that writes `price`, for people: whole, or with two decimals at least, as money is written. */
export function formatPrice({ units, scale }: { readonly units: bigint; readonly scale: number }): string {
  const digits = units.toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction.padEnd(2, '0')}`;
}

/** Most digits of a price before the point, and after it. */
const MOST_DIGITS = { whole: 12, fraction: 18 } as const;

/** Whether a price has no more digits than the interface can write. */
export function withinDigits({ units, scale }: Price): boolean {
  return scale <= MOST_DIGITS.fraction && units < 10n ** BigInt(MOST_DIGITS.whole + scale);
}

export function addPrices(a: Price, b: Price): Price {
  const scale = Math.max(a.scale, b.scale);
  return shortest(a.units * 10n ** BigInt(scale - a.scale) + b.units * 10n ** BigInt(scale - b.scale), scale);
}

/** So many times a price. */
export function timesPrice({ units, scale }: Price, count: bigint): Price {
  return shortest(units * count, scale);
}

/** A price times a decimal, which has the form of one. */
export function multiplyPrices(a: Price, b: Price): Price {
  return shortest(a.units * b.units, a.scale + b.scale);
}

/** The price without zeros at the end of its fraction. */
function shortest(units: bigint, scale: number): Price {
  let [left, digits] = [units, scale];
  while (digits > 0 && left % 10n === 0n) [left, digits] = [left / 10n, digits - 1];
  return { units: left, scale: digits };
}
