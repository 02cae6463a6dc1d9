// Signing in to the desk through an OpenID provider: a browser is sent there with a cookie of its own, and what it brings back
// opens a session if the provider vouches for somebody who is on a list of the configuration. Each outcome is an address to
// lead the browser to; what went wrong stands behind its `#`, in a word that the page knows.
import type { Clock, Random } from '../../../host/clock.ts';
import { createRateLimit } from '../../../host/rate-limit.ts';
import { addressGroup } from '../../../host/address-group.ts';
import type { FetchKeys } from '../../../host/jwt/key-set.ts';
import type { DeskStore } from '../../store/desk-ports.ts';
import type { DeskAdmission } from '../desk-admission.ts';
import { readCookie, writeCookie } from '../desk-cookies.ts';
import { coveredMembers, roleOfMembers } from '../desk-members.ts';
import { DESK } from '../desk-page.ts';
import type { DeskSettings, OidcSettings } from '../desk-settings.ts';
import { makeCode } from '../secret-codes.ts';
import { flowSecretsOf } from './flow-secrets.ts';
import { beginFlow, findFlow, FLOW_MS, takeFlow } from './flows.ts';
import { membersOf, nameOf } from './identity.ts';
import { landingOf } from './landing.ts';
import { createOidcProvider, type OidcProvider } from './oidc-provider.ts';
import { ProviderAway } from './provider-fetch.ts';

const STEPS_A_MINUTE = 120;
const ADDRESSES = 10_000;
export const PROVIDER_CALL_MS = 5_000;

/** Words that the page puts into sentences. */
type OidcError = 'provider_away' | 'refused' | 'not_allowed' | 'flow_unknown' | 'too_many';

/** An address on this desk or at the provider, and the cookies to set on the way. */
export type Lead = { readonly location: string; readonly cookies: readonly string[] };

export type OidcDoor = {
  /** Sends a browser to the provider; undefined if this desk has none. */
  readonly start: (to: string | undefined, address: string) => Promise<Lead | undefined>;
  /** Takes what a browser brought back from there. */
  readonly finish: (
    answer: URLSearchParams,
    from: { readonly cookie: string | undefined; readonly address: string; readonly requestId: string | null },
  ) => Promise<Lead | undefined>;
};

type OidcDoorDeps = {
  readonly store: DeskStore;
  readonly settings: () => DeskSettings | undefined;
  readonly admission: DeskAdmission;
  readonly setCookie: (value: string) => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch: FetchKeys;
  /** Milliseconds that one call to the provider may take. */
  readonly callMs: number;
};

export function createOidcDoor(deps: OidcDoorDeps): OidcDoor {
  const { store, settings, admission, clock, random } = deps;
  const steps = createRateLimit({ perMinute: STEPS_A_MINUTE, burst: STEPS_A_MINUTE, keys: ADDRESSES }, clock.monotonic);
  const providerOf = keepProvider((oidc) => createOidcProvider(oidc, deps));
  const inForce = (): InForce | undefined => {
    const { publicUrl, oidc, signIn } = settings() ?? {};
    if (publicUrl === undefined || oidc === undefined || signIn?.includes('oidc') !== true) return undefined;
    const isSecure = publicUrl.startsWith('https:');
    return { oidc, isSecure, redirectUri: `${publicUrl}/desk/oidc/callback`, provider: providerOf(oidc) };
  };
  const isLimited = (address: string): boolean => {
    const limited = steps.takeMs(addressGroup(address)) > 0;
    if (limited) admission.turnAway('oidc', 'limited', { address });
    return limited;
  };

  return {
    start: async (to, address) => {
      const desk = inForce();
      if (desk === undefined) return undefined;
      if (isLimited(address)) return failed('too_many');
      const { oidc, provider, redirectUri, isSecure } = desk;
      const cookie = makeCode(random);
      let location: string;
      try {
        location = await provider.authorizeUrl(flowSecretsOf(cookie), redirectUri);
      } catch (error) {
        if (!(error instanceof ProviderAway)) throw error;
        admission.turnAway('oidc', 'unavailable', { address, reason: error.message });
        return failed('provider_away');
      }
      const flow = { to: landingOf(to), issuer: oidc.issuer, clientId: oidc.clientId };
      const begun = await beginFlow({ store, now: clock.now }, cookie, flow);
      if (begun === 'added') return { location, cookies: [writeCookie('flow', cookie, isSecure, FLOW_MS / 1000)] };
      admission.turnAway('oidc', 'limited', { address });
      return failed('too_many');
    },
    finish: async (answer, { cookie: header, address, requestId }) => {
      const desk = inForce();
      if (desk === undefined) return undefined;
      if (isLimited(address)) return failed('too_many');
      const { oidc, provider, redirectUri, isSecure } = desk;
      const refuse = (error: OidcError, reason: string, cookies: readonly string[] = []): Lead => {
        admission.turnAway('oidc', 'refused', { address, reason });
        return failed(error, cookies);
      };
      const found = findFlow(readCookie(header, 'flow', isSecure), answer.get('state') ?? '');
      // The cookie stays: it may belong to a sign-in that goes on in another tab.
      if (found === undefined) return refuse('flow_unknown', 'it was begun in another browser, or not at all');
      const flow = await takeFlow({ store, now: clock.now }, found.cookie);
      const over = [writeCookie('flow', '', isSecure)];
      if (flow === undefined || flow.issuer !== oidc.issuer || flow.clientId !== oidc.clientId)
        return refuse('flow_unknown', 'it was finished before, took too long or was begun for another provider', over);
      const redeemed = await provider.redeem(answer, found.secrets, redirectUri);
      if (redeemed.kind === 'away') {
        admission.turnAway('oidc', 'unavailable', { address, reason: redeemed.reason });
        return failed('provider_away', over);
      }
      if (redeemed.kind === 'refused') return refuse('refused', redeemed.reason, over);
      const { claims } = redeemed;
      const members = coveredMembers(membersOf(claims, oidc.claim), oidc);
      const role = roleOfMembers(members, oidc);
      if (role === undefined)
        return refuse('not_allowed', `the claim ${oidc.claim} is on no list, or an email address not verified`, over);
      const person = { subject: nameOf(claims, oidc.claim), role, via: 'oidc', members, notAfter: null } as const;
      const opened = await admission.letIn(person, address, requestId);
      if ('code' in opened) return failed('too_many', over);
      return { location: `${flow.to}#key=${opened.key}`, cookies: [...over, deps.setCookie(opened.cookie)] };
    },
  };
}

type InForce = {
  readonly oidc: OidcSettings;
  readonly provider: OidcProvider;
  readonly redirectUri: string;
  readonly isSecure: boolean;
};

function failed(error: OidcError, cookies: readonly string[] = []): Lead {
  return { location: `${DESK}#error=${error}`, cookies };
}

/** A reload that leaves the provider as it is keeps what is known of it. */
function keepProvider(create: (oidc: OidcSettings) => OidcProvider): (oidc: OidcSettings) => OidcProvider {
  let kept: { readonly named: string; readonly provider: OidcProvider } | undefined;
  return (oidc) => {
    const { issuer, clientId, clientSecret, scopes, claim } = oidc;
    const named = JSON.stringify([issuer, clientId, clientSecret, scopes, claim]);
    if (kept?.named !== named) kept = { named, provider: create(oidc) };
    return kept.provider;
  };
}
