// Passes, and changes of their books, between a sidecar and the ledger of its registry, as JSON. Both ends validate with these
// schemas. Amounts are decimal digits, in the unit of the pass's books.
import { z } from 'zod';
import { railTexts, sha256, text } from '../payment/charge-shapes.ts';
import { leaseMs, owner } from '../payment/ledger-wire.ts';
import {
  DRAW_ENDS,
  DRAW_KEY_MS,
  DRAW_REFUSALS,
  GIVE_BACK_REASONS,
  type BookTerms,
  type DrawChange,
  type DrawResult,
} from './pass-book.ts';
import type { KeptPass } from './pass-opening.ts';
import { MOST_DRAW_CHANGES, MOST_OF_PAYER, MOST_REVOKED, USE_ID, type RevokedPass } from './pass-store.ts';
import { chargeIdOfPass, PASS_ID, PASS_KINDS, readPassInSale, writePassInSale } from './pass.ts';

export const passId = z.string().regex(PASS_ID, 'a pass id');
export const useId = z.string().regex(USE_ID, 'the id of a use');
const units = z.string().regex(/^(0|[1-9]\d{0,77})$/, 'an unsigned integer, in decimal');
const time = z.int().min(0);
const count = z.int().min(0);
/** Times that the upstream may be asked for one key, whatever it stands for. */
const MOST_ASKS = 100;

const named = { use_id: useId, owner };
const changeWire = z.union([
  z.object({
    kind: z.literal('reserve'),
    ...named,
    amount: units,
    lease_ms: leaseMs,
    key: z
      .object({
        ...{ sha256, method: text(32), target_sha256: sha256 },
        ...{ for_ms: z.int().min(1).max(DRAW_KEY_MS).optional(), asks: z.int().min(1).max(MOST_ASKS).optional() },
      })
      .nullable(),
    of: z.object({ plan_id: text(64), route_id: text(64), kind: z.enum(PASS_KINDS), currency: text(10) }),
  }),
  z.object({ kind: z.literal('take'), ...named, amount: units.nullable() }),
  z.object({
    kind: z.literal('give_back'),
    ...named,
    because: z.enum(GIVE_BACK_REASONS),
    key_sha256: sha256.optional(),
  }),
]);
const resultWire = z.union([
  z.object({ kind: z.enum(DRAW_ENDS), use_id: useId, left: units, terms_id: text(64), worth: units }),
  z.object({ kind: z.enum(DRAW_REFUSALS) }),
]);
const keptWire = z.object({
  id: passId,
  /** What was sold, as the charge has it. */
  terms: railTexts,
  ...{ route_id: text(64), payer: text(64), network: text(64), amount: text(40), currency: text(10) },
  ...{ sold_at: time, ends_at: time, revoked_at: time.nullable() },
  ...{ sold: units, drawn: units, reserved: units, uses: count, lost: count, gone: count },
});

export const drawChangesWire = z.object({ changes: z.array(changeWire).min(1).max(MOST_DRAW_CHANGES) });
export const drawResultsWire = z.object({ results: z.array(resultWire).max(MOST_DRAW_CHANGES) });
export const keptPassesWire = z.object({ data: z.array(keptWire).max(MOST_OF_PAYER) });
export const revokedPassesWire = z.object({
  data: z.array(z.object({ id: passId, revoked_at: time, ends_at: time })).max(MOST_REVOKED),
});

type ChangeWire = z.output<typeof changeWire>;
type ResultWire = z.output<typeof resultWire>;
type KeptWire = z.output<typeof keptWire>;

