// Finds the principal of a call. It reads the Authorization header, has the credential checked as the kind that the
// endpoint takes, and puts what is wrong into words (RFC 6750). A credential of the other kind is a wrong credential: a
// leaked SDK key must not change prices, a dashboard session must not act as a sidecar.
import type { IncomingMessage } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';
import type { JwtVerifier } from './dashboard-tokens.ts';
import type { KeyCheck, KeyHolder } from './api-keys.ts';
import type { Scope } from '../../domain/scope.ts';
import type { Writer } from '../store/ports.ts';

export type Auth =
  | { readonly kind: 'none' }
  | { readonly kind: 'jwt' }
  | { readonly kind: 'api_key'; readonly scope: Scope };

export type Principal =
  | { readonly kind: 'anonymous' }
  /** `expiresAt`: when its token ends, milliseconds since the epoch. */
  | { readonly kind: 'dashboard'; readonly subject: string | undefined; readonly expiresAt?: number }
  | KeyHolder;

export type Authenticator = {
  readonly authenticate: (auth: Auth, req: IncomingMessage) => Promise<Principal | Problem>;
  /** Whether the API key or the token behind `principal` would still be let in; streams ask it. */
  readonly stillAllowed: (principal: Principal) => Promise<boolean>;
};

const BEARER = /^Bearer +([\x21-\x7e]{1,16384})$/i;
const KEY_SET_RETRY_SECONDS = 10;
/** Characters of a token's subject that are kept. */
const MAX_SUBJECT = 128;

/** Makes an authenticator. `verifyJwt` is undefined if the configuration has no key for tokens: then none is valid. */
export function createAuthenticator(
  verifyJwt: JwtVerifier | undefined,
  keys: KeyCheck,
  now: () => number,
): Authenticator {
  return {
    authenticate: async (auth, req) => {
      if (auth.kind === 'none') return { kind: 'anonymous' };
      const credential = readBearer(req);
      if (typeof credential !== 'string') return credential ?? missing(auth);
      switch (auth.kind) {
        case 'jwt':
          return checkJwt(credential, verifyJwt);
        case 'api_key':
          return checkKey(credential, auth.scope, keys);
        default:
          // Types rule this out. At run time it must not get in either: a principal would be returned here.
          auth satisfies never;
          throw new Error('an endpoint asks for a credential that does not exist');
      }
    },
    stillAllowed: async (principal) => {
      if (principal.kind === 'dashboard') return now() < (principal.expiresAt ?? 0);
      return principal.kind === 'api_key' && keys.stillValid(principal);
    },
  };
}

/** Stands for the API key behind `principal`: equal for all who hold it. */
export function nameKey(principal: Principal): string {
  return principal.kind === 'api_key' ? principal.digest.toString('base64') : principal.kind;
}

/** Describes a principal for logs: who did it, without anything secret. */
export function describePrincipal(principal: Principal): string {
  switch (principal.kind) {
    case 'anonymous':
      return 'anonymous';
    case 'dashboard':
      return `dashboard:${(principal.subject ?? '').slice(0, MAX_SUBJECT)}`;
    case 'api_key':
      return `api_key:${principal.id ?? principal.name}`;
    default:
      return principal satisfies never;
  }
}

/** Names the writer of a route: kept with it, and shown in the history of a price. */
export function writerOf(principal: Principal): Writer {
  switch (principal.kind) {
    case 'dashboard':
      return `dashboard:${(principal.subject ?? '').slice(0, MAX_SUBJECT).toWellFormed()}`;
    case 'api_key':
      return `api_key:${principal.name}`;
    case 'anonymous':
      throw new Error('a route cannot be written without a credential');
    default:
      return principal satisfies never;
  }
}

function readBearer(req: IncomingMessage): string | Problem | undefined {
  // Node keeps the first of several and says nothing; two proxies could disagree about which one counts.
  if ((req.headersDistinct['authorization']?.length ?? 0) > 1) {
    return problem('malformed', 'The request has more than one Authorization header.');
  }
  return BEARER.exec(req.headers.authorization ?? '')?.[1];
}

async function checkJwt(token: string, verify: JwtVerifier | undefined): Promise<Principal | Problem> {
  if (token.split('.').length !== 3)
    return invalid({ kind: 'jwt' }, 'This endpoint takes a dashboard JWT, not an API key.');
  if (!verify) return invalid({ kind: 'jwt' }, 'This registry is not configured to take tokens.');
  const result = await verify(token);
  switch (result.kind) {
    case 'valid':
      return { kind: 'dashboard', subject: result.subject, expiresAt: result.expiresAt };
    case 'invalid':
      return invalid({ kind: 'jwt' }, result.reason);
    case 'unavailable':
      return problem(
        'registry_unavailable',
        'The keys that verify dashboard tokens could not be fetched; try again later.',
        {
          retryAfter: KEY_SET_RETRY_SECONDS,
        },
      );
    default:
      return result satisfies never;
  }
}

async function checkKey(key: string, scope: Scope, keys: KeyCheck): Promise<Principal | Problem> {
  const auth: Auth = { kind: 'api_key', scope };
  const holder = await keys.find(key);
  if (!holder) {
    const jwt = key.startsWith('eyJ') && key.split('.').length === 3;
    return invalid(
      auth,
      jwt ? 'This endpoint takes an API key, not a dashboard JWT.' : 'The API key is not known or was revoked.',
    );
  }
  if (holder.scopes.includes(scope)) return holder;
  const detail = `The API key lacks the scope ${scope}.`;
  return problem('scope_insufficient', detail, {
    headers: {
      'WWW-Authenticate': `${challenge(auth)}, error="insufficient_scope", error_description="${detail}", scope="${scope}"`,
    },
  });
}

function missing(auth: Auth): Problem {
  const wanted = auth.kind === 'jwt' ? 'a dashboard JWT' : 'an API key';
  return problem('credentials_missing', `This endpoint needs ${wanted}: send Authorization: Bearer.`, {
    headers: { 'WWW-Authenticate': challenge(auth) },
  });
}

/** Refuses a credential. `detail` must hold no quotes: it goes into a header. */
function invalid(auth: Auth, detail: string): Problem {
  return problem('credentials_invalid', detail, {
    headers: { 'WWW-Authenticate': `${challenge(auth)}, error="invalid_token", error_description="${detail}"` },
  });
}

function challenge(auth: Auth): string {
  return `Bearer realm="${auth.kind === 'jwt' ? 'dashboard' : 'sdk'}"`;
}
