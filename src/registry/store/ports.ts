// The ports of a store: routes with the numbered log of their changes, API keys, and the ledger of charges. Each kind
// of store is a folder beside this file that implements it; store-kinds.ts chooses.
import type { AuditCause } from '../../domain/audit.ts';
import type { Scope } from '../../domain/scope.ts';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import { LedgerUnavailable, type ChargeKeeping, type ChargeStore } from '../../domain/payment/ledger.ts';
import type { CounterStore } from '../../domain/selling/counter.ts';
import type { PassStore } from '../../domain/selling/pass-store.ts';
import type { TotalsStore } from '../../domain/totals/totals-store.ts';
import type { WebhookStore } from '../../domain/webhooks/webhook-store.ts';
import type { Route, RouteWire } from '../../domain/routing/route.ts';
import type { Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { DeclaredRoute } from '../routes/three-way-merge.ts';
import type { AttentionStore } from './attention-ports.ts';
import type { AuditStore } from './audit-ports.ts';
import type { CopySource, CopyTarget } from './copy-ports.ts';
import type { DeskStore } from './desk-ports.ts';

/** A store that is named in the configuration and not open yet. */
export type StorePlace = {
  /** Whether other processes may serve it at the same time, with files of their own. */
  readonly isShared: boolean;
  /** Whether anything was ever kept there. */
  readonly exists: () => boolean;
  /** Locks the store for its one serving process, if it has but one. Throws a sentence that names who holds it. */
  readonly lock: (holder: Holder) => StoreLock;
  /** Brings its schema up to date, and makes it if there is none; the versions that were applied. Rejects with a sentence. */
  readonly migrate: (onUpgrade?: UpgradeListener) => Promise<readonly number[]>;
  /** Whether there is nothing for `migrate` to do; makes and changes nothing. Rejects with a sentence. */
  readonly isMigrated: () => Promise<boolean>;
  /** Statements that let a user of its database keep charges and do nothing else; undefined if it knows no users. Throws what is wrong with the name. */
  readonly grants: (user: string) => readonly string[] | undefined;
  /** Finds what an operator should know of it before this configuration uses it; asks it, and changes nothing. */
  readonly examine: (use: StoreUse) => Promise<readonly StoreRemark[]>;
  /** Reads its routes, and makes, migrates or writes nothing. Rejects if it cannot, or an older version wrote them. */
  readonly readRoutes: () => Promise<readonly StoredRoute[]>;
  /** Opens the store, migrated. Rejects with a sentence. */
  readonly open: (options: OpenOptions) => Promise<Store>;
  /** Opens its charges, with the first call. */
  readonly openCharges: (options: ChargesOptions) => ChargesStore;
  /**
   * Opens it to copy from it as its one process; without `holder` to rehearse that beside others. Throws a sentence.
   * Undefined: not from this kind.
   */
  readonly openSource?: (holder: Holder | undefined) => CopySource;
  /** Opens it to copy into it; undefined: not into this kind. */
  readonly openTarget?: () => CopyTarget;
  /** Measures the store; undefined if it cannot be asked. */
  readonly stats: () => Promise<StoreStats | undefined>;
};

/** Use of a store by one running Tollgate: `processes` with their workers. */
export type StoreUse = { readonly processes: number; readonly isRegistry: boolean };
/** Remark about a store. `detail` is a sentence. */
export type StoreRemark = {
  readonly level: 'ok' | 'warning' | 'cannot_serve' | 'away';
  readonly detail: string;
};

type OpenOptions = ChargesOptions & {
  readonly random: Random;
  /** A server, which stalls no request for a write, or a command that has nothing else to do. */
  readonly as: 'server' | 'command';
  readonly onUpgrade?: UpgradeListener;
  /** Hears why a server has to wait for a store that others share. */
  readonly waits?: (because: string) => void;
};

export type ChargesOptions = {
  /** Time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
  /** Hears of each call to a store that others share. */
  readonly observe?: ObserveStore | undefined;
  /**
   * Whether only this process and commands use the store: leases of its own earlier runs are over, and clocks that are
   * set move leases along.
   */
  readonly alone?: boolean;
  /** Names this run of the process; drawn if left out. */
  readonly run?: string | undefined;
};

export type Store = {
  readonly isShared: boolean;
  readonly routes: RouteStore;
  readonly apiKeys: ApiKeyStore;
  readonly desk: DeskStore;
  readonly audit: AuditStore;
  readonly attention: AttentionStore;
  /** Opened with its first call. */
  readonly charges: ChargesStore;
  /** Measures the store; undefined if it cannot be asked. */
  readonly stats: () => Promise<StoreStats | undefined>;
  /**
   * Tells the other processes on a store what this one goes by, in place of what it said before. Calls `differs` for
   * each setting that another process has otherwise, now or later.
   */
  readonly share?: (own: CommonSettings, differs: (setting: keyof CommonSettings) => void) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Settings that all processes on a store should have alike, each as a digest. */
export type CommonSettings = Readonly<Record<'receivers' | 'api_keys' | 'webhooks', string>>;

/** The store cannot do or say it: a write may have happened or not. For operators, not for clients. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The store says no, perhaps to this process alone: to its password, its rights, its TLS or its version. */
export class StoreRefused extends LedgerUnavailable {}

/** Store of charges. `check` rejects with StoreRefused if the store is there and says no. */
export type ChargesStore = ChargeStore &
  ChargeReports &
  ChargeKeeping & {
    /** Ends the leases of a run whose process is gone, such as a worker's. */
    readonly endRun: (run: string) => Promise<void>;
    /** Counters of requests beside the charges. */
    readonly counters: CounterStore;
    /** Passes that were sold, and draws on them. */
    readonly passes: PassStore;
    /** Sums beside the charges. */
    readonly totals: TotalsStore;
    /** Events on their way to endpoints. */
    readonly webhooks: WebhookStore;
    /** Load of this process on a store that others share; undefined if there are none. */
    readonly load?: () => StoreLoad;
  };

/**
 * Operation on a store. `batch`: calls of the ledger in one transaction; `claim`: of a new payment, as its caller waits
 * for it; `change`: of routes or keys.
 */
export type StoreOperation = 'batch' | 'claim' | 'read' | 'change';
/**
 * Result of an operation. `refused`: the store said no; `unknown`: its answer did not come; `failed`: it was not
 * reached in time.
 */
export type StoreResult = 'ok' | 'refused' | 'unknown' | 'failed';
export type ObserveStore = {
  readonly call: (operation: StoreOperation, result: StoreResult, seconds: number) => void;
  /** Calls of the ledger that went out in one transaction. */
  readonly batch: (calls: number) => void;
};

/** Connections that are open, and those of them that somebody uses; calls of the ledger that wait for one. */
export type StoreLoad = { readonly open: number; readonly busy: number; readonly waiting: number };

export type ChangeKind = 'created' | 'updated' | 'deleted';

/** The state of the whole set. `stamp` is new with every write, also if a restored backup repeats a revision. */
export type Head = { readonly revision: number; readonly stamp: string };

/** Writer of a route. A name may hold anything; what stands before it says whose it is. */
export type Writer = 'config' | `dashboard:${string}` | `api_key:${string}`;

/** Writer of a route, with what the audit log says of him; a writer alone says that himself. */
export type Author = { readonly writer: Writer; readonly cause: AuditCause };

/** Route as it is stored. `seq` is the revision that made it: the order of creation, and a list's cursor. */
export type StoredRoute = Route & {
  readonly seq: number;
  readonly writtenBy: Writer;
  /** Route as the configuration said it when it was last applied; null if it never did. */
  readonly declared: DeclaredRoute | null;
};
/** The store gives it its number. */
export type NewRoute = Omit<StoredRoute, 'seq'>;

/**
 * Routes with the numbered log of their changes. Every call rejects with StoreUnavailable if the store cannot do or say it;
 * a write resolves only once it is durable.
 */
export type RouteStore = {
  /** Drawn when the store was made: a sidecar tells one registry from another by it. */
  readonly registryId: string;
  /** Oldest first. */
  readonly load: () => Promise<{ readonly head: Head; readonly routes: readonly StoredRoute[] }>;
  /**
   * Writes in one transaction, with an outcome for each write. With `ifRevision` it is `moved` if the set has another
   * revision by then; and if one of the writes is not written, none is, and it rejects.
   */
  readonly write: (writes: readonly RouteWrite[], options: WriteOptions) => Promise<RouteWriteResult | 'moved'>;
  /** Oldest first; `too_old` if the log does not reach back that far, or ahead. */
  readonly changesAfter: (revision: number, limit: number) => Promise<readonly StoredChange[] | 'too_old'>;
  /** Changes of one route before `beforeRevision`, newest first, also of one that was deleted. */
  readonly history: (
    routeId: string,
    beforeRevision: number | undefined,
    limit: number,
  ) => Promise<readonly RouteChange[]>;
  /** Calls `hint` when others may have written; returns how to stop. A hint is never the truth itself. */
  readonly watch: (hint: () => void) => () => void;
};

/**
 * Write of a route. `key`: the pattern's, of which there is one for each method. `was`: the stored route as the caller
 * knows it. `cause` goes into the audit log in the same transaction; left out, it is the writer.
 */
export type RouteWrite = { readonly cause?: AuditCause | undefined } & (
  | { readonly kind: 'insert'; readonly route: NewRoute; readonly key: string }
  | { readonly kind: 'update'; readonly route: StoredRoute; readonly key: string; readonly was: StoredRoute }
  | { readonly kind: 'delete'; readonly was: StoredRoute; readonly by: Writer; readonly at: string }
);
export type WriteOptions = {
  /** Routes that there may be. */
  readonly maxRoutes: number;
  readonly ifRevision?: number;
};
export type RouteWriteResult = { readonly head: Head; readonly outcomes: readonly WriteOutcome[] };
/** An update that changes nothing but `declared` has no revision of its own: it is written at that of the set. */
export type WriteOutcome =
  | { readonly kind: 'written'; readonly revision: number }
  /** Another route has this method and pattern key. */
  | Conflict
  /** The stored route is not as it was known. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'full'; readonly limit: number };
export type Conflict = { readonly kind: 'conflict'; readonly existing: StoredRoute };

/** A change of the set; a deleted route is given as it was. */
export type StoredChange = Head & { readonly kind: ChangeKind; readonly route: StoredRoute };

/** Change of one route; `before` is null if it was made, `after` if it was deleted. */
export type RouteChange = {
  readonly revision: number;
  readonly at: string;
  readonly by: Writer;
  readonly before: RouteWire | null;
  readonly after: RouteWire | null;
};

export type StoredKey = {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  /** Who made it; null for keys from before version 8 of the schema. */
  readonly createdBy: string | null;
  readonly revokedAt: string | null;
};
/** Key to be stored. `digest` is the SHA-256 of the whole key; the key itself is never stored. */
export type NewKey = Omit<StoredKey, 'revokedAt'> & { readonly digest: Buffer };
export type FoundKey = StoredKey & { readonly digest: Buffer };

/** Every call rejects with StoreUnavailable if the store cannot do or say it; a write resolves only once it is durable. */
export type ApiKeyStore = {
  /** `full` if `most` keys are not revoked. `cause` goes into the audit log. */
  readonly insert: (key: NewKey, most: number, cause?: AuditCause) => Promise<'inserted' | 'full'>;
  /**
   * The key with this SHA-256, revoked ones too: the caller looks at `revokedAt`. By the digest alone, so that every
   * wrong key is the same miss. A look-up by the id in a key would take longer for ids that exist.
   */
  readonly find: (digest: Buffer) => Promise<FoundKey | undefined>;
  /** Oldest first, revoked ones too. */
  readonly list: () => Promise<readonly StoredKey[]>;
  readonly revoke: (id: string, at: string, cause?: AuditCause) => Promise<'revoked' | 'already_revoked' | 'unknown'>;
  /** Writes that a key was used at `at`, in milliseconds since the epoch; an earlier moment changes nothing. */
  readonly use: (holder: string, at: number) => Promise<void>;
  /** When each key was used last, by its holder's name. */
  readonly uses: () => Promise<ReadonlyMap<string, number>>;
};

export type StoreStats = {
  /** Sizes of files in bytes, by name. */
  readonly files: Readonly<Record<string, number>>;
  /** Bytes of the volume that are free for us. */
  readonly freeBytes: number;
  readonly volumeBytes: number;
};

export type Holder = { readonly pid: number; readonly host: string; readonly started: string };

export type StoreLock = { readonly release: () => void };

/** Upgrade from one version of the schema to another. */
export type Upgrade = { readonly from: number; readonly to: number };

/** Hears of the upgrade before the first migration runs. */
export type UpgradeListener = (upgrade: Upgrade) => void;

export const UPGRADE_TAKES = 'a million charges take about half a minute';
/** Message for the log. */
export const UPGRADING = `the store is brought up to date; ${UPGRADE_TAKES}`;
