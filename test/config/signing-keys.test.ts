// The forms in which issuers hand out keys, and everything that looks like one and is none.
import { createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readSigningKey, type SigningKeyKind } from '../../src/config/signing-keys.ts';
import { bothHalves } from '../support/callers.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const otherEc = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const ed = generateKeyPairSync('ed25519');
const otherEd = generateKeyPairSync('ed25519');
const pkcs8 = ec.privateKey.export({ type: 'pkcs8', format: 'pem' });
const sec1 = ec.privateKey.export({ type: 'sec1', format: 'pem' });
const edDer = ed.privateKey.export({ type: 'pkcs8', format: 'der' });
const edBase64 = edDer.toString('base64');

/** SEC1 and PKCS#8 end in the public point: here it is another key's. */
function withOtherPoint(type: 'sec1' | 'pkcs8'): string {
  const der = ec.privateKey.export({ type, format: 'der' });
  const other = otherEc.privateKey.export({ type, format: 'der' });
  const mixed = Buffer.concat([der.subarray(0, -64), other.subarray(-64)]);
  const label = type === 'sec1' ? 'EC PRIVATE KEY' : 'PRIVATE KEY';
  return `-----BEGIN ${label}-----\n${mixed.toString('base64')}\n-----END ${label}-----\n`;
}

describe('keys that sign', () => {
  test.each<[string, SigningKeyKind, string, KeyObject]>([
    ['PKCS#8 in PEM', 'cdp', pkcs8, ec.publicKey],
    ['SEC1 in PEM', 'cdp', sec1, ec.publicKey],
    [
      'SEC1 after its parameters, as openssl ecparam writes it',
      'cdp',
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1}`,
      ec.publicKey,
    ],
    ['PEM with line ends of Windows', 'cdp', pkcs8.replaceAll('\n', '\r\n'), ec.publicKey],
    ['PEM without its last line end', 'cdp', pkcs8.trimEnd(), ec.publicKey],
    ['PKCS#8 on one line, line ends written as \\n', 'cdp', pkcs8.replaceAll('\n', '\\n'), ec.publicKey],
    ['SEC1 on one line, line ends written as \\n', 'cdp', sec1.replaceAll('\n', '\\n'), ec.publicKey],
    ['seed and public key', 'cdp', bothHalves(ed.privateKey), ed.publicKey],
    ['seed and public key without padding', 'cdp', bothHalves(ed.privateKey).replace(/=+$/, ''), ed.publicKey],
    ['PKCS#8 of Ed25519', 'payai', edBase64, ed.publicKey],
    ['the same with its prefix', 'payai', `payai_sk_${edBase64}`, ed.publicKey],
  ])('behaviour: a key written as %s signs', (_, kind, text, publicKey) => {
    const key = readSigningKey(kind, text);
    if (typeof key === 'string') throw new Error(key);
    const digest = publicKey.asymmetricKeyType === 'ec' ? 'sha256' : null;
    expect(verify(digest, Buffer.from('text'), publicKey, sign(digest, Buffer.from('text'), key))).toBe(true);
    expect(createPublicKey(key).equals(publicKey)).toBe(true);
  });
});

describe('what is no such key', () => {
  const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' });
  const encrypted = ec.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' });
  const HALVES = /^holds a public key that does not belong to its private key/;
  const CDP = /^is not a CDP key: PEM of a P-256 private key .*base64 of 64 bytes/;
  const PAYAI = /^is not a PayAI key: base64 of an Ed25519 private key in PKCS#8/;

  test.each<[string, SigningKeyKind, string, RegExp]>([
    ['nothing', 'cdp', '', CDP],
    ['words', 'cdp', 'my secret key', CDP],
    ['a placeholder', 'cdp', '...', CDP],
    ['PEM cut off', 'cdp', pkcs8.slice(0, 90), CDP],
    ['PEM of a P-384 key', 'cdp', pem(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).privateKey), CDP],
    ['PEM of a key of a wallet', 'cdp', pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey), CDP],
    ['PEM of an RSA key', 'cdp', pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey), CDP],
    ['PEM of an Ed25519 key', 'cdp', pem(ed.privateKey), CDP],
    ['PEM of a public key', 'cdp', ec.publicKey.export({ type: 'spki', format: 'pem' }), CDP],
    ['PEM behind a passphrase', 'cdp', encrypted, CDP],
    ['a seed alone', 'cdp', Buffer.alloc(32, 7).toString('base64'), CDP],
    ['63 bytes', 'cdp', Buffer.from(bothHalves(ed.privateKey), 'base64').subarray(0, 63).toString('base64'), CDP],
    ['65 bytes', 'cdp', Buffer.alloc(65, 1).toString('base64'), CDP],
    ['64 bytes in hex', 'cdp', Buffer.from(bothHalves(ed.privateKey), 'base64').toString('hex'), CDP],
    ['64 bytes in base64url', 'cdp', `${'_-'.repeat(43)}_w`, CDP],
    ['64 bytes and a space', 'cdp', ` ${bothHalves(ed.privateKey)}`, CDP],
    ['a PayAI key where a CDP key belongs', 'cdp', edBase64, CDP],
    ['seed and another public key', 'cdp', bothHalves(ed.privateKey, otherEd.publicKey), HALVES],
    ['SEC1 with another point', 'cdp', withOtherPoint('sec1'), HALVES],
    ['PKCS#8 with another point', 'cdp', withOtherPoint('pkcs8'), HALVES],
    ['nothing', 'payai', '', PAYAI],
    ['its prefix alone', 'payai', 'payai_sk_', PAYAI],
    ['a CDP key where a PayAI key belongs', 'payai', bothHalves(ed.privateKey), PAYAI],
    ['PEM', 'payai', pem(ed.privateKey), PAYAI],
    [
      'PKCS#8 of X25519',
      'payai',
      generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
      PAYAI,
    ],
    ['a byte short', 'payai', edDer.subarray(0, -1).toString('base64'), PAYAI],
    ['a byte long', 'payai', Buffer.concat([edDer, Buffer.of(0)]).toString('base64'), PAYAI],
  ])('refuses: %s (%s)', (_, kind, text, says) => {
    const result = readSigningKey(kind, text);
    if (typeof result !== 'string') throw new Error('it was taken for a key');
    expect(result).toMatch(says);
    // Whatever was written there may be a secret.
    for (const piece of text.match(/[A-Za-z0-9+/_-]{12,}/g) ?? []) expect(result).not.toContain(piece);
  });
});
