// The fields of a charge, one row each: its place in the charge, its names on the wire and in the store, its kind and
// bounds, what people see, and an example. Types, schemas (`charge-shapes.ts`), the wire both ways (`charge-wire.ts`),
// columns (`registry/store/charge-values.ts`), shown charges and the examples of the OpenAPI document are made from these
// rows; `charge-copy.ts` copies by them. One more
// field touches its row, a file that adds its column to each schema, its first value in `claim-policy.ts`, and its use. No
// schema stands here: each thread of the ledger loads these rows, and zod takes 2.4 MB.

export const CHARGE_STATES = ['claimed', 'settling', 'settled', 'delivered', 'released', 'failed'] as const;

/** Reasons why a settled charge has to be delivered once more. Each has its own limit and fault (claim-policy.ts). */
export const UNDELIVERED = [
  /** The upstream gave an answer; it did not arrive and was not kept. */
  'answer_lost',
  /** The upstream gave an answer that was not kept because the settlement's end was not known: the client was still there. */
  'answer_dropped',
  /** The upstream gave no usable answer. */
  'upstream_failed',
  /** The client left in the middle of its upload. */
  'upload_broken_off',
  /** A lease ran out without a word. */
  'process_died',
] as const;

/** Bytes of a kept answer's body that may cross to another process. */
export const ANSWER_BYTES = 64 * 1024;

/** Kinds of values, as the code has them. */
type Kinds = {
  text: string;
  /** Text in the form of CHARGE_ID. */
  'charge id': string;
  /** SHA-256 as 64 lower-case hex digits; bytes in a store. */
  digest: string;
  /** Integer that is not below zero. */
  integer: number;
  /** True or false; 1 or 0 in a store. */
  flag: boolean;
  /** Smallest units of an asset; decimal digits on the wire and in a store. */
  units: bigint;
  /** Seconds since the epoch; decimal digits on the wire, an integer in a store. */
  seconds: bigint;
  /** Texts that a rail writes and reads; JSON in a store. */
  texts: Readonly<Record<string, string>>;
  /** Names and values of headers in turn; JSON in a store. */
  headers: readonly string[];
  /** Raw bytes; base64 on the wire. */
  bytes: Uint8Array;
};

type ChargeField = {
  readonly wire: string;
  /** Name of its column; undefined: that on the wire. */
  readonly column?: string;
  /** Says that another row with the same column writes it. */
  readonly sharesColumn?: true;
  /** A store keeps it beside the charge and drops it when no request can need it: it is written by statements of its own. */
  readonly isKeptAside?: true;
  readonly kind: keyof Kinds;
  readonly isNullable?: true;
  /** The only values that it may have; undefined: any. */
  readonly words?: readonly (string | number)[];
  /** Limit of what may cross the wire: characters, bytes or units; undefined if there is none. */
  readonly max?: number;
  /** Least integer; undefined: 0. */
  readonly min?: number;
  /** Name that people see; undefined if only a ledger sees the field. A time is shown as a date. */
  readonly shown?: string;
  readonly shownAs?: 'date';
  /** A ledger of an earlier version does not name it: null there. */
  readonly isAdded?: true;
  /** Value in examples, as the wire has it; undefined: null. A field of progress has the value that its rules give it. */
  readonly example?: WireExample;
};

type WireExample = string | number | Readonly<Record<string, string>>;

/** Payer of the payment that examples show. */
const PAYER = '0x857b06519e91e3a54538791bdbb0e22373e36b66';

