// Dashboard tokens (JWT): the only file that knows jose. Algorithms, issuer and audience are pinned by the
// configuration; a token never says with which key or algorithm it is checked. Keys come from the configuration, or
// from the one key set URL that it names. What a token says about keys is not even read.
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { errors, jwtVerify, SignJWT, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../host/clock.ts';
import type { DeskRole } from '../store/desk-ports.ts';
import { algorithmsOf, ASYMMETRIC } from '../../host/jwt/key-algorithms.ts';
import { createKeySet, type FetchKeys, type KeySet } from '../../host/jwt/key-set.ts';
import { findMalformation } from '../../host/jwt/token-form.ts';

export type JwtKey =
  /** Secret of at least 32 bytes; HS256, HS384 or HS512. */
  | { readonly kind: 'secret'; readonly secret: string }
  /** PEM, SPKI or certificate. */
  | { readonly kind: 'public_key'; readonly pem: string }
  | { readonly kind: 'jwks'; readonly url: string };
export type JwtOptions = { readonly issuer: string; readonly audience: string; readonly key: JwtKey };

export type JwtResult =
  /** `expiresAt`: milliseconds since the epoch. */
  | {
      readonly kind: 'valid';
      readonly subject: string | undefined;
      readonly role: DeskRole;
      readonly expiresAt: number;
    }
  /** `reason` is a public sentence without quotes. */
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'unavailable' };
export type JwtVerifier = (token: string) => Promise<JwtResult>;

/**
 * Characters. Far above what issuers make, and half of what the listener takes as headers: a larger one is refused here,
 * with a reason, before it is decoded.
 */
const MAX_TOKEN_LENGTH = 8192;
const CLOCK_TOLERANCE_SECONDS = 5;
const HMAC = ['HS256', 'HS384', 'HS512'];
const MIN_SECRET_BYTES = 32;
/** A token without it is an admin's. */
const ROLE_CLAIM = 'tollgate_role';

/** Throws a sentence if the key cannot be used, so that the start says so and not a request. */
export function createJwtVerifier(options: JwtOptions, clock: Clock, fetch: FetchKeys = globalThis.fetch): JwtVerifier {
  const { getKey, algorithms } = prepareKey(options.key, clock, fetch);
  return async (token) => {
    if (token.length > MAX_TOKEN_LENGTH) return invalid(`The token is longer than ${MAX_TOKEN_LENGTH} characters.`);
    const malformation = findMalformation(token);
    if (malformation !== undefined) return invalid(malformation);
    const now = clock.now();
    try {
      const { payload } = await jwtVerify(token, getKey, {
        algorithms: [...algorithms],
        issuer: options.issuer,
        audience: options.audience,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(now),
      });
      if ((payload.iat ?? 0) > now / 1000 + CLOCK_TOLERANCE_SECONDS)
        return invalid('The token was issued in the future.');
      const role = payload[ROLE_CLAIM];
      if (role !== undefined && role !== 'viewer')
        return invalid(`The claim ${ROLE_CLAIM} of the token is not viewer.`);
      return { kind: 'valid', subject: payload.sub, role: role ?? 'admin', expiresAt: (payload.exp ?? 0) * 1000 };
    } catch (error) {
      if (error instanceof KeySetUnavailable) return { kind: 'unavailable' };
      if (error instanceof errors.JOSEError) return invalid(reasonOf(error));
      throw error;
    }
  };
}

/** Subject of a command, or of the token of one, in the history of a route. */
export const TOKEN_SUBJECT = 'tollgate-cli';

/** A token that the registry with this `secret` takes: for `tollgate token`. `now` in milliseconds. */
export async function mintToken(
  secret: string,
  options: { readonly issuer: string; readonly audience: string; readonly ttlSeconds: number; readonly now: number },
): Promise<string> {
  const issuedAt = Math.floor(options.now / 1000);
  return new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(TOKEN_SUBJECT)
    .setIssuer(options.issuer)
    .setAudience(options.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + options.ttlSeconds)
    .sign(secretKey(secret));
}

function prepareKey(
  key: JwtKey,
  clock: Clock,
  fetch: FetchKeys,
): { getKey: JWTVerifyGetKey; algorithms: readonly string[] } {
  switch (key.kind) {
    case 'secret': {
      const secret = secretKey(key.secret);
      return { getKey: () => Promise.resolve(secret), algorithms: HMAC };
    }
    case 'public_key': {
      if (key.pem.includes('PRIVATE KEY'))
        throw new Error('jwt.public_key holds a private key; give the public one alone.');
      const publicKey = createPublicKey(key.pem);
      return { getKey: () => Promise.resolve(publicKey), algorithms: algorithmsOfConfigured(publicKey) };
    }
    case 'jwks':
      return { getKey: askKeySet(createKeySet(key.url, clock, fetch)), algorithms: ASYMMETRIC };
    default:
      return key satisfies never;
  }
}

function secretKey(secret: string): KeyObject {
  const bytes = Buffer.from(secret);
  if (bytes.length < MIN_SECRET_BYTES) throw new Error(`jwt.secret needs at least ${MIN_SECRET_BYTES} bytes.`);
  return createSecretKey(bytes);
}

function algorithmsOfConfigured(key: KeyObject): readonly string[] {
  try {
    return algorithmsOf(key);
  } catch (error) {
    throw new Error(`jwt.public_key ${error instanceof Error ? error.message : 'cannot be used.'}`, { cause: error });
  }
}

class KeySetUnavailable extends Error {}

function askKeySet({ find }: KeySet): JWTVerifyGetKey {
  return async ({ alg, kid }) => {
    const found = await find(alg, kid);
    if (found === 'unavailable') throw new KeySetUnavailable('the key set could not be fetched');
    if (found === 'unknown') throw new errors.JWKSNoMatchingKey();
    return found;
  };
}

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return error.reason === 'missing'
      ? `The token lacks the claim ${error.claim}.`
      : `The claim ${error.claim} of the token is not what this registry takes.`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed)
    return 'The algorithm of the token is not one that this registry takes.';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'The signature of the token does not verify.';
  if (error instanceof errors.JWKSNoMatchingKey) return 'No key of this registry verifies the token.';
  return 'The token is not a valid JWT.';
}

function invalid(reason: string): JwtResult {
  return { kind: 'invalid', reason };
}
