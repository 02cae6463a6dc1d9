// What a sidecar asks of the ledger of its registry, and what it is told, as JSON: schemas that both ends validate with,
// and the one place where wire names become the code's and go back. Durations are bounded, so that no caller can hold a
// charge for ever.
import { z } from 'zod';
import {
  answerFromWire,
  answerToWire,
  answerWire,
  chargeWire,
  proofFromWire,
  proofToWire,
  proofWire,
  sha256,
  TARGET_CHARACTERS,
  text,
  uint,
} from './charge-wire.ts';
import { CONFLICTS } from './ledger.ts';
import { clipReason, REFUSALS, type ChargeEvent } from './transition.ts';

const HOUR_MS = 3_600_000;
export const leaseMs = z.int().min(0).max(HOUR_MS);
const retryInMs = z
  .int()
  .min(0)
  .max(24 * HOUR_MS);

export const owner = text(128);
export const changeId = text(64);

const presented = z.object({ credential_sha256: sha256, method: text(32), target: text(TARGET_CHARACTERS) });
const reason = z.string().max(1000);
const event = <K extends string, S extends z.ZodRawShape>(kind: K, shape: S) =>
  z.object({ kind: z.literal(kind), ...shape });

export const eventWire = z.union([
  event('settle_started', { lease_ms: leaseMs }),
  event('settled', { proof: proofWire, lease_ms: leaseMs }),
  event('settle_refused', { reason, final: z.boolean(), retry_in_ms: retryInMs }),
  event('settle_unknown', { reason, retry_in_ms: retryInMs }),
  event('released', { reason }),
  event('delivered', {}),
  event('answer_kept', { answer: answerWire }),
  event('undelivered', { because: z.enum(['upstream_failed', 'answer_lost']) }),
  event('redeem_started', { presented, lease_ms: leaseMs }),
  event('taken_over', { lease_ms: leaseMs, early: z.boolean() }),
  event('lease_renewed', { lease_ms: leaseMs }),
  event('failed', { by: z.literal('operator'), reason }),
  event('failed', { by: z.literal('chain'), chain_time: uint, reason }),
]);
export type EventWire = z.infer<typeof eventWire>;

export const claimedWire = z.union([
  z.object({
    kind: z.enum(['claimed', 'in_use', 'spent', 'redeemable', 'already_paid']),
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

export function eventFromWire(wire: EventWire): ChargeEvent {
  switch (wire.kind) {
    case 'settle_started':
    case 'lease_renewed':
      return { kind: wire.kind, leaseMs: wire.lease_ms };
    case 'taken_over':
      return { kind: 'taken_over', leaseMs: wire.lease_ms, early: wire.early };
    case 'settled':
      return { kind: 'settled', proof: proofFromWire(wire.proof), leaseMs: wire.lease_ms };
    case 'settle_refused':
      return { kind: 'settle_refused', reason: wire.reason, final: wire.final, retryInMs: wire.retry_in_ms };
    case 'settle_unknown':
      return { kind: 'settle_unknown', reason: wire.reason, retryInMs: wire.retry_in_ms };
    case 'answer_kept':
      return { kind: 'answer_kept', answer: answerFromWire(wire.answer) };
    case 'redeem_started': {
      const { credential_sha256, method, target } = wire.presented;
      return {
        kind: 'redeem_started',
        presented: { credentialSha256: credential_sha256, method, target },
        leaseMs: wire.lease_ms,
      };
    }
    case 'failed':
      return wire.by === 'operator'
        ? wire
        : { kind: 'failed', by: 'chain', chainTime: BigInt(wire.chain_time), reason: wire.reason };
    case 'released':
    case 'delivered':
    case 'undelivered':
      return wire;
    default:
      return wire satisfies never;
  }
}

export function eventToWire(change: ChargeEvent): EventWire {
  switch (change.kind) {
    case 'settle_started':
    case 'lease_renewed':
      return { kind: change.kind, lease_ms: change.leaseMs };
    case 'taken_over':
      return { kind: 'taken_over', lease_ms: change.leaseMs, early: change.early };
    case 'settled':
      return { kind: 'settled', proof: proofToWire(change.proof), lease_ms: change.leaseMs };
    case 'settle_refused':
      return {
        kind: 'settle_refused',
        reason: clipReason(change.reason),
        final: change.final,
        retry_in_ms: change.retryInMs,
      };
    case 'settle_unknown':
      return { kind: 'settle_unknown', reason: clipReason(change.reason), retry_in_ms: change.retryInMs };
    case 'answer_kept':
      return { kind: 'answer_kept', answer: answerToWire(change.answer) };
    case 'redeem_started': {
      const { credentialSha256, method, target } = change.presented;
      return {
        kind: 'redeem_started',
        presented: { credential_sha256: credentialSha256, method, target },
        lease_ms: change.leaseMs,
      };
    }
    case 'failed':
      return change.by === 'operator'
        ? { kind: 'failed', by: 'operator', reason: clipReason(change.reason) }
        : { kind: 'failed', by: 'chain', chain_time: change.chainTime.toString(), reason: clipReason(change.reason) };
    case 'released':
      return { kind: 'released', reason: clipReason(change.reason) };
    case 'delivered':
    case 'undelivered':
      return change;
    default:
      return change satisfies never;
  }
}
