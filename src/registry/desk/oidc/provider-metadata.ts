// What an OpenID provider publishes about itself, read once and kept for ten minutes. Only endpoints to which nobody in between
// can listen are used.
import type { AuthorizationServer } from 'oauth4webapi';
import { isLoopback } from '../../../host/nearby.ts';
import { messageOf } from '../../../host/error-message.ts';
import { ProviderAway, ProviderUnusable } from './provider-fetch.ts';

const FRESH_MS = 10 * 60_000;
/** After a failure the provider is left alone for this long. */
const REST_MS = 1_000;
const NEEDED = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;

type MetadataDeps = {
  /** Fetches and checks the document of the issuer. */
  readonly discover: () => Promise<AuthorizationServer>;
  /** Whether plain http is allowed, to loopback alone. */
  readonly isPlain: boolean;
  readonly monotonic: () => number;
};

/** Returns how to read the document; rejects with ProviderAway if there is none that could be used. */
export function createProviderMetadata({
  discover,
  isPlain,
  monotonic,
}: MetadataDeps): () => Promise<AuthorizationServer> {
  let kept: { readonly server: AuthorizationServer; readonly at: number } | undefined;
  let failed: { readonly error: ProviderAway; readonly at: number } | undefined;
  let pending: Promise<AuthorizationServer> | undefined;
  const ask = async (): Promise<AuthorizationServer> => {
    try {
      const server = withUsable(await discover(), isPlain);
      kept = { server, at: monotonic() };
      return server;
    } catch (error) {
      const away = error instanceof ProviderAway ? error : new ProviderUnusable(unusable(error));
      failed = { error: away, at: monotonic() };
      throw away;
    } finally {
      pending = undefined;
    }
  };
  return async () => {
    if (kept !== undefined && monotonic() - kept.at < FRESH_MS) return kept.server;
    if (failed !== undefined && monotonic() - failed.at < REST_MS) throw failed.error;
    return (pending ??= ask());
  };
}

function unusable(error: unknown): string {
  return `its discovery document cannot be used: ${messageOf(error)}`;
}

function withUsable(server: AuthorizationServer, isPlain: boolean): AuthorizationServer {
  for (const name of NEEDED) {
    const url = server[name];
    if (url === undefined || !isUsable(url, isPlain)) throw new Error(`it has no ${name} that is https`);
  }
  const { userinfo_endpoint: userInfo, ...rest } = server;
  return userInfo !== undefined && isUsable(userInfo, isPlain) ? server : rest;
}

function isUsable(url: string, isPlain: boolean): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (isPlain && protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')));
}
