// Schemas of a charge's fields, made from their rows: on the ledger's wire, and as people see them.
import { z } from 'zod';
import { CHARGE_ROWS, type ChargeRow, type ChargeValuesWire, type ShownChargeValues } from './charge-fields.ts';

/** The members of the ledger's wire, for a schema. */
export const chargeValuesShape = Object.fromEntries(CHARGE_ROWS.map((row) => [row.wire, schemaOf(row)])) as {
  [K in keyof ChargeValuesWire]: z.ZodType<ChargeValuesWire[K]>;
};

/** The members that people see, for a schema. */
export const shownChargeShape = Object.fromEntries(
  CHARGE_ROWS.flatMap((row) => {
    if (row.shown === undefined) return [];
    if (row.shownAs === undefined) return [[row.shown, schemaOf(row)]];
    return [[row.shown, isNullable(row) ? z.iso.datetime().nullable() : z.iso.datetime()]];
  }),
) as { [K in keyof ShownChargeValues]: z.ZodType<ShownChargeValues[K]> };

function schemaOf(row: ChargeRow): z.ZodType {
  const schema = presentOf(row);
  if (row.isAdded === true) return schema.nullable().default(null);
  return isNullable(row) ? schema.nullable() : schema;
}

function presentOf({ column, words }: ChargeRow): z.ZodType {
  if (column === 'flag') return z.boolean();
  if (column.endsWith('integer')) return z.int().min(0);
  return words === undefined ? z.string() : z.enum(words);
}

function isNullable({ column }: ChargeRow): boolean {
  return column.startsWith('nullable');
}
