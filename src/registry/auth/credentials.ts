// Finds the principal of a call. It reads the Authorization header, has the credential checked as the kind that the
// endpoint takes, and puts what is wrong into words (RFC 6750). A credential of the other kind is a wrong credential: a
// leaked SDK key must not change prices, a dashboard session must not act as a sidecar.
import type { IncomingMessage } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';
import type { JwtVerifier } from './dashboard-tokens.ts';
import type { KeyCheck, KeyHolder } from './api-keys.ts';
import type { Scope } from '../../domain/scope.ts';
import type { DeskRole, StoredSession } from '../store/desk-ports.ts';
import type { Writer } from '../store/ports.ts';

export type Auth =
  | { readonly kind: 'none' }
  /** A dashboard JWT or a session of the desk; `alone`: a JWT only. */
  | { readonly kind: 'jwt'; readonly alone?: true }
  /** A session of the desk. */
  | { readonly kind: 'session' }
  | { readonly kind: 'api_key'; readonly scope: Scope };

export type Principal =
  | { readonly kind: 'anonymous' }
  | {
      readonly kind: 'dashboard';
      readonly subject: string | undefined;
      readonly role: DeskRole;
      /** End of its token, in milliseconds since the epoch; undefined with a session. */
      readonly expiresAt?: number;
      /** Undefined with a token. */
      readonly session?: { readonly stored: StoredSession; readonly digest: Buffer };
    }
  | KeyHolder;

export type Authenticator = {
  readonly authenticate: (auth: Auth, req: IncomingMessage) => Promise<Principal | Problem>;
  /** Whether the API key, the token or the session behind `principal` would still be let in; asked while a stream is open. */
  readonly stillAllowed: (principal: Principal) => Promise<boolean>;
};

const BEARER = /^Bearer +([\x21-\x7e]{1,16384})$/i;
const KEY_SET_RETRY_SECONDS = 10;
/** Characters of a token's subject that are kept. */
export const MAX_SUBJECT = 128;

/** `verifyJwt` is undefined if the configuration has no key for tokens: then none is valid. */
export function createAuthenticator(
  verifyJwt: JwtVerifier | undefined,
  keys: KeyCheck,
  now: () => number,
  { sessionOf, stillHolds, waysIn }: SessionCheck = NO_SESSIONS,
): Authenticator {
  const bySession = async (auth: Auth, req: IncomingMessage): Promise<Principal | Problem> => {
    const found = await sessionOf(req);
    if (found === undefined) return auth.kind === 'session' ? signInAgain() : missing(auth);
    if ('code' in found) return found;
    if (auth.kind === 'jwt' && auth.alone)
      return problem('scope_insufficient', 'This endpoint takes a dashboard JWT, not a session.');
    return { kind: 'dashboard', subject: found.stored.subject, role: found.stored.role, session: found };
  };
  const signInAgain = (): Problem => ({ ...missing({ kind: 'session' }), members: { sign_in: waysIn() } });
  return {
    authenticate: async (auth, req) => {
      if (auth.kind === 'none') return { kind: 'anonymous' };
      if (auth.kind !== 'api_key' && req.headers.authorization === undefined)
        return withinRole(auth, req, await bySession(auth, req));
      const credential = readBearer(req);
      if (typeof credential !== 'string') return credential ?? missing(auth);
      switch (auth.kind) {
        case 'jwt':
          return withinRole(auth, req, await checkJwt(credential, verifyJwt));
        case 'session':
          return signInAgain();
        case 'api_key':
          return checkKey(credential, auth.scope, keys);
        default:
          // Types rule this out. At run time it must not get in either: a principal would be returned here.
          auth satisfies never;
          throw new Error('an endpoint asks for a credential that does not exist');
      }
    },
    stillAllowed: async (principal) => {
      if (principal.kind === 'api_key') return keys.stillValid(principal);
      if (principal.kind !== 'dashboard') return false;
      return principal.session === undefined
        ? (principal.expiresAt ?? 0) > now()
        : stillHolds(principal.session.digest);
    },
  };
}

/** How sessions of the desk are found; a registry without a desk has none. */
export type SessionCheck = {
  /** The session that a request shows, with the SHA-256 of its cookie. */
  readonly sessionOf: (
    req: IncomingMessage,
  ) => Promise<{ readonly stored: StoredSession; readonly digest: Buffer } | Problem | undefined>;
  readonly stillHolds: (digest: Buffer) => Promise<boolean>;
  /** Ways in which people may sign in. */
  readonly waysIn: () => readonly string[];
};

const NO_SESSIONS: SessionCheck = {
  sessionOf: () => Promise.resolve(undefined),
  stillHolds: () => Promise.resolve(false),
  waysIn: () => [],
};

/** Refuses a viewer who would change something under /v1/. */
function withinRole(auth: Auth, req: IncomingMessage, principal: Principal | Problem): Principal | Problem {
  const changes = req.method !== 'GET' && req.method !== 'HEAD';
  if (auth.kind !== 'jwt' || !changes || !('kind' in principal) || principal.kind !== 'dashboard') return principal;
  return principal.role === 'admin' ? principal : VIEWER;
}

const VIEWER = problem('scope_insufficient', 'A viewer may look and change nothing.');

/** Stands for the credential behind `principal`: equal for all who hold it. */
export function nameKey(principal: Principal): string {
  if (principal.kind === 'api_key') return principal.digest.toString('base64');
  if (principal.kind !== 'dashboard') return principal.kind;
  const { session, subject = '', expiresAt = 0 } = principal;
  return session === undefined ? `token:${expiresAt}:${subject}` : `session:${session.stored.id}`;
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

/** Names a person to people: the subject of a token, or whose key it is. */
export function subjectOf(principal: Principal): string {
  const writer = writerOf(principal);
  return writer.slice(writer.indexOf(':') + 1);
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
      return { kind: 'dashboard', subject: result.subject, role: result.role, expiresAt: result.expiresAt };
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
  const wanted = auth.kind === 'api_key' ? 'an API key' : 'a dashboard JWT';
  const sentence =
    auth.kind === 'session'
      ? 'This endpoint needs a session of the desk: sign in.'
      : `This endpoint needs ${wanted}: send Authorization: Bearer.`;
  return problem('credentials_missing', sentence, {
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
  return `Bearer realm="${auth.kind === 'api_key' ? 'sdk' : 'dashboard'}"`;
}
