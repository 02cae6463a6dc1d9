// The assertion to the upstream: a JWT that says what let a request pass, and which request it was. It says nothing else than
// the plain headers of the permit, so the two cannot disagree; method, path and query bind it to one request. A client
// cannot send one: every Tollgate-* header of a client is dropped. Signed by node:crypto in one call, without an await: a
// WebCrypto signature takes about twice as long.
import { hash } from 'node:crypto';
import type { Permit } from '../../domain/decide.ts';
import type { AssertionKey } from '../../domain/selling/assertion-key.ts';
import type { RequestFacts } from '../outcome.ts';

/** Requests that are asserted: those of routes with a plan, those of paths that some route protects, or all. */
export type AssertedRequests = 'plan' | 'protected' | 'all';

/** A request as an assertion describes it. */
export type AssertedRequest = Pick<RequestFacts, 'method' | 'path' | 'target'> & {
  /** Whether some route protects its path. */
  readonly protectedPath: boolean;
};

/** Makes the assertion of a request that goes upstream; undefined: this one is not asserted. */
export type Assert = (permit: Permit, request: AssertedRequest) => string | undefined;

type AssertOptions = {
  readonly key: AssertionKey;
  readonly issuer: string;
  readonly audience: string;
  readonly on: AssertedRequests;
  readonly ttlSeconds: number;
  readonly now: () => number;
  /** Draws an id that no other assertion has. */
  readonly token: () => string;
};

/** Claims by the header that says the same in plain words. */
const CLAIMS: ReadonlyMap<string, string> = new Map([
  ['Tollgate-Access', 'access'],
  ['Tollgate-Route-Id', 'route_id'],
  ['Tollgate-Charge-Id', 'charge_id'],
  ['Tollgate-Use-Id', 'use_id'],
  ['Tollgate-Payer', 'payer'],
  ['Tollgate-Network', 'network'],
  ['Tollgate-Amount', 'amount'],
  ['Tollgate-Currency', 'currency'],
  ['Tollgate-Customer-Id', 'customer_id'],
]);

const NO_QUERY = digest('');

export function createAssert({ key, issuer, audience, on, ttlSeconds, now, token }: AssertOptions): Assert {
  const head = encode(JSON.stringify({ typ: 'tollgate+jwt', alg: key.algorithm, kid: key.kid }));
  return (permit, request) => {
    const told = claimsOf(permit);
    if (on === 'plan' ? told['access'] === undefined : on === 'protected' && !request.protectedPath) return undefined;
    const iat = Math.floor(now() / 1000);
    const { method, path, target } = request;
    const query = target.slice(path.length + 1);
    const claims = {
      ...{ iss: issuer, aud: audience, iat, exp: iat + ttlSeconds, jti: token() },
      ...{ htm: method, htu: path, qsh: query === '' ? NO_QUERY : digest(query) },
      ...{ access: accessOf(permit), route_id: permit.route?.id },
      ...told,
    };
    const signed = `${head}.${encode(JSON.stringify(claims))}`;
    return `${signed}.${key.sign(signed)}`;
  };
}

/** Claims that a permit's headers say in plain words. */
function claimsOf({ headers }: Permit): Record<string, string> {
  const claims: Record<string, string> = {};
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const claim = CLAIMS.get(headers[i] ?? '');
    if (claim !== undefined) claims[claim] = headers[i + 1] ?? '';
  }
  return claims;
}

/** What let a request pass whose upstream is not told in plain words: no plan sells it. */
function accessOf({ because }: Permit): string {
  switch (because) {
    case 'unprotected':
    case 'paused':
    case 'undeclared':
    case 'preflight':
      return 'free';
    case 'paid':
    case 'observed':
    case 'customer':
    case 'pass':
    case 'free':
      return because;
    default:
      return because satisfies never;
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
