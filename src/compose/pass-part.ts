// Passes under a configuration: what reads, sells and lets them in. Books, metrics and limits live as long as the process; secrets
// and names come from each configuration.
import type { Config, ProxyConfig } from '../config/config.ts';
import { createPassTokens } from '../domain/selling/pass-token.ts';
import { createSignInNonces, type SignInSite } from '../domain/selling/sign-in.ts';
import { clientGroup } from '../gateway/client-group.ts';
import { checkWallet, SPELLING } from '../gateway/rails/rails.ts';
import { createPasses, type Passes, type PassesDeps } from '../gateway/selling/passes/passes.ts';
import type { MeterRequests } from '../gateway/selling/metering.ts';
import type { AnswerInstead, PassBooks } from '../gateway/selling/passes/presented-pass.ts';
import { createSignIn } from '../gateway/selling/passes/wallet-sign-in.ts';
import { createTrust } from '../gateway/trust.ts';
import { systemSchedule, type Clock } from '../host/clock.ts';
import { createRateLimit } from '../host/rate-limit.ts';
import { createSlowLane } from '../host/slow-lane.ts';

/**
 * Makes what sells passes under a configuration; undefined: no plan is known, so that no pass can be good. `answer`: the
 * listener's own answer to a request that is refused.
 */
export type PassesFor = (config: Config, front: ProxyConfig, answer: AnswerInstead) => Passes | undefined;

type PassPartDeps = {
  /** Undefined: there is no ledger, so that only passes by seconds are any good. */
  readonly books: PassBooks | undefined;
  readonly meter: MeterRequests;
  readonly metrics: PassesDeps['metrics'];
  readonly clock: Clock;
};

/** Signatures of one client in a minute that are no good and are checked at once. */
const SIGN_INS_A_MINUTE = 20;
/** How those of a client are checked that has shown more: 2 ms each, so that they take a tenth of a core at most. */
const SLOW_LANE = { pauseMs: 20, places: 64 };
/** Clients that are remembered. */
const CLIENTS = 65_536;

export function createPassesFor({ books, meter, metrics, clock }: PassPartDeps): PassesFor {
  const limit = createRateLimit(
    { perMinute: SIGN_INS_A_MINUTE, burst: SIGN_INS_A_MINUTE, keys: CLIENTS },
    clock.monotonic,
  );
  const slowly = createSlowLane(SLOW_LANE, systemSchedule);
  return ({ selling, charges: { secrets } }, { publicUrl, trustedProxies }, answer) => {
    if (selling.plans.byId.size === 0) return undefined;
    const site = signInSite(publicUrl);
    const trusts = createTrust(trustedProxies);
    const read =
      site &&
      createSignIn({
        ...{ site, nonces: createSignInNonces(secrets), checkWallet, spell: SPELLING.identifier },
        ...{ limit, slowly, clock },
      });
    return createPasses({
      ...{ tokens: createPassTokens(secrets), books, meter, metrics, clock, answer },
      isSecure: publicUrl?.startsWith('https:') === true,
      signedIn: read && ((value, { request }) => read(value, clientGroup(request.req, trusts))),
    });
  };
}

/** Where wallets sign in: under the public URL alone, which a signature is bound to. */
export function signInSite(publicUrl: string | undefined): SignInSite | undefined {
  return publicUrl === undefined ? undefined : { domain: new URL(publicUrl).host, uri: publicUrl };
}