/** Fields that a claim fixes: a claim after a release writes them again, all but the id. */
const CLAIM_FIELDS = {
  /** The charge id. */
  id: { wire: 'charge_id', column: 'id', kind: 'charge id', shown: 'id', example: 'chg_AZQ0XkN7c2lnbmVk' },
  /** Network of the payment in CAIP-2. */
  'payment.network': { wire: 'network', kind: 'text', max: 64, shown: 'network', example: 'eip155:84532' },
  'payment.asset': { wire: 'asset', kind: 'text', max: 64, example: '0x036cbd53842c5426634e7929541ec2318f3dcf7e' },
  'payment.payer': { wire: 'payer', kind: 'text', max: 64, shown: 'payer', example: PAYER },
  /** Tells the payments of one payer apart. */
  'payment.unique': {
    wire: 'unique',
    column: 'unique_key',
    kind: 'text',
    max: 80,
    shown: 'nonce',
    example: `0x${'f3'.repeat(32)}`,
  },
  /** SHA-256 of the credential: 64 lower-case hex digits. */
  credentialSha256: { wire: 'credential_sha256', kind: 'digest', example: '5e'.repeat(32) },
  x402Version: { wire: 'x402_version', kind: 'integer', words: [1, 2], shown: 'x402_version', example: 2 },
  'way.receiverId': { wire: 'receiver_id', kind: 'text', max: 64, shown: 'receiver_id', example: 'default' },
  /** Network of the payment, once more as the way has it. */
  'way.network': { wire: 'network', sharesColumn: true, kind: 'text', max: 64, example: 'eip155:84532' },
  'way.scheme': { wire: 'scheme', kind: 'text', max: 32, shown: 'scheme', example: 'exact' },
  'way.asset': {
    wire: 'asset',
    column: 'way_asset',
    kind: 'text',
    max: 64,
    shown: 'asset',
    example: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  },
  'way.decimals': { wire: 'asset_decimals', kind: 'integer', max: 255, shown: 'asset_decimals', example: 6 },
  'way.payTo': {
    wire: 'pay_to_address',
    kind: 'text',
    max: 64,
    shown: 'pay_to_address',
    example: '0x209693bc6afc0c5328ba36faf03c514ef312287c',
  },
  'way.timeoutSeconds': { wire: 'max_timeout_seconds', kind: 'integer', example: 300 },
  /** Terms that only the rail reads. */
  'way.terms': { wire: 'terms', kind: 'texts', example: { name: 'USDC', version: '2' } },
  /** The smallest unit of the way's asset. */
  amount: { wire: 'amount', kind: 'units', shown: 'amount_atomic', example: '100000' },
  /** Seconds since the epoch: from then on the payment can move no money. Null if it names no such time. */
  deadline: { wire: 'deadline', kind: 'seconds', isNullable: true, example: '1769861100' },
  'route.id': {
    wire: 'id',
    column: 'route_id',
    kind: 'text',
    max: 64,
    shown: 'route_id',
    example: '6f1c2f5e-3f0a-4a53-9f0e-3f1f3a0b7c11',
  },
  'route.method': {
    wire: 'method',
    column: 'route_method',
    kind: 'text',
    max: 32,
    shown: 'route_method',
    example: 'GET',
  },
  'route.pattern': {
    wire: 'pattern',
    column: 'route_pattern',
    kind: 'text',
    max: 512,
    shown: 'route_pattern',
    example: '/reports/*',
  },
  'request.method': {
    wire: 'method',
    column: 'request_method',
    kind: 'text',
    max: 32,
    shown: 'method',
    example: 'GET',
  },
  /** Path in its canonical form, without the query. */
  'request.path': {
    wire: 'path',
    column: 'request_path',
    kind: 'text',
    max: 64 * 1024,
    shown: 'path',
    example: '/reports/q3',
  },
  /** SHA-256 of the canonical path and the query: 64 lower-case hex digits. */
  'request.targetSha256': { wire: 'target_sha256', kind: 'digest', example: '5e'.repeat(32) },
  /** The id of the request that claimed, as logs have it. */
  requestId: {
    wire: 'request_id',
    kind: 'text',
    isNullable: true,
    max: 256,
    shown: 'request_id',
    example: '0b7c6b1e-8f57-4a0e-a9a5-4a1f0f6f2f10',
  },
  /** The quoted price: a decimal. */
  'price.amount': { wire: 'amount', column: 'price_amount', kind: 'text', max: 40, shown: 'amount', example: '0.10' },
  'price.currency': {
    wire: 'currency',
    column: 'price_currency',
    kind: 'text',
    max: 10,
    shown: 'currency',
    example: 'USD',
  },
  customerId: { wire: 'customer_id', kind: 'text', isNullable: true, max: 128, shown: 'customer_id' },
  /** The dialect of the decision listener that claimed; null: the proxy did. Neither serves what the other one claimed. */
  asker: { wire: 'asker', kind: 'text', isNullable: true, isAdded: true, max: 16, shown: 'asker' },
  askSha256: { wire: 'ask_sha256', sharesColumn: true, kind: 'text', isNullable: true, isAdded: true, max: 64 },
  /** The terms of the pass that it buys (selling/pass.ts); null if it buys none. */
  pass: { wire: 'pass', kind: 'texts', isNullable: true, isAdded: true },
  /** The settle mode that this request is served in; `auto` is resolved before the claim. */
  settle: {
    wire: 'settle',
    kind: 'text',
    words: ['before_response', 'before_forward'],
    shown: 'settle',
    example: 'before_response',
  },
} as const satisfies Record<string, ChargeField>;

