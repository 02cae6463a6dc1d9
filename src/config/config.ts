// The configuration as the rest of the program sees it: camelCase, complete, durations in milliseconds, sizes in bytes,
// paths absolute. Which of them are there decides which parts run.
import type { UndeclaredMethods } from '../domain/explain.ts';
import type { ProfileName } from '../domain/profile.ts';
import type { Receiver } from '../domain/receiver.ts';
import type { RouteInput } from '../domain/route.ts';
import type { Scope } from '../domain/scope.ts';
import type { LogLevel } from '../host/log.ts';
import type { HostPort, Listen } from './addresses.ts';

export type Shape = 'all-in-one' | 'sidecar' | 'registry';

/** Everything, secrets included: what `startTollgate` takes. */
export type Config = {
  readonly shape: Shape;
  /** The file it was read from, absolute; undefined where it was put together from flags. */
  readonly file: string | undefined;
  /** What relative paths were resolved against. */
  readonly folder: string;
  readonly proxy: ProxyConfig | undefined;
  readonly registry: RegistryConfig | undefined;
  readonly sync: SyncConfig | undefined;
  readonly admin: { readonly listen: Listen };
  readonly charges: ChargesConfig;
  readonly receivers: readonly Receiver[];
  readonly routes: readonly ConfigRoute[];
  readonly x402: { readonly v1: boolean };
  readonly metrics: { readonly maxRoutes: number };
  readonly log: { readonly level: LogLevel; readonly access: boolean; readonly format: LogFormat };
};

/** `auto`: text on a terminal, JSON lines elsewhere. */
export type LogFormat = 'auto' | 'json' | 'text';

/** As loaded: secrets that the first start makes may still be undefined. `resolveSecrets` makes a Config of it. */
export type LoadedConfig = Omit<Config, 'registry' | 'charges'> & {
  readonly registry: Unresolved<RegistryConfig, 'jwt' | 'apiKeys'> | undefined;
  readonly charges: Unresolved<ChargesConfig, 'secrets'>;
};
type Unresolved<T, K extends keyof T> = Omit<T, K> & { readonly [key in K]: T[key] | undefined };

export type ProxyConfig = {
  readonly listen: Listen;
  readonly upstream: {
    readonly protocol: 'http' | 'https';
    readonly host: string;
    readonly port: number;
    readonly origin: string;
  };
  readonly hostHeader: 'preserve' | 'upstream';
  /** Scheme, host and port, without a slash at its end. */
  readonly publicUrl: string | undefined;
  /** Further hosts under which clients reach this API. */
  readonly hosts: readonly HostPort[];
  /** CIDRs and single addresses, checked. */
  readonly trustedProxies: readonly string[];
  readonly upstreamProfile: ProfileName;
  readonly encodedSlashes: 'refuse' | 'keep';
  readonly doubleSlashes: 'merge' | 'keep';
  readonly undeclaredMethods: UndeclaredMethods;
  /** Further methods to let in, upper-cased; for `allowedMethods` of domain/method. */
  readonly methods: readonly string[];
  readonly preflight: 'answer' | 'forward';
  readonly corsOrigins: readonly string[];
  readonly customerHeader: string;
  readonly customerHeaderTrusted: boolean;
  readonly passPaymentHeaders: boolean;
  readonly timeouts: {
    readonly connectMs: number;
    readonly headersMs: number;
    readonly idleMs: number;
    /** Without a byte of a request's body that is waited for. */
    readonly uploadMs: number;
    /** For an exchange with the upstream as a whole; absent: no limit. */
    readonly totalMs?: number;
    readonly drainDelayMs: number;
    readonly drainMs: number;
  };
  readonly limits: {
    readonly targetBytes: number;
    readonly headerBytes: number;
    readonly connections: number;
    readonly inFlight: number;
    /** 0: no limit. */
    readonly inFlightPerClient: number;
    /** Requests that present a payment, at a time. */
    readonly payments: number;
    /** 0: no limit. */
    readonly paymentsPerClient: number;
    /** Payments of one client that a facilitator refused, a minute; 0: no limit. */
    readonly refusedPaymentsPerClient: number;
    /** 402 answers; `perMinute` 0: no limit. */
    readonly challengesPerClient: { readonly perMinute: number; readonly burst: number; readonly clients: number };
  };
};

export type StoreConfig = { readonly kind: 'sqlite'; readonly file: string };

export type ApiKeyConfig = { readonly name: string; readonly key: string; readonly scopes: readonly Scope[] };
export type JwtConfig = {
  readonly key:
    | { readonly kind: 'secret'; readonly secret: string }
    | { readonly kind: 'public_key'; readonly pem: string }
    | { readonly kind: 'jwks'; readonly url: string };
  readonly issuer: string;
  readonly audience: string;
};

export type RegistryConfig = {
  readonly listen: Listen;
  readonly store: StoreConfig;
  readonly jwt: JwtConfig;
  readonly apiKeys: readonly ApiKeyConfig[];
  readonly corsOrigins: readonly string[];
  readonly limits: {
    readonly bodyBytes: number;
    readonly routes: number;
    readonly connections: number;
    readonly eventStreams: number;
    readonly eventStreamsPerKey: number;
    /** Routes that one API key may add; 0: no limit. */
    readonly registrationsPerMinute: number;
  };
};

export type SyncConfig = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  readonly pollIntervalMs: number;
  readonly snapshotFile: string;
  readonly snapshotMaxAgeMs: number;
  readonly emptyAfterMs: number;
  readonly whenAbsent: 'refuse' | 'forward';
  readonly listen: Listen | undefined;
};

export type ChargesConfig = {
  /** The first signs, all verify. */
  readonly secrets: readonly string[];
  /** A sidecar's own ledger; elsewhere the registry's store is it. */
  readonly store: StoreConfig | undefined;
  readonly quoteTtlMs: number;
  readonly keepResponseBytes: number;
  readonly maxUnsettledPerPayer: number;
  /** How long after their last change closed charges are kept; undefined: for ever. */
  readonly retentionMs: number | undefined;
};

/** A route of the `routes` section as an SDK would register it; what is stored wins over it. */
export type ConfigRoute = Omit<RouteInput, 'source'> & {
  readonly source: 'config';
};
