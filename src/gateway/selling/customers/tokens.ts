// Recognises customers by tokens (JWT) of an issuer. Algorithm, issuer and audience are pinned by the configuration, and the
// algorithm by the key: a token never says how it is checked. Verdicts are kept for a minute, or until the token ends. A token
// of a client that showed too many that were no good waits for its turn: the next one may be right, and its customer's.
import { createPublicKey, createSecretKey, hash } from 'node:crypto';
import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { LRUCache } from 'lru-cache';
import type { TokenProof } from '../../../domain/selling/customer.ts';
import type { Clock } from '../../../host/clock.ts';
import { algorithmsOf, ASYMMETRIC } from '../../../host/jwt/key-algorithms.ts';
import type { KeySet } from '../../../host/jwt/key-set.ts';
import { findMalformation } from '../../../host/jwt/token-form.ts';
import type { SlowLane } from '../../../host/slow-lane.ts';
import { headerValues } from '../../caller.ts';
import { ABSENT, EXPIRED, UNKNOWN, type Recognise, type Recognition } from './recognition.ts';

export type TokensDeps = {
  /** The keys at a URL, one set for all entries that name it and for all configurations. */
  readonly keySet: (url: string) => KeySet;
  readonly clock: Clock;
  /** Whether this client has shown too much that was refused: a further token is not looked at at once. */
  readonly isOver: (request: Parameters<Recognise>[0]) => boolean;
  /** Checks those of a client that has shown too much. */
  readonly slowly: SlowLane;
};

const MOST_BYTES = 8 * 1024;
const BEARER = /^Bearer +/i;
const LEEWAY_SECONDS = 60;
const KEPT = 10_000;
const KEPT_MS = 60_000;
const NAME = /^[\x21-\x7e]{1,128}$/;

type TokenVerdict = { readonly recognition: Recognition; readonly untilMs: number };

/** Throws if the key of the configuration cannot be used. */
export function recogniseTokens(header: string, entry: string, proof: TokenProof, deps: TokensDeps): Recognise {
  const { clock, isOver, slowly } = deps;
  const verify = createVerify(entry, proof, deps);
  const kept = new LRUCache<string, TokenVerdict>({ max: KEPT });
  return (request) => {
    const [value, ...others] = headerValues(request.req.rawHeaders, header);
    if (value === undefined) return ABSENT;
    const token = value.replace(BEARER, '');
    if (others.length > 0 || token.length > MOST_BYTES || findMalformation(token) !== undefined) return UNKNOWN;
    const digest = hash('sha256', token);
    const known = kept.get(digest);
    if (known !== undefined && clock.now() < known.untilMs) return known.recognition;
    const check = async (): Promise<Recognition> => {
      const { recognition, untilMs } = await verify(token);
      if (recognition.kind !== 'unavailable')
        kept.set(digest, { recognition, untilMs: Math.min(untilMs, clock.now() + KEPT_MS) });
      return recognition;
    };
    return isOver(request) ? (slowly(check) ?? UNKNOWN) : check();
  };
}

function createVerify(
  entry: string,
  { issuer, audience, key, require: required, name }: TokenProof,
  { clock, keySet }: TokensDeps,
): (token: string) => Promise<TokenVerdict> {
  const { getKey, algorithms } = prepare(key, keySet);
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, getKey, {
        ...{ algorithms: [...algorithms], issuer, audience, requiredClaims: ['exp'] },
        ...{ clockTolerance: LEEWAY_SECONDS, currentDate: new Date(clock.now()) },
      });
      const untilMs = ((payload.exp ?? 0) + LEEWAY_SECONDS) * 1000;
      const fits = Object.entries(required).every(([path, wanted]) => holdsOne(claimAt(payload, path), wanted));
      return { recognition: fits ? nameOf(payload, name, entry) : UNKNOWN, untilMs };
    } catch (error) {
      if (error instanceof KeysUnavailable) return { recognition: { kind: 'unavailable' }, untilMs: 0 };
      if (error instanceof errors.JWTExpired) return { recognition: EXPIRED, untilMs: Infinity };
      if (error instanceof errors.JOSEError) return { recognition: UNKNOWN, untilMs: Infinity };
      throw error;
    }
  };
}

type VerificationKey = { readonly getKey: JWTVerifyGetKey; readonly algorithms: readonly string[] };

function prepare(key: TokenProof['key'], keySet: TokensDeps['keySet']): VerificationKey {
  switch (key.kind) {
    case 'secret': {
      const secret = createSecretKey(Buffer.from(key.secret));
      return { getKey: () => Promise.resolve(secret), algorithms: ['HS256'] };
    }
    case 'public_key': {
      const publicKey = createPublicKey(key.pem);
      return { getKey: () => Promise.resolve(publicKey), algorithms: algorithmsOf(publicKey) };
    }
    case 'jwks': {
      const keys = keySet(key.url);
      const getKey: JWTVerifyGetKey = async ({ alg, kid }) => {
        const found = await keys.find(alg, kid);
        if (found === 'unavailable') throw new KeysUnavailable('the key set could not be fetched');
        if (found === 'unknown') throw new errors.JWKSNoMatchingKey();
        return found;
      };
      return { getKey, algorithms: ASYMMETRIC };
    }
    default:
      return key satisfies never;
  }
}

class KeysUnavailable extends Error {}

/** The claim at a dotted path; a claim whose name holds the dots itself comes first. */
function claimAt(payload: JWTPayload, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path];
  return path.split('.').reduce<unknown>((value, step) => {
    const isMember = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, step);
    return isMember ? Reflect.get(value, step) : undefined;
  }, payload);
}

function holdsOne(claim: unknown, wanted: readonly string[]): boolean {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.some((value) => wanted.some((each) => each === (typeof value === 'string' ? value : plainText(value))));
}

/** A claim that is a number or a truth value, as a configuration writes it. */
function plainText(value: unknown): string | undefined {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** A claim that cannot be a name makes nobody: two customers must not share one. */
function nameOf(payload: JWTPayload, claim: string | undefined, entry: string): Recognition {
  const value = claim === undefined ? undefined : claimAt(payload, claim);
  if (value === undefined) return { kind: 'known', name: entry };
  return typeof value === 'string' && NAME.test(value) ? { kind: 'known', name: value } : UNKNOWN;
}