/** Fields that say what became of a claim since. */
const PROGRESS_FIELDS = {
  state: { wire: 'state', kind: 'text', words: CHARGE_STATES, shown: 'status' },
  /** The request that works on the charge, or did so last and said no end (`ownerOf`); null if there is none. */
  owner: { wire: 'owner', kind: 'text', isNullable: true },
  /** End of the lease, milliseconds since the epoch by the ledger's clock: until then the owner counts as alive. */
  leaseUntil: { wire: 'lease_until', kind: 'integer' },
  /** Number of its claims. */
  claims: { wire: 'claims', kind: 'integer', shown: 'claims' },
  /** Time of its last claim. */
  claimedAt: { wire: 'claimed_at', kind: 'integer' },
  /** Settlements sent or perhaps sent whose end is not known. */
  attempts: { wire: 'attempts', kind: 'integer', shown: 'settle_attempts' },
  /** The facilitator that was asked first, opaque. Null before any was, and if that is not known. */
  via: { wire: 'via', kind: 'text', isNullable: true },
  /** Looks at the chain by the reconciler. */
  looks: { wire: 'looks', kind: 'integer' },
  /** The latest reason: why the charge was released, is not known, or failed. */
  reason: { wire: 'reason', kind: 'text', isNullable: true, shown: 'reason' },
  failedBy: {
    wire: 'failed_by',
    kind: 'text',
    isNullable: true,
    words: ['operator', 'chain', 'refusal'],
    shown: 'failed_by',
  },
  createdAt: { wire: 'created_at', kind: 'integer', shown: 'created_at', shownAs: 'date' },
  updatedAt: { wire: 'updated_at', kind: 'integer', shown: 'updated_at', shownAs: 'date' },
  /** Time of the next look at the chain, by the ledger's clock; null: at once. */
  lookAt: {
    wire: 'look_at',
    kind: 'integer',
    isNullable: true,
    shown: 'next_look_at',
    shownAs: 'date',
  },
  settledAt: {
    wire: 'settled_at',
    kind: 'integer',
    isNullable: true,
    shown: 'settled_at',
    shownAs: 'date',
  },
  deliveredAt: {
    wire: 'delivered_at',
    kind: 'integer',
    isNullable: true,
    shown: 'delivered_at',
    shownAs: 'date',
  },
  /** A head with a status below 500 was handed to its client once. */
  headSent: { wire: 'head_sent', kind: 'flag' },
  /** Says that the delivery is over: the client had the head, and perhaps not the whole body. */
  partial: { wire: 'partial', kind: 'flag', shown: 'partial' },
  /** The reason why it was not delivered at the last try; null before any, and while one lasts. */
  undelivered: {
    wire: 'undelivered',
    kind: 'text',
    isNullable: true,
    words: UNDELIVERED,
    shown: 'undelivered',
  },
  /** Time from which the upstream may be asked again after it failed, by the ledger's clock; null: at once. */
  askAt: { wire: 'ask_at', kind: 'integer', isNullable: true, shown: 'next_ask_at', shownAs: 'date', isAdded: true },
  /** The status that its client got when the upstream failed last; the same one until it may be asked again. */
  failedStatus: { wire: 'failed_status', kind: 'integer', isNullable: true, shown: 'failed_status', isAdded: true },
  /**
   * SHA-256 of the request id, made by the proxy that asks, for which it was claimed or allowed last: the same request may
   * ask again. Null if the proxy named none.
   */
  askSha256: { wire: 'ask_sha256', kind: 'text', isNullable: true, isAdded: true, max: 64 },
  /** Number of times that the last allow was given again to the same request; null: none. */
  repeats: { wire: 'repeats', kind: 'integer', isNullable: true, isAdded: true },
  /** The id of the last change that carried one: a call that is repeated after a lost answer is recognised by it. */
  changeId: { wire: 'change_id', kind: 'text', isNullable: true },
  /** Time at which its operator gave the money back outside Tollgate. */
  refundedAt: {
    wire: 'refunded_at',
    kind: 'integer',
    isNullable: true,
    shown: 'refunded_at',
    shownAs: 'date',
  },
  /** The operator's note about the money that was given back. */
  refundNote: { wire: 'refund_note', kind: 'text', isNullable: true, shown: 'refund_note' },
  /** Lines of the transfers that gave money back (`refund.ts`); null: none is recorded. */
  refunds: { wire: 'refunds', kind: 'text', isNullable: true, isAdded: true },
  /** The header's value as it was presented. Null once no request can need it: no store keeps what only a thief could use. */
  credential: {
    wire: 'credential',
    isKeptAside: true,
    kind: 'text',
    isNullable: true,
    example: 'eyJ4NDAyVmVyc2lvbiI6Mn0=',
  },
  search: { wire: 'search', kind: 'texts', isNullable: true },
  /** Lines of what happened to it, oldest first (`charge-history.ts`); null if it was made before any were kept. */
  events: { wire: 'events', kind: 'text', isNullable: true, isAdded: true },
  'proof.transaction': {
    wire: 'transaction',
    column: 'settled_transaction',
    kind: 'text',
    max: 128,
    shown: 'transaction',
    example: `0x${'8a'.repeat(32)}`,
  },
  /** Place of the transfer among the logs of its block; null if only a facilitator says so. */
  'proof.logIndex': {
    wire: 'log_index',
    column: 'settled_log_index',
    kind: 'integer',
    isNullable: true,
    shown: 'log_index',
    example: 3,
  },
  /** The amount of the charge. */
  'proof.amount': { wire: 'amount', sharesColumn: true, kind: 'units', example: '100000' },
  /** The payer of the payment. */
  'proof.payer': { wire: 'payer', sharesColumn: true, kind: 'text', max: 64, example: PAYER },
  /** Number of times that the upstream was asked, the first time included. */
  'asks.all': { wire: 'all', column: 'asks', kind: 'integer', shown: 'asked' },
  'asks.afterLostAnswer': { wire: 'after_lost_answer', column: 'asks_after_lost_answer', kind: 'integer' },
  'asks.afterFailure': { wire: 'after_failure', column: 'asks_after_failure', kind: 'integer' },
  'asks.afterUpload': { wire: 'after_upload', column: 'asks_after_upload', kind: 'integer' },
  'asks.afterDeath': { wire: 'after_death', column: 'asks_after_death', kind: 'integer' },
  'answer.status': { wire: 'status', column: 'answer_status', isKeptAside: true, kind: 'integer', min: 200, max: 599 },
  /** Headers as a flat list: name, value pairs. */
  'answer.headers': { wire: 'headers', column: 'answer_headers', isKeptAside: true, kind: 'headers', max: 32 * 1024 },
  'answer.body': { wire: 'body', column: 'answer_body', isKeptAside: true, kind: 'bytes', max: ANSWER_BYTES },
} as const satisfies Record<string, ChargeField>;

