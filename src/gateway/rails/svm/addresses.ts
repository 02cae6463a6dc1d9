// Addresses of Solana: base58 of exactly 32 bytes. The usual check of length and alphabet alone takes what no key can have.

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const MAX_LENGTH = 44;
const BYTES = 32;

export function isSvmAddress(text: string): boolean {
  if (text === '' || text.length > MAX_LENGTH) return false;
  let value = 0n;
  for (const character of text) {
    const digit = ALPHABET.indexOf(character);
    if (digit < 0) return false;
    value = value * 58n + BigInt(digit);
  }
  // Every leading 1 stands for a byte of zeros, which the number does not hold.
  const zeros = text.length - text.replace(/^1+/, '').length;
  const rest = value === 0n ? 0 : Math.ceil(value.toString(16).length / 2);
  return zeros + rest === BYTES;
}
