// The signature algorithms that a public key may be used with: its own kind's and size's, and no other. A token names an
// algorithm too, and is believed only if the key agrees.
import type { KeyObject } from 'node:crypto';

const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const EDWARDS = ['EdDSA', 'Ed25519'];
const CURVES = new Map([
  ['prime256v1', ['ES256']],
  ['secp384r1', ['ES384']],
  ['secp521r1', ['ES512']],
]);
const MIN_RSA_BITS = 2048;

export const ASYMMETRIC: readonly string[] = [...RSA, ...[...CURVES.values()].flat(), ...EDWARDS];

/** Throws a sentence that begins with what the key is, if it is good for none. */
export function algorithmsOf(key: KeyObject): readonly string[] {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'rsa') {
    if ((modulusLength ?? 0) < MIN_RSA_BITS) throw new Error(`is an RSA key of less than ${MIN_RSA_BITS} bits.`);
    return RSA;
  }
  if (key.asymmetricKeyType === 'ed25519') return EDWARDS;
  const curve = CURVES.get(namedCurve ?? '');
  if (!curve) throw new Error('must be an RSA, P-256, P-384, P-521 or Ed25519 key.');
  return curve;
}
