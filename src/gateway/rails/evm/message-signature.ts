// Signatures of EVM wallets under a message for people (EIP-191), as a key makes them: 65 bytes, from which the account is
// recovered. A contract's signature needs a call of its chain, and is not read. The curve is loaded with the first signature
// that is checked: 2 ms each, and most processes never check one.
import { keccak_256 } from '@noble/hashes/sha3';
import type { Wallets } from '../chain-family.ts';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const SIGNATURE = /^0x[0-9a-fA-F]{130}$/;
const HEX = /^0x(?:[0-9a-fA-F]{2})+$/;
const PREFIX = '\u0019Ethereum Signed Message:\n';

export const EVM_WALLETS: Wallets = {
  isSigned: async ({ message, address, signature }) => {
    if (!ADDRESS.test(address) || !HEX.test(signature)) return 'malformed';
    if (!SIGNATURE.test(signature)) return 'unsupported';
    const bytes = Buffer.from(signature.slice(2), 'hex');
    const last = bytes[64] ?? 0;
    const recovery = last >= 27 ? last - 27 : last;
    if (recovery > 1) return 'forged';
    const text = Buffer.from(message);
    const digest = keccak_256(Buffer.concat([Buffer.from(PREFIX + String(text.length)), text]));
    const { secp256k1 } = await import('@noble/curves/secp256k1');
    try {
      const parsed = secp256k1.Signature.fromCompact(bytes.subarray(0, 64)).addRecoveryBit(recovery);
      const key = parsed.recoverPublicKey(digest).toRawBytes(false);
      const account = Buffer.from(keccak_256(key.subarray(1))).toString('hex', 12);
      return account === address.slice(2).toLowerCase() ? 'genuine' : 'forged';
    } catch {
      return 'forged';
    }
  },
};
