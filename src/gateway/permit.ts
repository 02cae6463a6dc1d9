// The proof that a request may pass. `Exchange.forward` takes a Permit and nothing else opens the way to the
// upstream, so a path through the journey that forgot to decide does not compile. Only the paywall mints them
// (test/architecture.test.ts holds that): for a request that costs nothing, or for a charge that was claimed.
import type { Pass } from '../domain/decide.ts';
import type { Route } from '../domain/route.ts';

declare const proof: unique symbol;

export type Permit = {
  readonly [proof]: true;
  readonly because: 'unprotected' | 'paused' | 'undeclared' | 'preflight' | 'paid';
  readonly route: Route | undefined;
  /** Headers that tell the upstream who paid for what: flat name, value pairs. Empty for a request that costs nothing. */
  readonly headers: readonly string[];
};

/** For a request that costs nothing. */
export function passPermit({ because, route }: Pass): Permit {
  return mintPermit(because, route);
}

export function mintPermit(
  because: Permit['because'],
  route: Route | undefined,
  headers: readonly string[] = [],
): Permit {
  return { because, route, headers } as Permit;
}