export function drawToWire(change: DrawChange): ChangeWire {
  const names = { use_id: change.useId, owner: change.owner };
  switch (change.kind) {
    case 'reserve': {
      const { kind, amount, leaseMs: lease, key, of } = change;
      return {
        ...{ kind, ...names, amount: amount.toString(), lease_ms: lease },
        key: key && {
          ...{ sha256: key.sha256, method: key.method, target_sha256: key.targetSha256 },
          ...{ for_ms: key.forMs, asks: key.asks },
        },
        of: { plan_id: of.planId, route_id: of.routeId, kind: of.kind, currency: of.currency },
      };
    }
    case 'take':
      return { kind: change.kind, ...names, amount: change.amount?.toString() ?? null };
    case 'give_back':
      return { kind: change.kind, ...names, because: change.because, key_sha256: change.keySha256 };
    default:
      return change satisfies never;
  }
}

export function drawFromWire(ofPass: string, wire: ChangeWire): DrawChange {
  const names = { passId: ofPass, useId: wire.use_id, owner: wire.owner };
  switch (wire.kind) {
    case 'reserve': {
      const { kind, amount, lease_ms: lease, key, of } = wire;
      return {
        ...{ kind, ...names, amount: BigInt(amount), leaseMs: lease },
        key: key && {
          ...{ sha256: key.sha256, method: key.method, targetSha256: key.target_sha256 },
          ...{ forMs: key.for_ms, asks: key.asks },
        },
        of: { planId: of.plan_id, routeId: of.route_id, kind: of.kind, currency: of.currency },
      };
    }
    case 'take':
      return { kind: wire.kind, ...names, amount: wire.amount === null ? null : BigInt(wire.amount) };
    case 'give_back':
      return { kind: wire.kind, ...names, because: wire.because, keySha256: wire.key_sha256 };
    default:
      return wire satisfies never;
  }
}

export function drawResultToWire(result: DrawResult): ResultWire {
  if (!('useId' in result)) return { kind: result.kind };
  const { kind, useId: id, left, termsId, worth } = result;
  return { kind, use_id: id, left: left.toString(), terms_id: termsId, worth: worth.toString() };
}

export function drawResultFromWire(wire: ResultWire): DrawResult {
  if (!('use_id' in wire)) return { kind: wire.kind };
  const { kind, use_id: id, left, terms_id: termsId, worth } = wire;
  return { kind, useId: id, left: BigInt(left), termsId, worth: BigInt(worth) };
}

export function keptPassToWire({ pass, book }: KeptPass): KeptWire {
  return {
    ...{ id: pass.passId, terms: { ...writePassInSale(pass) }, route_id: pass.routeId, payer: pass.payer },
    ...{ network: pass.network, amount: pass.amount, currency: pass.currency },
    ...{ sold_at: pass.soldAtMs, ends_at: book.endsAt, revoked_at: book.revokedAt },
    ...{ sold: book.sold.toString(), drawn: book.drawn.toString(), reserved: book.reserved.toString() },
    ...{ uses: book.uses, lost: book.lost, gone: book.left },
  };
}

/** Reads a pass; undefined if its terms are none that are known here. */
export function keptPassFromWire(wire: KeptWire): KeptPass | undefined {
  const sale = readPassInSale(wire.terms);
  if (sale === undefined) return undefined;
  const { id, route_id: routeId, amount, currency, payer, network, sold_at: soldAtMs, ends_at: endsAt } = wire;
  const { planId, termsId, kind, scope } = sale;
  const terms: BookTerms = { planId, termsId, kind, scope, routeId, amount, currency };
  return {
    pass: {
      ...sale,
      ...{ passId: id, chargeId: chargeIdOfPass(id), routeId, payer, network, amount, currency },
      ...{ soldAtMs, endsAtMs: endsAt },
    },
    book: {
      ...{ id, terms, endsAt, revokedAt: wire.revoked_at, uses: wire.uses, lost: wire.lost, left: wire.gone },
      ...{ sold: BigInt(wire.sold), drawn: BigInt(wire.drawn), reserved: BigInt(wire.reserved) },
    },
  };
}

export function revokedToWire({ id, revokedAt, endsAt }: RevokedPass): z.output<typeof revokedPassesWire>['data'][0] {
  return { id, revoked_at: revokedAt, ends_at: endsAt };
}
