// Calls of a sidecar to the ledger of its registry, and their results, as JSON. Both ends validate with these schemas.
// Each event that may cross is one row: its members in the order of the wire, whose names on the wire, schemas and
// changes on the way stand once. Durations are bounded, so that no caller can hold a charge for ever.
import { z } from 'zod';
import { railTexts, sha256, text } from './charge-shapes.ts';
import { answerCodec, chargeWire, proofCodec } from './charge-wire.ts';
import { CONFLICTS, MAX_RENEWED } from './ledger.ts';
import { LOCAL_RUN } from './run-names.ts';
import { clipReason, REFUSALS, type ChargeEvent, type ReportedRequest } from './transition.ts';
import type { PresentedRequest } from './claim-policy.ts';

const HOUR_MS = 3_600_000;
export const leaseMs = z.int().min(0).max(HOUR_MS);

export const owner = text(128).refine((name) => !name.startsWith(LOCAL_RUN), 'no owner of a process beside the store');
export const changeId = text(64);

/** A member of an event: its name on the wire, its schema there, and what becomes of a value that crosses. */
type Member = {
  readonly wire: string;
  readonly schema: z.ZodType;
  readonly fromWire?: (value: never) => unknown;
  readonly toWire?: (value: never) => unknown;
};

const via = { wire: 'via', schema: text(128) };
const lease = { wire: 'lease_ms', schema: leaseMs };
const reason = { wire: 'reason', schema: z.string().max(1000), toWire: clipReason };
const unasked = { wire: 'unasked', schema: z.literal(true).optional() };
const proof = { ...proofCodec, wire: 'proof' };
const answer = { ...answerCodec, wire: 'answer' };
const headSent = { wire: 'head_sent', schema: z.boolean() };
const lookIn = {
  wire: 'look_in_ms',
  schema: z
    .int()
    .min(0)
    .max(24 * HOUR_MS),
};
const asker = z.object({
  dialect: text(16),
  ask_sha256: sha256.nullable(),
  route_id: text(64),
  repeat_window_ms: leaseMs,
});
const request = {
  wire: 'request',
  schema: z.object({ credential_sha256: sha256, method: text(32), target_sha256: sha256, asker: asker.optional() }),
  fromWire: (wire: PresentedRequestWire): PresentedRequest => ({
    credentialSha256: wire.credential_sha256,
    method: wire.method,
    targetSha256: wire.target_sha256,
    asker: wire.asker && {
      dialect: wire.asker.dialect,
      askSha256: wire.asker.ask_sha256,
      routeId: wire.asker.route_id,
      repeatWindowMs: wire.asker.repeat_window_ms,
    },
  }),
  toWire: (presented: PresentedRequest): PresentedRequestWire => ({
    credential_sha256: presented.credentialSha256,
    method: presented.method,
    target_sha256: presented.targetSha256,
    asker: presented.asker && {
      dialect: presented.asker.dialect,
      ask_sha256: presented.asker.askSha256,
      route_id: presented.asker.routeId,
      repeat_window_ms: presented.asker.repeatWindowMs,
    },
  }),
};
type PresentedRequestWire = {
  credential_sha256: string;
  method: string;
  target_sha256: string;
  asker?: z.output<typeof asker> | undefined;
};
const reported = {
  wire: 'request',
  schema: z.object({ dialect: text(16), method: text(32), target_sha256: sha256 }),
  fromWire: (wire: ReportedRequestWire): ReportedRequest => ({
    dialect: wire.dialect,
    method: wire.method,
    targetSha256: wire.target_sha256,
  }),
  toWire: ({ dialect, method, targetSha256 }: ReportedRequest): ReportedRequestWire => ({
    dialect,
    method,
    target_sha256: targetSha256,
  }),
};
type ReportedRequestWire = { dialect: string; method: string; target_sha256: string };

const UNDELIVERED_BECAUSE = [
  'answer_lost',
  'answer_dropped',
  'upstream_failed',
  'upload_broken_off',
  'not_asked',
] as const;

