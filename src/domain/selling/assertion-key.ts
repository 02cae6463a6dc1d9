// Keys that sign what Tollgate asserts to the upstream. Ed25519 keys come out of `charges.secrets`, one of each secret, so that
// replicas, workers and sidecars agree without being told, and the rotation of the secrets is theirs too. A key says nothing
// about its secret, nor about what else the secret signs (RFC 5869, HKDF).
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  sign,
  type KeyObject,
} from 'node:crypto';

/** Algorithm of an assertion, as RFC 7518 and RFC 8037 name it. */
export type AssertionAlgorithm = 'EdDSA' | 'HS256';

/** Key that signs assertions. */
export type AssertionKey = {
  readonly algorithm: AssertionAlgorithm;
  readonly kid: string;
  /** Signs the first two parts of a token; returns the third one. */
  readonly sign: (input: string) => string;
};

/** Public key as RFC 8037 writes it. */
type PublicKey = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
};

const SEED_INFO = 'tollgate assertion Ed25519';
const KID_INFO = 'tollgate assertion HS256 kid';
const SEED_BYTES = 32;
const KID_BYTES = 16;
/** What stands before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410 section 7). */
const PKCS8_HEX = '302e020100300506032b657004220420';

function privateKeyOf(secret: string): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', SEED_INFO, SEED_BYTES));
  return createPrivateKey({ key: Buffer.concat([Buffer.from(PKCS8_HEX, 'hex'), seed]), format: 'der', type: 'pkcs8' });
}

function publicKeyOf(privateKey: KeyObject): PublicKey {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  // The thumbprint of RFC 7638: its members in this order.
  const thumbprint = createHash('sha256').update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }));
  return { kty: 'OKP', crv: 'Ed25519', x, kid: thumbprint.digest('base64url'), use: 'sig', alg: 'EdDSA' };
}

/** Makes the Ed25519 key of a secret of charges. */
export function createDerivedKey(secret: string): AssertionKey {
  const key = privateKeyOf(secret);
  const { kid } = publicKeyOf(key);
  return { algorithm: 'EdDSA', kid, sign: (input) => sign(null, Buffer.from(input), key).toString('base64url') };
}

/** Makes the key of a secret that the upstream knows too. */
export function createSharedKey(secret: string): AssertionKey {
  const key = createSecretKey(Buffer.from(secret));
  const kid = Buffer.from(hkdfSync('sha256', secret, '', KID_INFO, KID_BYTES)).toString('base64url');
  return { algorithm: 'HS256', kid, sign: (input) => createHmac('sha256', key).update(input).digest('base64url') };
}

/** Writes the public keys of `secrets` as a JSON Web Key Set (RFC 7517 section 5), each key once. */
export function publicKeySet(secrets: readonly string[]): string {
  return JSON.stringify({ keys: [...new Set(secrets)].map((secret) => publicKeyOf(privateKeyOf(secret))) });
}
