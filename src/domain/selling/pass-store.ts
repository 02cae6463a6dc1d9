// The ports of the books of passes: what a gateway asks of its ledger, wherever that is, and what a store tells besides.
import type { AuditCause } from '../audit.ts';
import type { DrawChange, DrawResult } from './pass-book.ts';
import type { KeptPass } from './pass-opening.ts';

/** A pass that must be let in nowhere any more. Times are milliseconds since the epoch. */
export type RevokedPass = { readonly id: string; readonly revokedAt: number; readonly endsAt: number };

/**
 * Draws on passes. An implementation MUST make each change atomically and durably before it resolves, and answer one that it
 * knows as it did before. It rejects with LedgerUnavailable if it cannot say.
 */
export type PassLedger = {
  /** Names this run of the process: a request that draws is an owner of it (`ownerOf`). */
  readonly run: string;
  readonly change: (change: DrawChange) => Promise<DrawResult>;
  /** The uses in `ids` that belong to `run` are being worked on. Resolves with those that still are ours; need not be durable. */
  readonly renew: (run: string, ids: readonly string[], leaseMs: number) => Promise<readonly string[]>;
  /** Lists passes of a payer that have not ended: those that can be used, then those that are used up, each by their end. */
  readonly ofPayer: (payer: string) => Promise<readonly KeptPass[]>;
  /** Lists passes that were revoked since `after`, oldest first, and have not ended. */
  readonly revoked: (after: number, limit: number) => Promise<readonly RevokedPass[]>;
};

/** What a list of passes is to hold; undefined members choose nothing. */
export type PassFilter = {
  readonly plan?: string | undefined;
  /** Id of the terms in their plan. */
  readonly terms?: string | undefined;
  readonly payer?: string | undefined;
  /** True: passes that can be used; false: those that ended, were revoked or are used up. */
  readonly live?: boolean | undefined;
  /** The number of a pass: only older ones. */
  readonly before?: number | undefined;
  readonly limit: number;
};

/** A pass in a list. `seq` is the list's cursor. */
export type ListedPass = KeptPass & { readonly seq: number };

/** What was sold by passes of one currency and not used yet: units of the currency's 10^-18. */
export type OutstandingSum = { readonly currency: string; readonly units: bigint };

/** Keeps passes, and tells of them. */
export type PassStore = PassLedger & {
  /** Newest first. */
  readonly list: (filter: PassFilter) => Promise<readonly ListedPass[]>;
  readonly get: (id: string) => Promise<ListedPass | undefined>;
  /** Revokes a pass; undefined: there is none. One that is revoked stays as it is. `cause` goes into the audit log. */
  readonly revoke: (id: string, cause?: AuditCause) => Promise<ListedPass | undefined>;
  readonly outstanding: () => Promise<readonly OutstandingSum[]>;
  /** Ends reservations that nobody works on any more, at most `limit`; true if there may be more. */
  readonly endLost: (limit: number) => Promise<boolean>;
};

/** The form of the id of a use. */
export const USE_ID = /^use_[A-Za-z0-9_-]{1,124}$/;
/** Changes that one call of a ledger elsewhere takes at most. */
export const MOST_DRAW_CHANGES = 100;
/** Passes that are looked at for one payer: all that can be used, which are four of each of 64 plans at most. */
export const MOST_OF_PAYER = 256;
/** Revoked passes that are told at once. */
export const MOST_REVOKED = 1000;
/** Passes of one payer and plan that are good at a time. */
export const PASSES_OF_A_PAYER = 4;
/** Passes that are good at a time. */
export const MOST_LIVE_PASSES = 1_000_000;
