// What one API key may use up. A key is shared by a fleet: whatever one of its holders does, the routes of the others, and
// the event streams of other keys, have to go on. What is limited is what costs something for good: routes that are added.
// An SDK that registers at its start what is stored already is never refused.
import { problem, type Problem } from '../domain/problem.ts';
import { createRateLimit } from '../host/rate-limit.ts';
import type { Principal } from './credentials.ts';

export type RegistrationLimit = {
  /** The problem to answer instead of adding a route. */
  readonly refusal: (principal: Principal) => Problem | undefined;
  /** A route was added. */
  readonly count: (principal: Principal) => void;
};

/** Keys are made by operators; so many are remembered at a time. */
const KEYS = 10_000;

/** `perMinute` 0: no limit. A minute's worth may come at once, because SDKs register all they have when they start. */
export function createRegistrationLimit(perMinute: number, monotonic: () => number): RegistrationLimit {
  if (perMinute === 0) return { refusal: () => undefined, count: () => undefined };
  const limit = createRateLimit({ perMinute, burst: perMinute, keys: KEYS }, monotonic);
  return {
    refusal: (principal) => {
      const waitMs = limit.waitMs(nameKey(principal));
      if (waitMs === 0) return undefined;
      return problem('too_many_requests', `This API key may add ${perMinute} routes a minute; try again later.`, {
        headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
      });
    },
    count: (principal) => void limit.takeMs(nameKey(principal)),
  };
}

/** Stands for the API key behind `principal`. */
export function nameKey(principal: Principal): string {
  return principal.kind === 'api_key' ? principal.digest.toString('base64') : principal.kind;
}