/** Parts that a charge may be without: null then. The first row of each says whether it is there. */
const NULLABLE_PARTS = ['proof', 'answer'] as const;

/** A row with its place in the charge: a member of one of its parts, or of the charge itself. Every row has every member. */
export type ChargeRow = {
  readonly part: string | undefined;
  readonly member: string;
  readonly wire: string;
  readonly column: string;
  readonly sharesColumn: boolean;
  readonly isKeptAside: boolean;
  readonly kind: keyof Kinds;
  readonly isNullable: boolean;
  readonly words: readonly (string | number)[] | undefined;
  readonly min: number;
  readonly max: number | undefined;
  readonly shown: string | undefined;
  readonly shownAs: 'date' | undefined;
  readonly isAdded: boolean;
  readonly example: WireExample | undefined;
};

export const CLAIM_ROWS = rowsOf(CLAIM_FIELDS);
export const PROGRESS_ROWS = rowsOf(PROGRESS_FIELDS);
export const CHARGE_ROWS: readonly ChargeRow[] = [...CLAIM_ROWS, ...PROGRESS_ROWS];

export function isNullablePart(part: string): boolean {
  return NULLABLE_PARTS.some((each) => each === part);
}

function rowsOf(fields: Readonly<Record<string, ChargeField>>): readonly ChargeRow[] {
  return Object.entries(fields).map(([path, field]) => {
    const dot = path.indexOf('.');
    return {
      part: dot < 0 ? undefined : path.slice(0, dot),
      member: path.slice(dot + 1),
      wire: field.wire,
      column: field.column ?? field.wire,
      sharesColumn: field.sharesColumn ?? false,
      isKeptAside: field.isKeptAside ?? false,
      kind: field.kind,
      isNullable: field.isNullable ?? false,
      words: field.words,
      min: field.min ?? 0,
      max: field.max,
      shown: field.shown,
      shownAs: field.shownAs,
      isAdded: field.isAdded ?? false,
      example: field.example,
    };
  });
}

