// Exact decimals: sums of money that a float cannot hold.

/** Decimal number as `units / 10^scale`. */
export type Decimal = { readonly units: bigint; readonly scale: number };

/** Adds two decimals of any scales. */
export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { units: a.units * 10n ** BigInt(scale - a.scale) + b.units * 10n ** BigInt(scale - b.scale), scale };
}

/** Reads what `writeDecimal` wrote. */
export function readDecimal(text: string): Decimal {
  const [whole = '', fraction = ''] = text.split('.');
  return { units: BigInt(whole + fraction), scale: fraction.length };
}

/** Writes a decimal without zeros at its end. */
export function writeDecimal({ units, scale }: Decimal): string {
  const digits = units.toString().padStart(scale + 1, '0');
  const fraction = scale === 0 ? '' : digits.slice(-scale).replace(/0+$/, '');
  const whole = scale === 0 ? digits : digits.slice(0, -scale);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
