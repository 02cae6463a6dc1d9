// Dashboard tokens (JWT): the only file that knows jose. Algorithms, issuer and audience are pinned by the configuration;
// a token never says with which key or algorithm it is checked. Keys come from the configuration or from the one key set
// URL that it names, never from a token.
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
  SignJWT,
  type JWTVerifyGetKey,
} from 'jose';
import { z } from 'zod';
import type { Clock } from '../host/clock.ts';

export type JwtKey =
  /** At least 32 bytes; HS256, HS384 or HS512. */
  | { readonly kind: 'secret'; readonly secret: string }
  /** PEM, SPKI or certificate. */
  | { readonly kind: 'public_key'; readonly pem: string }
  | { readonly kind: 'jwks'; readonly url: string };
export type JwtOptions = { readonly issuer: string; readonly audience: string; readonly key: JwtKey };

export type JwtResult =
  | { readonly kind: 'valid'; readonly subject: string | undefined }
  /** `reason` is a public sentence without quotes. */
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'unavailable' };
export type JwtVerifier = (token: string) => Promise<JwtResult>;

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const MAX_TOKEN_LENGTH = 8192;
const CLOCK_TOLERANCE_SECONDS = 5;
const HMAC = ['HS256', 'HS384', 'HS512'];
const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const CURVES = new Map([
  ['prime256v1', ['ES256']],
  ['secp384r1', ['ES384']],
  ['secp521r1', ['ES512']],
]);
const ASYMMETRIC = [...RSA, 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
const MIN_SECRET_BYTES = 32;
const MIN_RSA_BITS = 2048;

/** Throws a sentence where the key cannot be used: that is for the start, not for a request. */
export function createJwtVerifier(options: JwtOptions, clock: Clock, fetch: Fetch = globalThis.fetch): JwtVerifier {
  const { getKey, algorithms } = prepareKey(options.key, clock, fetch);
  return async (token) => {
    if (token.length > MAX_TOKEN_LENGTH) return invalid(`The token is longer than ${MAX_TOKEN_LENGTH} characters.`);
    try {
      const { payload } = await jwtVerify(token, getKey, {
        algorithms,
        issuer: options.issuer,
        audience: options.audience,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now()),
      });
      return { kind: 'valid', subject: payload.sub };
    } catch (error) {
      if (error instanceof KeySetUnavailable || error instanceof errors.JWKSInvalid) return { kind: 'unavailable' };
      if (error instanceof errors.JOSEError) return invalid(reasonOf(error));
      throw error;
    }
  };
}

/** A token that the registry with this `secret` takes: for `tollgate token`. `now` in milliseconds. */
export async function mintToken(
  secret: string,
  options: { readonly issuer: string; readonly audience: string; readonly ttlSeconds: number; readonly now: number },
): Promise<string> {
  const issuedAt = Math.floor(options.now / 1000);
  return new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject('tollgate-cli')
    .setIssuer(options.issuer)
    .setAudience(options.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + options.ttlSeconds)
    .sign(secretKey(secret));
}

function prepareKey(key: JwtKey, clock: Clock, fetch: Fetch): { getKey: JWTVerifyGetKey; algorithms: string[] } {
  switch (key.kind) {
    case 'secret': {
      const secret = secretKey(key.secret);
      return { getKey: () => Promise.resolve(secret), algorithms: HMAC };
    }
    case 'public_key': {
      if (key.pem.includes('PRIVATE KEY'))
        throw new Error('jwt.public_key holds a private key; give the public one alone.');
      const publicKey = createPublicKey(key.pem);
      return { getKey: () => Promise.resolve(publicKey), algorithms: algorithmsOf(publicKey) };
    }
    case 'jwks':
      return { getKey: createKeySet(key.url, clock, fetch), algorithms: ASYMMETRIC };
    default:
      return key satisfies never;
  }
}

function secretKey(secret: string): KeyObject {
  const bytes = Buffer.from(secret);
  if (bytes.length < MIN_SECRET_BYTES) throw new Error(`jwt.secret needs at least ${MIN_SECRET_BYTES} bytes.`);
  return createSecretKey(bytes);
}

function algorithmsOf(key: KeyObject): string[] {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'rsa') {
    if ((modulusLength ?? 0) < MIN_RSA_BITS)
      throw new Error(`jwt.public_key is an RSA key of less than ${MIN_RSA_BITS} bits.`);
    return RSA;
  }
  if (key.asymmetricKeyType === 'ed25519') return ['EdDSA', 'Ed25519'];
  const curve = CURVES.get(namedCurve ?? '');
  if (!curve) throw new Error('jwt.public_key must be an RSA, P-256, P-384, P-521 or Ed25519 key.');
  return curve;
}

const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

class KeySetUnavailable extends Error {}

const FRESH_MS = 10 * 60_000;
const STALE_MS = 24 * 60 * 60_000;
const COOLDOWN_MS = 30_000;
const TIMEOUT_MS = 5_000;
const MAX_KEY_SET_BYTES = 1024 * 1024;

/**
 * The key set at `url`: kept for ten minutes, fetched early for a key id it does not hold, at most twice a minute. While
 * it is away the last good set serves for a day, and nobody waits for it more than once in the cool-down.
 */
function createKeySet(url: string, clock: Clock, fetch: Fetch): JWTVerifyGetKey {
  let fetchedAt = -Infinity;
  let failedAt = -Infinity;
  const remote = createRemoteJWKSet(new URL(url), {
    cacheMaxAge: FRESH_MS,
    cooldownDuration: COOLDOWN_MS,
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: async (from: string, init: RequestInit) => {
      if (clock.monotonic() - failedAt < COOLDOWN_MS)
        throw new KeySetUnavailable('the key set could not be fetched a moment ago');
      try {
        const response = await readKeySet(await fetch(from, init));
        fetchedAt = clock.monotonic();
        return response;
      } catch (cause) {
        failedAt = clock.monotonic();
        throw new KeySetUnavailable('the key set could not be fetched', { cause });
      }
    },
  });
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      const last = remote.jwks();
      if (!(error instanceof KeySetUnavailable) || !last || clock.monotonic() - fetchedAt > STALE_MS) throw error;
      return createLocalJWKSet(last)(header, token);
    }
  };
}

async function readKeySet(response: Response): Promise<Response> {
  if (response.status !== 200 || !response.body) throw new Error(`the key set answered ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > MAX_KEY_SET_BYTES) throw new Error('the key set is too large');
    chunks.push(chunk);
  }
  return Response.json(keySet.parse(JSON.parse(Buffer.concat(chunks).toString())));
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
