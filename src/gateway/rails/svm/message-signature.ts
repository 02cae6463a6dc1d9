// Signatures of Solana wallets under a message: Ed25519, by the key that the address is.
import { createPublicKey, verify } from 'node:crypto';
import type { Wallets } from '../chain-family.ts';
import { readBase58 } from './addresses.ts';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

export const SVM_WALLETS: Wallets = {
  isSigned: async ({ message, address, signature }) => {
    const key = readBase58(address, KEY_BYTES);
    const signed = readBase58(signature, SIGNATURE_BYTES);
    if (key === undefined || signed === undefined) return 'malformed';
    try {
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') };
      const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
      return verify(null, Buffer.from(message), publicKey, signed) ? 'genuine' : 'forged';
    } catch {
      return 'forged';
    }
  },
};
