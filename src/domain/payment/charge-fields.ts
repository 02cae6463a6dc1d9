// The fields of a charge that hold one value each, one row each: name on the wire and in the store, schema, column, and what
// people see. Types, the wire both ways, columns and shown charges are made from these rows. One more field touches its
// row, `schema.sql`, its first value in `claim-policy.ts`, the examples of the OpenAPI document, and its use. A copy by rows
// takes 0.4 us longer than one by hand; a paid request makes about five and takes 650 us.
import { z } from 'zod';

export const CHARGE_STATES = ['claimed', 'settling', 'settled', 'delivered', 'released', 'failed'] as const;

/**
 * Why a settled charge has to be delivered once more, and whose fault it is if it never can be. Each has its own limit
 * (claim-policy.ts).
 */
export const UNDELIVERED = [
  /** The upstream gave an answer; it did not arrive and was not kept. */
  'answer_lost',
  /** The same, because its settlement's end was not known: the client was still there. */
  'answer_dropped',
  /** The upstream gave no usable answer. */
  'upstream_failed',
  /** The client left in the middle of its upload. */
  'upload_broken_off',
  /** A lease ran out without a word. */
  'process_died',
] as const;

type ChargeField = {
  readonly wire: string;
  readonly schema: z.ZodType;
  readonly column: 'text' | 'nullable text' | 'integer' | 'nullable integer' | 'flag';
  /** Its name for people, who see a time as a date; undefined: a ledger's own. */
  readonly shown?: string;
  readonly shownAs?: 'date';
};

const count = z.int().min(0);
const time = z.int().min(0);
const words = z.string().nullable();

export const CHARGE_FIELDS = {
  state: { wire: 'state', schema: z.enum(CHARGE_STATES), column: 'text', shown: 'status' },
  /** The request that works on it, or did so last and said no end (`ownerOf`); null if there is none. */
  owner: { wire: 'owner', schema: words, column: 'nullable text' },
  /** Milliseconds since the epoch, by the ledger's clock: the owner is believed to be alive until then. */
  leaseUntil: { wire: 'lease_until', schema: time, column: 'integer' },
  /** How often it was claimed. */
  claims: { wire: 'claims', schema: count, column: 'integer', shown: 'claims' },
  /** When it was claimed last. */
  claimedAt: { wire: 'claimed_at', schema: time, column: 'integer' },
  /** Settlements sent or perhaps sent whose end is not known. */
  attempts: { wire: 'attempts', schema: count, column: 'integer', shown: 'settle_attempts' },
  /** The facilitator that was asked first, opaque. Null before any was, and if that is not known. */
  via: { wire: 'via', schema: words, column: 'nullable text' },
  /** Looks at the chain by the reconciler. */
  looks: { wire: 'looks', schema: count, column: 'integer' },
  /** The last thing said about it: why it was released, is not known, or failed. */
  reason: { wire: 'reason', schema: words, column: 'nullable text', shown: 'reason' },
  failedBy: {
    wire: 'failed_by',
    schema: z.enum(['operator', 'chain', 'refusal']).nullable(),
    column: 'nullable text',
    shown: 'failed_by',
  },
  createdAt: { wire: 'created_at', schema: time, column: 'integer', shown: 'created_at', shownAs: 'date' },
  updatedAt: { wire: 'updated_at', schema: time, column: 'integer', shown: 'updated_at', shownAs: 'date' },
  /** When it may look again, by the ledger's clock; null: at once. */
  lookAt: {
    wire: 'look_at',
    schema: time.nullable(),
    column: 'nullable integer',
    shown: 'next_look_at',
    shownAs: 'date',
  },
  settledAt: {
    wire: 'settled_at',
    schema: time.nullable(),
    column: 'nullable integer',
    shown: 'settled_at',
    shownAs: 'date',
  },
  deliveredAt: {
    wire: 'delivered_at',
    schema: time.nullable(),
    column: 'nullable integer',
    shown: 'delivered_at',
    shownAs: 'date',
  },
  /** A head with a status below 500 was handed to its client once. */
  headSent: { wire: 'head_sent', schema: z.boolean(), column: 'flag' },
  /** Delivered as far as it ever will be: its client had the head, and perhaps not the whole body. */
  partial: { wire: 'partial', schema: z.boolean(), column: 'flag', shown: 'partial' },
  /** Why it was not delivered at the last try; null before any, and while one lasts. */
  undelivered: {
    wire: 'undelivered',
    schema: z.enum(UNDELIVERED).nullable(),
    column: 'nullable text',
    shown: 'undelivered',
  },
  /** Of the last change that carried one: a call that is repeated after a lost answer is recognised by it. */
  changeId: { wire: 'change_id', schema: words, column: 'nullable text' },
  /** When its operator gave the money back outside Tollgate. */
  refundedAt: {
    wire: 'refunded_at',
    schema: time.nullable(),
    column: 'nullable integer',
    shown: 'refunded_at',
    shownAs: 'date',
  },
  /** What was noted then. */
  refundNote: { wire: 'refund_note', schema: words, column: 'nullable text', shown: 'refund_note' },
} as const satisfies Record<string, ChargeField>;

