// Private keys of facilitator accounts: from the text that an issuer hands out to a key that signs. A key of another form,
// or one whose public half belongs to another private half, is refused at the start, because every call would be.
// The text goes no further than here, and no message repeats it.
import { createECDH, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

export type SigningKeyKind = 'cdp' | 'payai';

/** Completes "is not ...". */
export const KEY_FORMS: Readonly<Record<SigningKeyKind, string>> = {
  cdp: 'a CDP key: PEM of a P-256 private key (BEGIN PRIVATE KEY or BEGIN EC PRIVATE KEY, \\n counts as a line end), or base64 of 64 bytes, an Ed25519 seed and its public key',
  payai: 'a PayAI key: base64 of an Ed25519 private key in PKCS#8 (48 bytes), with or without payai_sk_ in front of it',
};
const HALVES = 'holds a public key that does not belong to its private key; copy it again from where it was made';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** PKCS#8 of an Ed25519 key up to its seed (RFC 8410, section 7). */
const ED25519_HEAD = '302e020100300506032b657004220420';
const ED25519_PKCS8 = Buffer.from(ED25519_HEAD, 'hex');
const SEED_BYTES = 32;

/** The key, or what is wrong with `text`, as the end of a sentence about it. */
export function readSigningKey(kind: SigningKeyKind, text: string): KeyObject | string {
  switch (kind) {
    case 'cdp':
      return text.includes('-----BEGIN') ? readPem(text) : readSeedAndPublic(text);
    case 'payai':
      return readPkcs8(text.replace(/^payai_sk_/, ''));
    default:
      return kind satisfies never;
  }
}

function readPem(text: string): KeyObject | string {
  const key = readKey({ key: text.replaceAll('\\n', '\n'), format: 'pem' });
  if (key?.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return notA('cdp');
  // A PEM may hold the public point too, and what it holds is not compared when it is read.
  const { d, x, y } = key.export({ format: 'jwk' });
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(d ?? '', 'base64url');
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x ?? '', 'base64url'), Buffer.from(y ?? '', 'base64url')]);
  return pair.getPublicKey().equals(point) ? key : HALVES;
}

function readSeedAndPublic(text: string): KeyObject | string {
  const bytes = readBase64(text);
  if (bytes?.length !== SEED_BYTES * 2) return notA('cdp');
  const key = readKey({
    key: Buffer.concat([ED25519_PKCS8, bytes.subarray(0, SEED_BYTES)]),
    format: 'der',
    type: 'pkcs8',
  });
  if (key === undefined) return notA('cdp');
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url').equals(bytes.subarray(SEED_BYTES)) ? key : HALVES;
}

function readPkcs8(text: string): KeyObject | string {
  const der = readBase64(text);
  if (der?.length !== ED25519_PKCS8.length + SEED_BYTES) return notA('payai');
  const key = readKey({ key: der, format: 'der', type: 'pkcs8' });
  return key?.asymmetricKeyType === 'ed25519' ? key : notA('payai');
}

/** Reads a private key; undefined: it has not that form, or a passphrase. */
function readKey(input: Parameters<typeof createPrivateKey>[0]): KeyObject | undefined {
  try {
    return createPrivateKey(input);
  } catch {
    return undefined;
  }
}

/** The standard alphabet, padding optional; undefined if anything else stands. */
function readBase64(text: string): Buffer | undefined {
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '') ? bytes : undefined;
}

function notA(kind: SigningKeyKind): string {
  return `is not ${KEY_FORMS[kind]}`;
}
