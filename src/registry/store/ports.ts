// What a store is: routes with the numbered log of their changes, API keys, and the ledger of
// charges. Each kind of store is a folder beside this file that implements it; open.ts chooses.
import type { ChargeReports } from '../../domain/payment/charge-reports.ts';
import type { Scope } from '../../domain/scope.ts';
import type { ChargeKeeping, ChargeStore } from '../../domain/payment/ledger.ts';
import type { Route, RouteWire } from '../../domain/route.ts';
import type { Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Declared } from '../declared.ts';

/** A store that is named in the configuration and not open yet. */
export type StorePlace = {
  /** Whether anything was ever kept there. */
  readonly exists: () => boolean;
  /** The one process that serves it. Throws a sentence that names who holds it. */
  readonly lock: (holder: Holder) => StoreLock;
  /** Brings its schema up to date, and makes it if there is none; the versions that were applied. Throws a sentence. */
  readonly migrate: (onUpgrade?: OnUpgrade) => readonly number[];
  /** Its routes without making, migrating or writing it. Throws if it cannot be read, or an older version wrote it. */
  readonly readRoutes: () => StoredRoutes;
  /** Routes and API keys, migrated. Throws a sentence. */
  readonly open: (options: OpenOptions) => Store;
  /** Its charges; opened with the first call. */
  readonly openCharges: (options: ChargesOptions) => ChargesStore;
  /** Undefined if it cannot be asked. */
  readonly stats: () => Promise<StoreStats | undefined>;
};

export type OpenOptions = {
  readonly random: Random;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A server, which stalls no request for a write, or a command that has nothing else to do. */
  readonly as: 'server' | 'command';
  readonly onUpgrade?: OnUpgrade;
};

export type ChargesOptions = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
  /** This process holds the store alone, but for commands: leases of its own earlier runs are over, and clocks that are set move leases along. */
  readonly alone?: boolean;
};

export type Store = {
  /** Drawn when the file was made: a sidecar tells one registry from another by it. */
  readonly registryId: string;
  readonly routes: RouteStore;
  readonly declared: DeclaredStore;
  readonly apiKeys: ApiKeyStore;
  /** Resolves once everything that was committed here is on the disk; rejects with StoreFailure if it may not be. */
  readonly onDisk: () => Promise<void>;
  readonly close: () => void;
};

export type ChargesStore = ChargeStore & ChargeReports & ChargeKeeping;

export type ChangeKind = 'created' | 'updated' | 'deleted';

/** The state of the whole set. `stamp` is new with every write, also if a restored backup repeats a revision. */
export type Head = { readonly revision: number; readonly stamp: string };

/** Who wrote a route. A name may hold anything; what stands before it says whose it is. */
export type Writer = 'config' | `dashboard:${string}` | `api_key:${string}`;

/** A route and who wrote it last. */
export type StoredRoute = Route & { readonly writtenBy: Writer };

/** One change of one route; `before` is null if it was made, `after` if it was deleted. */
export type RouteChange = {
  readonly revision: number;
  readonly at: string;
  readonly by: Writer;
  readonly before: RouteWire | null;
  readonly after: RouteWire | null;
};

/** A change as the feed sends it; `data` is JSON: the route, or `{"id"}` of one that was deleted. */
export type StoredChange = { readonly revision: number; readonly kind: ChangeKind; readonly data: string };

export type Written = { readonly kind: 'written'; readonly head: Head; readonly route: StoredRoute } | Conflict;
/** Another route has this method and pattern key. */
export type Conflict = { readonly kind: 'conflict'; readonly existing: StoredRoute };

export type RouteFilter = {
  readonly limit: number;
  /** The sequence number that `nextBefore` gave. */
  readonly before: number | undefined;
  readonly status: string | undefined;
  readonly method: string | undefined;
  readonly source: string | undefined;
  /** Part of the pattern or the name; ASCII letters match in either case. */
  readonly q: string | undefined;
};

export type RouteStore = {
  readonly head: () => Head;
  /** Oldest first. */
  readonly all: () => { readonly head: Head; readonly routes: StoredRoute[] };
  /** Newest first. `nextBefore` is undefined on the last page. */
  readonly list: (filter: RouteFilter) => { readonly routes: Route[]; readonly nextBefore: number | undefined };
  readonly findByKey: (key: string, method: string) => StoredRoute | undefined;
  readonly insert: (route: StoredRoute, key: string) => Written;
  /** Writes `route` over the stored one with its id; undefined if there is none. */
  readonly update: (route: StoredRoute, key: string) => Written | undefined;
  /** The new head, or undefined if there is no such route. */
  readonly remove: (id: string, by: Writer, at: string) => Head | undefined;
  /** Changes of one route, newest first, also of one that was deleted; `before` is the revision that `nextBefore` gave. */
  readonly history: (
    id: string,
    before: number | undefined,
    limit: number,
  ) => { readonly changes: readonly RouteChange[]; readonly nextBefore: number | undefined };
  /** Up to `limit` changes after `revision`, or undefined if the log does not reach back that far, or ahead. */
  readonly changesAfter: (revision: number, limit: number) => readonly StoredChange[] | undefined;
  /** Several writes in one transaction: all of them or none. */
  readonly batch: <T>(run: () => T) => T;
};

export type DeclaredStore = {
  /** By route id. */
  readonly all: () => ReadonlyMap<string, Declared>;
  readonly set: (routeId: string, said: Declared) => void;
  readonly release: (routeId: string) => void;
};

export type StoredRoutes = {
  readonly routes: readonly Route[];
  /** What the configuration said when it was last applied, by route id. */
  readonly said: ReadonlyMap<string, Declared>;
};

export type StoredKey = {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  readonly revokedAt: string | null;
};
export type FoundKey = StoredKey & { readonly digest: Buffer };

export type ApiKeyStore = {
  /** The key alone is secret; it cannot be had again. Throws a sentence if name or scopes are not usable. */
  readonly create: (name: string, scopes: readonly Scope[]) => { readonly key: string; readonly stored: StoredKey };
  /**
   * The key with this SHA-256; revoked ones too: the caller looks at `revokedAt`. By the digest and nothing else, so that
   * every wrong key is the same miss: a look-up by the id in a key would take longer for ids that exist.
   */
  readonly find: (digest: Buffer) => FoundKey | undefined;
  /** Oldest first, revoked ones too. */
  readonly list: () => StoredKey[];
  readonly revoke: (id: string) => 'revoked' | 'already_revoked' | 'unknown';
};

export type StoreStats = {
  /** Bytes by file name. */
  readonly files: Readonly<Record<string, number>>;
  /** Of the volume, for us. */
  readonly freeBytes: number;
  readonly volumeBytes: number;
};

export type Holder = { readonly pid: number; readonly host: string; readonly started: string };

export type StoreLock = { readonly release: () => void };

/** From one version of the schema to another. */
export type Upgrade = { readonly from: number; readonly to: number };

/** `upgrade` is told before the first migration runs. */
export type OnUpgrade = (upgrade: Upgrade) => void;

export const UPGRADE_TAKES = 'a million charges take about half a minute';
/** For the log. */
export const UPGRADING = `the store is brought up to date; ${UPGRADE_TAKES}`;