type Fields = typeof CHARGE_FIELDS;
type Name = keyof Fields;

export type ChargeValues = { readonly [K in Name]: z.output<Fields[K]['schema']> };
type ChargeValuesWire = { [K in Name as Fields[K]['wire']]: z.output<Fields[K]['schema']> };
type Shown = { [K in Name]: Fields[K] extends { readonly shown: string } ? K : never }[Name];
type ShownValue<F extends ChargeField> = F extends { readonly shownAs: 'date' }
  ? z.output<F['schema']> extends number
    ? string
    : string | null
  : z.output<F['schema']>;
type ShownChargeValues = {
  [K in Shown as Fields[K] extends { readonly shown: infer S extends string } ? S : never]: ShownValue<Fields[K]>;
};

/** A row, its name in the code, and the only words that its column may hold, if there are such. */
export type ChargeRow = ChargeField & { readonly name: Name; readonly words: readonly string[] | undefined };

export const CHARGE_ROWS = Object.entries(CHARGE_FIELDS).map(([name, row]) => ({
  ...row,
  name,
  words: wordsOf(row.schema),
})) as readonly ChargeRow[];

function wordsOf(schema: z.ZodType): readonly string[] | undefined {
  if (schema instanceof z.ZodNullable) return wordsOf(schema.unwrap() as z.ZodType);
  return schema instanceof z.ZodEnum ? schema.options.map(String) : undefined;
}

/** The members of the ledger's wire, for a schema. */
export const chargeValuesShape = Object.fromEntries(CHARGE_ROWS.map(({ wire, schema }) => [wire, schema])) as {
  [K in Name as Fields[K]['wire']]: Fields[K]['schema'];
};

/** The members that people see, for a schema. */
export const shownChargeShape = Object.fromEntries(
  CHARGE_ROWS.flatMap(({ shown, shownAs, schema }) => {
    if (shown === undefined) return [];
    if (shownAs === undefined) return [[shown, schema]];
    return [[shown, schema instanceof z.ZodNullable ? z.iso.datetime().nullable() : z.iso.datetime()]];
  }),
) as { [K in keyof ShownChargeValues]: z.ZodType<ShownChargeValues[K]> };

// Copies of an object that has every member are what V8 makes fastest; spread them first.
const VALUES: Readonly<Record<string, unknown>> = Object.fromEntries(CHARGE_ROWS.map(({ name }) => [name, null]));
const WIRE: Readonly<Record<string, unknown>> = Object.fromEntries(CHARGE_ROWS.map(({ wire }) => [wire, null]));

/** Values of `valueOf`, which have the types of the rows. */
export function chargeValuesOf(valueOf: (row: ChargeRow) => unknown): ChargeValues {
  const values = { ...VALUES };
  for (const row of CHARGE_ROWS) values[row.name] = valueOf(row);
  return values as ChargeValues;
}

export function chargeValuesFromWire(wire: ChargeValuesWire): ChargeValues {
  const from: Readonly<Record<string, unknown>> = wire;
  const values = { ...VALUES };
  for (const row of CHARGE_ROWS) values[row.name] = from[row.wire];
  return values as ChargeValues;
}

export function chargeValuesToWire(charge: ChargeValues): ChargeValuesWire {
  const to = { ...WIRE };
  for (const row of CHARGE_ROWS) to[row.wire] = charge[row.name];
  return to as ChargeValuesWire;
}

export function showChargeValues(charge: Pick<ChargeValues, Shown>): ShownChargeValues {
  const from: Readonly<Record<string, unknown>> = charge;
  return Object.fromEntries(
    CHARGE_ROWS.flatMap(({ name, shown, shownAs }) => {
      const value = from[name];
      if (shown === undefined) return [];
      return [[shown, shownAs === 'date' && typeof value === 'number' ? new Date(value).toISOString() : value]];
    }),
  ) as ShownChargeValues;
}
