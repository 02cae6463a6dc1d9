// An OpenID provider as the desk uses it: it sends browsers there, and turns what they bring back into claims about somebody.
// Code flow with PKCE S256; state, nonce, issuer, audience, times and the signature of the ID token are checked, all by
// oauth4webapi, which is loaded with the first sign-in. No token outlives the call.
import type { Client, ClientAuth, TokenEndpointResponse } from 'oauth4webapi';
import { messageOf } from '../../../host/error-message.ts';
import type { Clock } from '../../../host/clock.ts';
import type { FetchKeys } from '../../../host/jwt/key-set.ts';
import type { OidcSettings } from '../desk-settings.ts';
import type { FlowSecrets } from './flow-secrets.ts';
import { membersOf, type Claims } from './identity.ts';
import { createProviderFetch, ProviderAway } from './provider-fetch.ts';
import { createProviderMetadata } from './provider-metadata.ts';

export type Redeemed =
  | { readonly kind: 'claims'; readonly claims: Claims }
  /** `reason` is for the log: it may repeat what the provider or a stranger wrote. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'away'; readonly reason: string };

export type OidcProvider = {
  /** Address to which a browser is sent; rejects with ProviderAway. */
  readonly authorizeUrl: (secrets: FlowSecrets, redirectUri: string) => Promise<string>;
  /** Turns the query with which the provider sent a browser back into claims. */
  readonly redeem: (answer: URLSearchParams, secrets: FlowSecrets, redirectUri: string) => Promise<Redeemed>;
};

type ProviderDeps = {
  readonly fetch: FetchKeys;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Milliseconds that one call to the provider may take. */
  readonly callMs: number;
};

/** Answers of the authorization endpoint by which a provider says that it cannot now (RFC 6749 section 4.1.2.1). */
const AWAY_WORDS: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable']);
const MOST_OF_REASON = 200;

export function createOidcProvider(settings: OidcSettings, { fetch, clock, callMs }: ProviderDeps): OidcProvider {
  const issuer = new URL(settings.issuer);
  const isPlain = issuer.protocol === 'http:';
  const client: Client = { client_id: settings.clientId };
  const call = createProviderFetch(fetch, callMs);
  const load = async () => {
    const oauth = await import('oauth4webapi');
    return { oauth, options: { [oauth.customFetch]: call, [oauth.allowInsecureRequests]: isPlain } };
  };
  const metadata = createProviderMetadata({
    isPlain,
    monotonic: clock.monotonic,
    discover: async () => {
      const { oauth, options } = await load();
      return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options));
    },
  });
  let usesPost = false;

  /** The claims of the ID token, or those of the user-info endpoint if the first do not say who somebody is. */
  const claimsOf = async (
    answer: URLSearchParams,
    { state, nonce, verifier }: FlowSecrets,
    redirectUri: string,
  ): Promise<Claims> => {
    const [{ oauth, options }, server] = await Promise.all([load(), metadata()]);
    const code = oauth.validateAuthResponse(server, client, answer, state);
    const redeemAs = async (auth: ClientAuth): Promise<{ response: Response; tokens: TokenEndpointResponse }> => {
      const asked = [server, client, auth, code, redirectUri, verifier, options] as const;
      const response = await oauth.authorizationCodeGrantRequest(...asked);
      const expected = { expectedNonce: nonce, requireIdToken: true };
      return { response, tokens: await oauth.processAuthorizationCodeResponse(server, client, response, expected) };
    };
    const { clientSecret } = settings;
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const redeem = async (): Promise<{ response: Response; tokens: TokenEndpointResponse }> => {
      if (clientSecret === undefined) return redeemAs(oauth.None());
      if (usesPost || !methods.includes('client_secret_basic')) return redeemAs(oauth.ClientSecretPost(clientSecret));
      try {
        return await redeemAs(oauth.ClientSecretBasic(clientSecret));
      } catch (error) {
        const isClient =
          error instanceof oauth.WWWAuthenticateChallengeError ||
          (error instanceof oauth.ResponseBodyError && error.error === 'invalid_client');
        if (!isClient || !methods.includes('client_secret_post')) throw error;
        // Providers let a client prove itself in one way alone and publish every way that they know.
        const redeemed = await redeemAs(oauth.ClientSecretPost(clientSecret));
        usesPost = true;
        return redeemed;
      }
    };
    const { response, tokens } = await redeem();
    // Takes asymmetric algorithms alone: a secret that two share proves nothing.
    await oauth.validateApplicationLevelSignature(server, response, options);
    const claims = oauth.getValidatedIdTokenClaims(tokens);
    if (claims === undefined) throw new Error('the token endpoint sent no ID token');
    if (membersOf(claims, settings.claim).length > 0 || server.userinfo_endpoint === undefined) return claims;
    const answered = await oauth.userInfoRequest(server, client, tokens.access_token, options);
    return oauth.processUserInfoResponse(server, client, claims.sub, answered);
  };

  return {
    authorizeUrl: async ({ state, nonce, verifier }, redirectUri) => {
      const [{ oauth }, server] = await Promise.all([load(), metadata()]);
      const url = new URL(server.authorization_endpoint ?? '');
      const asked = {
        ...{ response_type: 'code', client_id: settings.clientId, redirect_uri: redirectUri },
        ...{ scope: settings.scopes.join(' '), state, nonce },
        ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
      };
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
      return url.href;
    },
    redeem: async (answer, secrets, redirectUri) => {
      try {
        return { kind: 'claims', claims: await claimsOf(answer, secrets, redirectUri) };
      } catch (error) {
        if (error instanceof ProviderAway) return { kind: 'away', reason: error.message };
        const said = wordOf(error);
        const reason = (said === undefined ? messageOf(error) : `the provider answered ${said}`).slice(
          0,
          MOST_OF_REASON,
        );
        return { kind: said !== undefined && AWAY_WORDS.has(said) ? 'away' : 'refused', reason };
      }
    },
  };
}

/** The code by which a provider refuses; undefined if it did not. */
function wordOf(error: unknown): string | undefined {
  return error instanceof Error && 'error' in error && typeof error.error === 'string' ? error.error : undefined;
}
