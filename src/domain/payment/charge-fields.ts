// The fields of a charge that hold one value each, one row each: name on the wire and in the store, column, its words, and
// what people see. Types, schemas (`charge-shapes.ts`), the wire both ways, columns and shown charges are made from these
// rows. One more field touches its row, a file that adds its column to each schema, its first value in `claim-policy.ts`, the examples of the OpenAPI
// document, and its use. A copy by rows takes 0.4 us longer than one by hand; a paid request makes about five and takes
// 650 us. No schema stands here: each thread of the ledger loads these rows, and zod takes 2.4 MB.

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
  /** An integer is never below zero. */
  readonly column: 'text' | 'nullable text' | 'integer' | 'nullable integer' | 'flag';
  /** The only words that a text may be; undefined: any. */
  readonly words?: readonly string[];
  /** Its name for people, who see a time as a date; undefined: a ledger's own. */
  readonly shown?: string;
  readonly shownAs?: 'date';
  /** A ledger of an earlier version does not name it: null there. */
  readonly isAdded?: true;
};

export const CHARGE_FIELDS = {
  state: { wire: 'state', column: 'text', words: CHARGE_STATES, shown: 'status' },
  /** The request that works on it, or did so last and said no end (`ownerOf`); null if there is none. */
  owner: { wire: 'owner', column: 'nullable text' },
  /** Milliseconds since the epoch, by the ledger's clock: the owner is believed to be alive until then. */
  leaseUntil: { wire: 'lease_until', column: 'integer' },
  /** How often it was claimed. */
  claims: { wire: 'claims', column: 'integer', shown: 'claims' },
  /** When it was claimed last. */
  claimedAt: { wire: 'claimed_at', column: 'integer' },
  /** Settlements sent or perhaps sent whose end is not known. */
  attempts: { wire: 'attempts', column: 'integer', shown: 'settle_attempts' },
  /** The facilitator that was asked first, opaque. Null before any was, and if that is not known. */
  via: { wire: 'via', column: 'nullable text' },
  /** Looks at the chain by the reconciler. */
  looks: { wire: 'looks', column: 'integer' },
  /** The last thing said about it: why it was released, is not known, or failed. */
  reason: { wire: 'reason', column: 'nullable text', shown: 'reason' },
  failedBy: {
    wire: 'failed_by',
    column: 'nullable text',
    words: ['operator', 'chain', 'refusal'],
    shown: 'failed_by',
  },
  createdAt: { wire: 'created_at', column: 'integer', shown: 'created_at', shownAs: 'date' },
  updatedAt: { wire: 'updated_at', column: 'integer', shown: 'updated_at', shownAs: 'date' },
  /** When it may look again, by the ledger's clock; null: at once. */
  lookAt: {
    wire: 'look_at',
    column: 'nullable integer',
    shown: 'next_look_at',
    shownAs: 'date',
  },
  settledAt: {
    wire: 'settled_at',
    column: 'nullable integer',
    shown: 'settled_at',
    shownAs: 'date',
  },
  deliveredAt: {
    wire: 'delivered_at',
    column: 'nullable integer',
    shown: 'delivered_at',
    shownAs: 'date',
  },
  /** A head with a status below 500 was handed to its client once. */
  headSent: { wire: 'head_sent', column: 'flag' },
  /** Delivered as far as it ever will be: its client had the head, and perhaps not the whole body. */
  partial: { wire: 'partial', column: 'flag', shown: 'partial' },
  /** Why it was not delivered at the last try; null before any, and while one lasts. */
  undelivered: {
    wire: 'undelivered',
    column: 'nullable text',
    words: UNDELIVERED,
    shown: 'undelivered',
  },
  /** When the upstream may be asked again after it failed, by the ledger's clock; null: at once. */
  askAt: { wire: 'ask_at', column: 'nullable integer', shown: 'next_ask_at', shownAs: 'date', isAdded: true },
  /** The status that its client got when the upstream failed last; the same one until it may be asked again. */
  failedStatus: { wire: 'failed_status', column: 'nullable integer', shown: 'failed_status', isAdded: true },
  /** Of the last change that carried one: a call that is repeated after a lost answer is recognised by it. */
  changeId: { wire: 'change_id', column: 'nullable text' },
  /** When its operator gave the money back outside Tollgate. */
  refundedAt: {
    wire: 'refunded_at',
    column: 'nullable integer',
    shown: 'refunded_at',
    shownAs: 'date',
  },
  /** What was noted then. */
  refundNote: { wire: 'refund_note', column: 'nullable text', shown: 'refund_note' },
} as const satisfies Record<string, ChargeField>;

type Fields = typeof CHARGE_FIELDS;
type Name = keyof Fields;

type WordOf<F extends ChargeField> = F extends { readonly words: infer W extends readonly string[] }
  ? W[number]
  : string;
type ValueOf<F extends ChargeField> = {
  text: WordOf<F>;
  'nullable text': WordOf<F> | null;
  integer: number;
  'nullable integer': number | null;
  flag: boolean;
}[F['column']];

export type ChargeValues = { readonly [K in Name]: ValueOf<Fields[K]> };
export type ChargeValuesWire = { [K in Name as Fields[K]['wire']]: ValueOf<Fields[K]> };
type Shown = { [K in Name]: Fields[K] extends { readonly shown: string } ? K : never }[Name];
type ShownValue<F extends ChargeField> = F extends { readonly shownAs: 'date' }
  ? ValueOf<F> extends number
    ? string
    : string | null
  : ValueOf<F>;
/** The members that people see. */
export type ShownChargeValues = {
  [K in Shown as Fields[K] extends { readonly shown: infer S extends string } ? S : never]: ShownValue<Fields[K]>;
};

/** A row and its name in the code. */
export type ChargeRow = ChargeField & { readonly name: Name };

export const CHARGE_ROWS: readonly ChargeRow[] = Object.entries(CHARGE_FIELDS).map(([name, row]) => ({
  ...row,
  name: name as Name,
}));

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
