// Secrets of Standard Webhooks: `whsec_` and the base64 of a key of 24 to 64 bytes.
const BYTES = { least: 24, most: 64 };

/** The key in a secret; undefined if it is none. */
export function keyOfSecret(secret: string): Buffer | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (encoded === undefined) return undefined;
  const key = Buffer.from(encoded, 'base64');
  // Base64 that ends in the middle of a byte would be read by each receiver in its own way.
  const isExact = key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  return isExact && key.length >= BYTES.least && key.length <= BYTES.most ? key : undefined;
}
