// Base64 as credentials are written: the standard alphabet, padded, nothing else in between (RFC 4648, section 4). To decode
// and count takes a tenth of the time that an expression over every character does.

/** The bytes that `value` writes; undefined where it is anything else, or empty. */
export function decodeBase64(value: string): Buffer | undefined {
  const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0;
  // The other alphabet's two characters are the only ones that Node's decoder takes besides.
  if (value === '' || value.length % 4 !== 0 || value.includes('-') || value.includes('_')) return undefined;
  // Of a character of two bytes it would take one.
  if (Buffer.byteLength(value) !== value.length) return undefined;
  const bytes = Buffer.from(value, 'base64');
  // What is not base64 is passed over, and then there are fewer bytes than the characters promise.
  return bytes.length === (value.length / 4) * 3 - padding ? bytes : undefined;
}
