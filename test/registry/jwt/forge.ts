// Tokens made by hand, with node:crypto alone: a library would not let most of them be made. Keys are those of the tests'
// own issuer, of an attacker, and nobody else's.
import { createHash, createHmac, generateKeyPairSync, sign, constants, type KeyObject } from 'node:crypto';

export type Signer = { readonly alg: string; readonly sign: (input: string) => Buffer };

export const issuerRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const issuerEc = generateKeyPairSync('ec', { namedCurve: 'P-256' });
export const issuerEd = generateKeyPairSync('ed25519');
export const attackerRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const attackerEc = generateKeyPairSync('ec', { namedCurve: 'P-256' });
export const attackerEd = generateKeyPairSync('ed25519');

/** As JSON, without members that are undefined. */
export function encode(value: unknown): string {
  return Buffer.from(Buffer.isBuffer(value) ? value : JSON.stringify(value)).toString('base64url');
}

/** Bytes as they are: for header or claims that no JSON library writes. */
export function raw(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

/** Header and claims already encoded. */
export function join(header: string, claims: string, { sign: signBytes }: Pick<Signer, 'sign'>): string {
  return `${header}.${claims}.${signBytes(`${header}.${claims}`).toString('base64url')}`;
}

export function hmac(bits: 256 | 384 | 512, secret: string | Buffer): Signer {
  return { alg: `HS${bits}`, sign: (input) => createHmac(`sha${bits}`, secret).update(input).digest() };
}

export function rsa(bits: 256 | 384 | 512, key: KeyObject): Signer {
  return { alg: `RS${bits}`, sign: (input) => sign(`sha${bits}`, Buffer.from(input), key) };
}

export function pss(bits: 256 | 384 | 512, key: KeyObject): Signer {
  const options = { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: bits / 8 };
  return { alg: `PS${bits}`, sign: (input) => sign(`sha${bits}`, Buffer.from(input), options) };
}

export function ecdsa(key: KeyObject, bits: 256 | 384 | 512 = 256): Signer {
  return {
    alg: `ES${bits}`,
    sign: (input) => sign(`sha${bits}`, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }),
  };
}

/** What most libraries make of ECDSA, and a JWT must not hold. */
export function ecdsaDer(key: KeyObject): Signer {
  return { alg: 'ES256', sign: (input) => sign('sha256', Buffer.from(input), key) };
}

export function eddsa(key: KeyObject): Signer {
  return { alg: 'EdDSA', sign: (input) => sign(null, Buffer.from(input), key) };
}

/** The order of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

export function number32(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

export const P256_ORDER = number32(ORDER);

/** The other signature of the same message, with s above half the order: both are valid (RFC 7515 asks for neither). */
export function withHighS(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  return Buffer.concat([signature.subarray(0, 32), number32(s > ORDER / 2n ? s : ORDER - s)]);
}

export function thumb(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