type Fields = Readonly<Record<string, ChargeField>>;
type TopName<Path> = Path extends `${infer Part}.${string}` ? Part : Path;
type AbsentValue<Part> = Part extends (typeof NULLABLE_PARTS)[number] ? null : never;

type WordOf<F extends ChargeField> = F extends { readonly words: infer W extends readonly (string | number)[] }
  ? W[number]
  : Kinds[F['kind']];
type Nullable<F extends ChargeField> = F extends { readonly isNullable: true } ? null : never;
type ValueOf<F extends ChargeField> = WordOf<F> | Nullable<F>;
type WireKinds = Omit<Kinds, 'units' | 'seconds' | 'texts' | 'headers' | 'bytes'> & {
  units: string;
  seconds: string;
  texts: Record<string, string>;
  headers: string[];
  bytes: string;
};
type WireValueOf<F extends ChargeField> =
  | (F extends { readonly words: readonly unknown[] } ? WordOf<F> : WireKinds[F['kind']])
  | Nullable<F>;

type PartOf<T extends Fields, Part extends string> = {
  readonly [K in keyof T as K extends `${Part}.${infer Member}` ? Member : never]: ValueOf<T[K]>;
};
type PartWireOf<T extends Fields, Part extends string> = {
  [K in keyof T as K extends `${Part}.${string}` ? T[K]['wire'] : never]: WireValueOf<T[K]>;
};
type ValuesOf<T extends Fields> = {
  readonly [K in keyof T as TopName<K>]: K extends `${infer Part}.${string}`
    ? PartOf<T, Part> | AbsentValue<Part>
    : ValueOf<T[K]>;
};
type WireOf<T extends Fields> = {
  [K in keyof T as K extends `${infer Part}.${string}` ? Part : T[K]['wire']]: K extends `${infer Part}.${string}`
    ? PartWireOf<T, Part> | AbsentValue<Part>
    : WireValueOf<T[K]>;
};

type ClaimFields = typeof CLAIM_FIELDS;
type ProgressFields = typeof PROGRESS_FIELDS;

/** A part of a charge that a claim fixes. */
export type ClaimPart<Part extends string> = PartOf<ClaimFields, Part>;
/** A part of a charge that says what became of its claim. */
export type ProgressPart<Part extends string> = PartOf<ProgressFields, Part>;
export type ProgressPartWire<Part extends string> = PartWireOf<ProgressFields, Part>;
export type ClaimValues = ValuesOf<ClaimFields>;
export type ProgressValues = ValuesOf<ProgressFields>;
export type ClaimValuesWire = WireOf<ClaimFields>;
export type ProgressValuesWire = WireOf<ProgressFields>;

type AllFields = ClaimFields & ProgressFields;
type ShownValueOf<F extends ChargeField> = F extends { readonly shownAs: 'date' }
  ? string | Nullable<F>
  : WireValueOf<F>;
/** The members that people see. */
export type ShownValues = {
  [
    K in keyof AllFields as AllFields[K] extends { readonly shown: infer S extends string } ? S : never
  ]: K extends `${infer Part}.${string}` ? ShownValueOf<AllFields[K]> | AbsentValue<Part> : ShownValueOf<AllFields[K]>;
};
