// The port of a store for the audit log. Entries about a change of the store are written by the call that makes the change, in
// its transaction; this port reads them, and adds those about what no store keeps.
import type { AuditEntry, AuditKind } from '../../domain/audit.ts';

/** Place of an entry in the log: its time, and its number among entries. */
export type AuditPlace = { readonly at: number; readonly n: number };

export type StoredAudit = AuditEntry & AuditPlace;

export type AuditFilter = {
  readonly subject?: string | undefined;
  readonly actor?: string | undefined;
  readonly kind?: AuditKind | undefined;
  /** Bounds of its time: at or after the first, and before the second, milliseconds since the epoch. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Entries before this place. */
  readonly before?: AuditPlace | undefined;
  readonly limit: number;
};

/** Every call rejects with StoreUnavailable if the store cannot do or say it; a write resolves only once it is durable. */
export type AuditStore = {
  readonly add: (entry: AuditEntry) => Promise<void>;
  /** Newest first. */
  readonly list: (filter: AuditFilter) => Promise<readonly StoredAudit[]>;
  /** Takes away a bounded part of the entries from before `beforeMs`, and of those beyond the newest `most`; whether there is more. */
  readonly prune: (beforeMs: number, most: number) => Promise<boolean>;
};
