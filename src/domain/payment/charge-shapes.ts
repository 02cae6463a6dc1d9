// Schemas of a charge's fields, made from their rows: on the ledger's wire, which has bounds, and as people see them.
import { z } from 'zod';
import {
  CHARGE_ROWS,
  CLAIM_ROWS,
  isNullablePart,
  PROGRESS_ROWS,
  type ChargeRow,
  type ClaimValuesWire,
  type ProgressValuesWire,
  type ShownValues,
} from './charge-fields.ts';
import { CHARGE_ID } from './charge.ts';

/** Schemas of the members of `T`. */
type ShapeOf<T> = { [K in keyof T]-?: T[K] extends object ? PartSchema<T[K]> : z.ZodType<T[K], T[K]> };
type PartSchema<T extends object> = string extends keyof T
  ? z.ZodType<T, T>
  : z.ZodObject<{ [K in keyof T]: z.ZodType<T[K], T[K]> }>;

export const text = (max: number) => z.string().min(1).max(max);
export const chargeId = z.string().regex(CHARGE_ID, 'a charge id');
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, '64 lower-case hex digits');
const uint = z.string().regex(/^(0|[1-9]\d{0,77})$/, 'an unsigned integer, in decimal');

/** Texts that a rail alone writes and reads: bounded. */
export const railTexts = z
  .record(z.string().max(64), z.string().max(256))
  .refine((all) => Object.keys(all).length <= 32, 'too many members');

/** The members of a claim on the ledger's wire. */
export const claimShape = shapeOf(CLAIM_ROWS) as ShapeOf<ClaimValuesWire>;
/** The members of a charge on the ledger's wire that say what became of its claim. */
export const progressShape = shapeOf(PROGRESS_ROWS) as ShapeOf<ProgressValuesWire>;

/** The members that people see. */
export const shownShape = Object.fromEntries(
  CHARGE_ROWS.flatMap((row) => (row.shown === undefined ? [] : [[row.shown, shownSchema(row)]])),
) as { [K in keyof ShownValues]: z.ZodType<ShownValues[K], ShownValues[K]> };

/** The schema of a part that a charge may be without, where there is one. */
export function partSchema<Part extends 'proof' | 'answer'>(
  part: Part,
): PartSchema<NonNullable<ProgressValuesWire[Part]>> {
  return objectOf(PROGRESS_ROWS.filter((row) => row.part === part)) as unknown as PartSchema<
    NonNullable<ProgressValuesWire[Part]>
  >;
}

function shapeOf(rows: readonly ChargeRow[]): object {
  const shape: Record<string, z.ZodType> = {};
  for (const row of rows) {
    if (row.part === undefined) shape[row.wire] = wireSchema(row);
    else if (!(row.part in shape)) {
      const part = objectOf(rows.filter((each) => each.part === row.part));
      shape[row.part] = isNullablePart(row.part) ? part.nullable() : part;
    }
  }
  return shape;
}

function objectOf(rows: readonly ChargeRow[]) {
  return z.object(Object.fromEntries(rows.map((row) => [row.wire, wireSchema(row)])));
}

function wireSchema(row: ChargeRow): z.ZodType {
  const schema = presentOnWire(row);
  if (row.isAdded) return schema.nullable().default(null);
  return row.isNullable ? schema.nullable() : schema;
}

function presentOnWire({ kind, words, min, max }: ChargeRow): z.ZodType {
  if (words !== undefined) return wordsSchema(words);
  switch (kind) {
    case 'text':
      return max === undefined ? z.string() : text(max);
    case 'charge id':
      return chargeId;
    case 'digest':
      return sha256;
    case 'integer':
      return max === undefined ? z.int().min(min) : z.int().min(min).max(max);
    case 'flag':
      return z.boolean();
    case 'units':
    case 'seconds':
      return uint;
    case 'texts':
      return railTexts;
    case 'headers':
      return headerPairs(max ?? 0);
    case 'bytes':
      return z.base64().max(Math.ceil((max ?? 0) / 3) * 4);
    default:
      return kind satisfies never;
  }
}

function headerPairs(maxCharacters: number): z.ZodType {
  return z
    .array(z.string())
    .max(2000)
    .refine((all) => all.length % 2 === 0, 'name, value pairs')
    .refine((all) => all.reduce((sum, each) => sum + each.length, 0) <= maxCharacters, 'too long');
}

/** A schema for people bounds nothing: the bounds are for what comes in. */
function shownSchema(row: ChargeRow): z.ZodType {
  const schema = presentToPeople(row);
  if (row.isAdded && row.shownAs === undefined) return schema.nullable().default(null);
  return row.isNullable || (row.part !== undefined && isNullablePart(row.part)) ? schema.nullable() : schema;
}

function presentToPeople({ kind, words, shownAs, part }: ChargeRow): z.ZodType {
  if (shownAs === 'date') return z.iso.datetime();
  if (words !== undefined) return wordsSchema(words);
  if (kind === 'flag') return z.boolean();
  if (kind !== 'integer') return z.string();
  return part === undefined ? z.int().min(0) : z.int();
}

function wordsSchema(words: readonly (string | number)[]): z.ZodType {
  const texts = words.filter((word) => typeof word === 'string');
  return texts.length === words.length ? z.enum(texts) : z.literal(words);
}
