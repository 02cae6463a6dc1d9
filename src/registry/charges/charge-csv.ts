// Charges as a file of comma-separated values (RFC 4180), with the names that the JSON of a charge has. What payers and
// clients wrote stays text in a spreadsheet: no cell begins like a formula.
import { chargeView, type ChargeView } from './charge-schemas.ts';
import { FIRST_SHOWN, inOrder } from './shown-order.ts';

const COLUMNS = Object.keys(inOrder(chargeView.shape, FIRST_SHOWN));
const LINE_END = '\r\n';
/** What spreadsheets take for the beginning of a formula, or step over to find one. */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

export function csvHeader(): string {
  return COLUMNS.map(cellOf).join(',') + LINE_END;
}

export function csvLine(charge: ChargeView): string {
  const { refunded, refunds } = charge;
  const values: Readonly<Record<string, unknown>> = {
    ...charge,
    refunded: refunded?.amount ?? null,
    refunds: refunds.map(({ transaction }) => transaction).join(' '),
  };
  return COLUMNS.map((name) => cellOf(values[name])).join(',') + LINE_END;
}

export function cellOf(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return '';
  const text = FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