/** Events that a sidecar may send: the word of an operator is given where the ledger is. */
const EVENTS = {
  settle_started: { via, leaseMs: lease },
  not_carried_out: { reason, unasked },
  settled: { proof, leaseMs: lease },
  settle_refused: { reason },
  settle_unknown: {
    reason,
    lookInMs: lookIn,
    // An older sidecar does not say what it searched.
    search: {
      wire: 'search',
      schema: railTexts.nullish(),
      toWire: (search: object | null | undefined) => search ?? undefined,
    },
  },
  looked: {
    at: { wire: 'at', schema: z.enum(['start', 'end']) },
    search: { wire: 'search', schema: railTexts.nullable() },
    lookInMs: lookIn,
    reason,
  },
  failed: { by: { wire: 'by', schema: z.literal('chain') }, reason },
  released: { reason, unasked },
  taken_over: { leaseMs: lease },
  delivered: { partial: { wire: 'partial', schema: z.boolean() } },
  answer_kept: { answer, headSent },
  undelivered: {
    because: { wire: 'because', schema: z.enum(UNDELIVERED_BECAUSE) },
    headSent,
    status: { wire: 'status', schema: z.int().min(200).max(999).optional() },
  },
  redeem_started: { request, leaseMs: lease },
  allow_repeated: { request },
  failure_reported: { request: reported },
} as const satisfies { [K in Kind]: { readonly [M in MemberOf<K>]: Member } };

type Kind = Exclude<ChargeEvent['kind'], 'refunded'>;
type MemberOf<K extends Kind> = Exclude<
  keyof Extract<ChargeEvent, { readonly kind: K }>,
  'kind' | (K extends 'settled' ? 'by' : never)
>;
type Members = Readonly<Record<string, Member>>;
type ValueOf<M extends Member> = z.output<M['schema']>;
type EventWireOf<K extends Kind, E extends Members> = { kind: K } & {
  [M in keyof E as undefined extends ValueOf<E[M]> ? never : E[M]['wire']]: ValueOf<E[M]>;
} & { [M in keyof E as undefined extends ValueOf<E[M]> ? E[M]['wire'] : never]?: ValueOf<E[M]> };
type EventWire = { [K in Kind]: EventWireOf<K, (typeof EVENTS)[K]> }[Kind];

const MEMBERS: ReadonlyMap<string, readonly (readonly [name: string, member: Member])[]> = new Map(
  Object.entries<Members>(EVENTS).map(([kind, members]) => [kind, Object.entries(members)]),
);

export const eventWire = z.union(
  [...MEMBERS].map(([kind, members]) => {
    const shape = Object.fromEntries(members.map(([, { wire, schema }]) => [wire, schema]));
    return z.object({ kind: z.literal(kind), ...shape });
  }),
) as unknown as z.ZodType<EventWire, EventWire>;

export const claimedWire = z.union([
  z.object({
    kind: z.enum(['claimed', 'in_use', 'unfinished', 'spent', 'redeemable', 'already_paid']),
    charge: chargeWire,
  }),
  z.object({ kind: z.enum(['quote_already_used', 'too_many_unsettled', 'too_many_passes']) }),
]);
export const advancedWire = z.union([
  z.object({ kind: z.literal('ok'), charge: chargeWire }),
  z.object({
    kind: z.literal('conflict'),
    because: z.enum([...REFUSALS, ...CONFLICTS]),
    charge: chargeWire.nullable(),
  }),
]);
export const chargesWire = z.object({ data: z.array(chargeWire) });

/** Ids of charges and of uses of passes: what is being worked on. */
const leased = z.string().regex(/^(chg|use)_[A-Za-z0-9_-]{1,124}$/, 'the id of a charge or of a use');
export const renewalsWire = z.object({ owner, ids: z.array(leased).max(MAX_RENEWED), lease_ms: leaseMs.min(1) });
export const renewedWire = z.object({ ids: z.array(leased).max(MAX_RENEWED) });

export function eventFromWire(wire: EventWire): ChargeEvent {
  const from: Readonly<Record<string, unknown>> = wire;
  const event: Record<string, unknown> = { kind: wire.kind };
  for (const [name, member] of MEMBERS.get(wire.kind) ?? []) {
    const value = from[member.wire];
    event[name] = member.fromWire === undefined ? value : member.fromWire(value as never);
  }
  return event as ChargeEvent;
}

/** Throws for what only an operator says. */
export function eventToWire(event: ChargeEvent): EventWire {
  const members = MEMBERS.get(event.kind);
  if (members === undefined || ('by' in event && event.by === 'operator'))
    throw new TypeError('the word of an operator is given where the ledger is, not over HTTP');
  const from: Readonly<Record<string, unknown>> = event;
  const wire: Record<string, unknown> = { kind: event.kind };
  for (const [name, member] of members) {
    const value = from[name];
    wire[member.wire] = member.toWire === undefined ? value : member.toWire(value as never);
  }
  return wire as EventWire;
}
