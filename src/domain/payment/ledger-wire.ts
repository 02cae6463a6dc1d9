// Calls of a sidecar to the ledger of its registry, and their results, as JSON. Both ends validate with these schemas.
// Only here are names of the wire turned into the code's and back. Durations are bounded, so that no caller can hold a
// charge for ever.
import { z } from 'zod';
import {
  answerFromWire,
  answerToWire,
  answerWire,
  chargeId,
  chargeWire,
  proofFromWire,
  proofToWire,
  proofWire,
  railWire,
  sha256,
  text,
} from './charge-wire.ts';
import { LOCAL_RUN } from './charge.ts';
import { CONFLICTS, MAX_RENEWED } from './ledger.ts';
import { clipReason, REFUSALS, type ChargeEvent } from './transition.ts';

const HOUR_MS = 3_600_000;
export const leaseMs = z.int().min(0).max(HOUR_MS);
const lookInMs = z
  .int()
  .min(0)
  .max(24 * HOUR_MS);

export const owner = text(128).refine((name) => !name.startsWith(LOCAL_RUN), 'no owner of a process beside the store');
export const changeId = text(64);

const request = z.object({ credential_sha256: sha256, method: text(32), target_sha256: sha256 });
const reason = z.string().max(1000);
const unasked = z.literal(true).optional();
const event = <K extends string, S extends z.ZodRawShape>(kind: K, shape: S) =>
  z.object({ kind: z.literal(kind), ...shape });

/** What a sidecar may do: the word of an operator is given where the ledger is. */
export const eventWire = z.union([
  event('settle_started', { via: text(128), lease_ms: leaseMs }),
  event('not_carried_out', { reason, unasked }),
  event('settled', { proof: proofWire, lease_ms: leaseMs }),
  event('settle_refused', { reason }),
  // An older sidecar does not say what it searched.
  event('settle_unknown', { reason, look_in_ms: lookInMs, search: railWire.nullish() }),
  event('looked', { at: z.enum(['start', 'end']), search: railWire.nullable(), look_in_ms: lookInMs, reason }),
  event('failed', { by: z.literal('chain'), reason }),
  event('released', { reason, unasked }),
  event('taken_over', { lease_ms: leaseMs }),
  event('delivered', { partial: z.boolean() }),
  event('answer_kept', { answer: answerWire, head_sent: z.boolean() }),
  event('undelivered', {
    because: z.enum(['answer_lost', 'answer_dropped', 'upstream_failed', 'upload_broken_off', 'not_asked']),
    head_sent: z.boolean(),
    status: z.int().min(200).max(999).optional(),
  }),
  event('redeem_started', { request, lease_ms: leaseMs }),
]);
type EventWire = z.infer<typeof eventWire>;

export const claimedWire = z.union([
  z.object({
    kind: z.enum(['claimed', 'in_use', 'unfinished', 'spent', 'redeemable', 'already_paid']),
    charge: chargeWire,
  }),
  z.object({ kind: z.enum(['quote_already_used', 'too_many_unsettled']) }),
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

export const renewalsWire = z.object({ owner, ids: z.array(chargeId).max(MAX_RENEWED), lease_ms: leaseMs.min(1) });
export const renewedWire = z.object({ ids: z.array(chargeId).max(MAX_RENEWED) });

export function eventFromWire(wire: EventWire): ChargeEvent {
  switch (wire.kind) {
    case 'settle_started':
      return { kind: wire.kind, via: wire.via, leaseMs: wire.lease_ms };
    case 'settled':
      return { kind: wire.kind, proof: proofFromWire(wire.proof), leaseMs: wire.lease_ms };
    case 'settle_unknown':
      return { kind: wire.kind, reason: wire.reason, lookInMs: wire.look_in_ms, search: wire.search };
    case 'looked':
      return { kind: wire.kind, at: wire.at, search: wire.search, lookInMs: wire.look_in_ms, reason: wire.reason };
    case 'taken_over':
      return { kind: wire.kind, leaseMs: wire.lease_ms };
    case 'answer_kept':
      return { kind: wire.kind, answer: answerFromWire(wire.answer), headSent: wire.head_sent };
    case 'undelivered':
      return { kind: wire.kind, because: wire.because, headSent: wire.head_sent, status: wire.status };
    case 'redeem_started': {
      const { credential_sha256, method, target_sha256 } = wire.request;
      return {
        kind: wire.kind,
        request: { credentialSha256: credential_sha256, method, targetSha256: target_sha256 },
        leaseMs: wire.lease_ms,
      };
    }
    case 'not_carried_out':
    case 'settle_refused':
    case 'failed':
    case 'released':
    case 'delivered':
      return wire;
    default:
      return wire satisfies never;
  }
}

/** Throws for what only an operator says. */
export function eventToWire(change: ChargeEvent): EventWire {
  switch (change.kind) {
    case 'settle_started':
      return { kind: change.kind, via: change.via, lease_ms: change.leaseMs };
    case 'settled':
      if (change.by === 'operator') throw new TypeError(OPERATORS);
      return { kind: change.kind, proof: proofToWire(change.proof), lease_ms: change.leaseMs };
    case 'settle_unknown':
      return {
        kind: change.kind,
        reason: clipReason(change.reason),
        look_in_ms: change.lookInMs,
        ...(change.search ? { search: { ...change.search } } : {}),
      };
    case 'looked':
      return {
        kind: change.kind,
        at: change.at,
        search: change.search === null ? null : { ...change.search },
        look_in_ms: change.lookInMs,
        reason: clipReason(change.reason),
      };
    case 'taken_over':
      return { kind: change.kind, lease_ms: change.leaseMs };
    case 'answer_kept':
      return { kind: change.kind, answer: answerToWire(change.answer), head_sent: change.headSent };
    case 'undelivered':
      return { kind: change.kind, because: change.because, head_sent: change.headSent, status: change.status };
    case 'redeem_started': {
      const { credentialSha256, method, targetSha256 } = change.request;
      return {
        kind: change.kind,
        request: { credential_sha256: credentialSha256, method, target_sha256: targetSha256 },
        lease_ms: change.leaseMs,
      };
    }
    case 'failed':
      if (change.by === 'operator') throw new TypeError(OPERATORS);
      return { kind: change.kind, by: change.by, reason: clipReason(change.reason) };
    case 'settle_refused':
      return { kind: change.kind, reason: clipReason(change.reason) };
    case 'not_carried_out':
    case 'released':
      return { kind: change.kind, reason: clipReason(change.reason), unasked: change.unasked };
    case 'delivered':
      return change;
    case 'refunded':
      throw new TypeError(OPERATORS);
    default:
      return change satisfies never;
  }
}

const OPERATORS = 'the word of an operator is given where the ledger is, not over HTTP';
