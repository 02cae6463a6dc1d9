// Amounts of money for people. An amount stays a decimal string from the registry to the screen: no sum and no rounding here.

/** `1234.5` -> `1,234.50`: groups of three, at least two decimals, none of the others dropped but zeros at the end. */
export function groupAmount(amount: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount);
  if (match === null) return amount;
  const [, sign = '', whole = '', decimals = ''] = match;
  const kept = decimals.replace(/0+$/, '').padEnd(2, '0');
  return `${sign}${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${kept}`;
}

export function moneyText(amount: string, currency: string): string {
  return `${groupAmount(amount)} ${currency}`;
}

/** A short amount for the axis of a chart. */
export function axisAmount(value: number): string {
  const size = Math.abs(value);
  if (size >= 1_000_000) return `${trimmed(value / 1_000_000)}M`;
  if (size >= 10_000) return `${trimmed(value / 1_000)}k`;
  if (size >= 1 || size === 0) return trimmed(value);
  return String(Number(value.toPrecision(2)));
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(2)));
}

const AMOUNT = /^(0|[1-9]\d{0,11})(\.\d{1,18})?$/;

/** What is wrong with a price as somebody typed it, in a sentence; null: nothing. */
export function priceFault(text: string): string | null {
  if (text.includes(',')) return 'Use a point for decimals: 0.10.';
  if (!AMOUNT.test(text)) return 'A price is a number such as 0.10.';
  return /[1-9]/.test(text) ? null : 'A price is greater than 0. To charge nothing, pause the route.';
}
