// The checksum of an EVM address, which stands in the case of its letters (EIP-55).
import { keccak_256 } from '@noble/hashes/sha3';

/** Whether `address` (0x and 40 hex digits) has both cases of letters, and not as its checksum wants them. */
export function hasWrongChecksum(address: string): boolean {
  const digits = address.slice(2);
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return false;
  const hash = Buffer.from(keccak_256(digits.toLowerCase())).toString('hex');
  return Array.from(digits).some((digit, index) => {
    const upper = Number.parseInt(hash.charAt(index), 16) >= 8;
    return digit !== (upper ? digit.toUpperCase() : digit.toLowerCase());
  });
}
