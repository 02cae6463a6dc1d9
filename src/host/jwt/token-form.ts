// Checks the form of a token (JWT) before any key is asked. It has three parts in canonical base64url, JSON that
// every reader reads alike, a header without extensions, and claims of the right types. Whatever two programs could
// understand differently is refused here. So the signature check only meets tokens with one meaning.

const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;
/** A token that an issuer made for something else (logout, proof of possession, a security event) opens no dashboard. */
const TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt']);
/** The end of the year 9999, the last that RFC 3339 can write. */
const LAST_SECOND = 253_402_300_799;
const NUMERIC_DATES = ['exp', 'nbf', 'iat'];
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const NOT_A_JWT = 'The token is not a valid JWT.';

/** A public sentence without quotes about what is wrong with `token`, or undefined. */
export function findMalformation(token: string): string | undefined {
  const parts = COMPACT.exec(token)?.slice(1);
  if (!parts?.every(isCanonical)) return NOT_A_JWT;
  const [header, claims] = parts.slice(0, 2).map(readObject);
  if (header === undefined || claims === undefined) return NOT_A_JWT;
  return headerFault(header) ?? claimsFault(claims);
}

function headerFault(header: ReadonlyMap<string, unknown>): string | undefined {
  const [alg, kid, typ] = ['alg', 'kid', 'typ'].map((name) => header.get(name));
  if (typeof alg !== 'string') return NOT_A_JWT;
  if (header.has('kid') && typeof kid !== 'string') return 'The kid of the token is not a string.';
  if (header.has('typ') && !isTypeOfOurs(typ)) return 'The typ of the token is not one that is taken here.';
  if (header.has('crit') || header.has('b64')) return 'The token needs an extension that is not known here.';
  return undefined;
}

function claimsFault(claims: ReadonlyMap<string, unknown>): string | undefined {
  const odd = NUMERIC_DATES.find((name) => claims.has(name) && !isNumericDate(claims.get(name)));
  if (odd !== undefined) return `The claim ${odd} of the token is not a time.`;
  const subject = claims.get('sub');
  if (claims.has('sub') && typeof subject !== 'string') return 'The claim sub of the token is not a string.';
  return undefined;
}

/** Whether a type is ours, with or without the tree in front (RFC 7515 section 4.1.9). */
function isTypeOfOurs(typ: unknown): boolean {
  return typeof typ === 'string' && TYPES.has(typ.toLowerCase().replace(/^application\//, ''));
}

/** JSON writes 1e999 too, and reads it as infinite. */
function isNumericDate(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= LAST_SECOND;
}

/** Whether the bytes are spelled in the one way: no bits left over at the end. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

/** The members of one JSON object in UTF-8; undefined for anything else, also if a name stands twice at any depth. */
function readObject(part: string): ReadonlyMap<string, unknown> | undefined {
  try {
    const text = utf8.decode(Buffer.from(part, 'base64url'));
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return countNamesWritten(text) === countNamesRead(value) ? new Map(Object.entries(value)) : undefined;
  } catch {
    return undefined;
  }
}

/** Names in a text that is known to be JSON: strings with a colon behind them. */
function countNamesWritten(text: string): number {
  let names = 0;
  for (const [, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*(:)?/gs)) if (colon !== undefined) names++;
  return names;
}

/** Parsing keeps the last of several members with one name, so that fewer are read than were written. */
function countNamesRead(root: object): number {
  const open: object[] = [root];
  let names = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const values: unknown[] = Object.values(next);
    if (!Array.isArray(next)) names += values.length;
    for (const value of values) if (typeof value === 'object' && value !== null) open.push(value);
  }
  return names;
}
