// The type that all parts of a running Tollgate share: how compose starts and ends them, and how paths are read when
// routes are compiled. No part knows another.
import type { Config, LoadedConfig } from '../config/config.ts';
import type { Plans } from '../domain/selling/plan.ts';
import type { MatchRules } from '../domain/explanation.ts';
import { LISTENER_REFUSALS } from '../domain/problem.ts';
import { allowedMethods } from '../domain/routing/method.ts';
import { FULL_FOLDING, profileFolding } from '../domain/routing/profile.ts';
import type { Receiver } from '../domain/payment/offer.ts';
import type { PathOptions } from '../domain/routing/snapshot.ts';
import { http } from '../host/node-http.ts';
import type { Listener } from '../host/server.ts';

/** A listener as its starter needs it: to be bound, and to be drained at the end. */
export type BoundListener = Pick<Listener, 'start' | 'drain'>;

export type Part = {
  /** Listener; undefined if the part listens nowhere. */
  readonly listener: BoundListener | undefined;
  readonly close: () => void | Promise<void>;
};

/** A listener with the name that its address has in the configuration. */
export type NamedListener = readonly [name: string, listener: BoundListener];

/** Listeners that serve operators and SDKs: plenty for them, and no way to exhaust the process. */
export const INTERNAL = {
  limits: { headers: 16 * 1024, connections: 2_000 },
  timeouts: { headersMs: 30_000, idleMs: 60_000 },
  refusals: LISTENER_REFUSALS,
} as const;

/**
 * Options of how paths are read. A registry without a proxy cannot know what stands behind the sidecars: it matches the
 * coarsest way.
 */
export function pathOptions({ front, selling }: MatchedConfig): PathOptions {
  // Without any plan, no route can have one that is known, and nothing has to be compared.
  const plans = selling.plans.byId.size === 0 ? undefined : selling.plans;
  if (front === undefined) return { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING, plans };
  const { encodedSlashes, doubleSlashes, upstreamProfile } = front;
  return { encodedSlashes, doubleSlashes, folding: profileFolding(upstreamProfile), plans };
}

/** The part of a configuration that says which route a request meets. */
type MatchedConfig = Pick<LoadedConfig, 'front' | 'selling'>;

/**
 * Rules by which a proxy judges a request before it is priced. A registry without a proxy cannot know what its sidecars let
 * in: whatever their parser reads.
 */
export function matchRules(config: MatchedConfig): MatchRules {
  const { front } = config;
  const plans = knownPlans(config);
  if (front === undefined)
    return { undeclaredMethods: 'forward', methods: allowedMethods(http.METHODS), targetBytes: Infinity, plans };
  const { undeclaredMethods, methods, limits } = front;
  return { undeclaredMethods, methods: allowedMethods(methods), targetBytes: limits.targetBytes, plans };
}

/** All plans that a route may name here; undefined: this is a registry whose proxies know them, and it does not. */
export function knownPlans({ front, selling }: MatchedConfig): Plans | undefined {
  return front === undefined && !selling.isConfigured ? undefined : selling.plans;
}

export function receiversById(config: Pick<Config, 'receivers'>): ReadonlyMap<string, Receiver> {
  return new Map(config.receivers.map((receiver) => [receiver.id, receiver]));
}
