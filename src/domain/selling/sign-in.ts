// Sign-in-with-x, by which a wallet says who it is: what a 402 declares, the nonce, and the message that is signed. The nonce is
// ours alone: a time and a keyed digest of it, good for five minutes, so that nothing is stored for it. A signature says who
// asks, never that anything is paid. Sources: the x402 extension sign-in-with-x, EIP-4361.
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';

/** Where a message is good: domain and URI of the public URL. */
export type SignInSite = { readonly domain: string; readonly uri: string };

/** What each 402 of one second says of its own. */
export type SignInNonce = { readonly nonce: string; readonly issuedAt: string; readonly expirationTime: string };

export type SignInNonces = {
  readonly issue: (nowMs: number) => SignInNonce;
  /** What was issued with `nonce`; undefined if it is not ours, or older than five minutes. */
  readonly find: (nonce: string, nowMs: number) => SignInNonce | undefined;
};

export const SIGN_IN_LIFE_MS = 300_000;
const MAC_BYTES = 16;
const NONCE = /^[0-9a-f]{40}$/;
/** A clock of a replica may be ahead. */
const LEEWAY_MS = 30_000;

/** All `secrets` verify; the first one signs. */
export function createSignInNonces(secrets: readonly string[]): SignInNonces {
  const keys = secrets.map((secret) =>
    createSecretKey(createHmac('sha256', secret).update('tollgate sign-in').digest()),
  );
  const mac = (key: (typeof keys)[number], seconds: string): Buffer =>
    createHmac('sha256', key).update(seconds).digest().subarray(0, MAC_BYTES);
  let latest: SignInNonce | undefined;
  const write = (seconds: number, nonce: string): SignInNonce => ({
    nonce,
    issuedAt: new Date(seconds * 1000).toISOString(),
    expirationTime: new Date(seconds * 1000 + SIGN_IN_LIFE_MS).toISOString(),
  });
  return {
    issue: (nowMs) => {
      const seconds = Math.floor(nowMs / 1000);
      const text = seconds.toString(16).padStart(8, '0');
      if (latest?.nonce.startsWith(text) === true) return latest;
      const [signer] = keys;
      if (signer === undefined) throw new Error('charges.secrets is empty: nonces need a secret');
      latest = write(seconds, text + mac(signer, text).toString('hex'));
      return latest;
    },
    find: (nonce, nowMs) => {
      if (!NONCE.test(nonce)) return undefined;
      const text = nonce.slice(0, 8);
      const seconds = Number.parseInt(text, 16);
      const ageMs = nowMs - seconds * 1000;
      if (ageMs > SIGN_IN_LIFE_MS || ageMs < -LEEWAY_MS) return undefined;
      const given = Buffer.from(nonce.slice(8), 'hex');
      return keys.some((key) => timingSafeEqual(mac(key, text), given)) ? write(seconds, nonce) : undefined;
    },
  };
}

/** Kinds of signature by the namespace of their chain (CAIP-2). */
const TYPES: ReadonlyMap<string, 'eip191' | 'ed25519'> = new Map([
  ['eip155', 'eip191'],
  ['solana', 'ed25519'],
]);

export type SignatureType = 'eip191' | 'ed25519';

/** The kind of signature of a chain; undefined: wallets of it cannot sign in. */
export function signatureTypeOf(chainId: string): SignatureType | undefined {
  return TYPES.get(chainId.slice(0, chainId.indexOf(':')));
}

// Stand where the nonce and the times go, which have the same length in every answer.
export const SIGN_IN_HOLE = '\u0001';
export const SIGN_IN_HOLE_JSON = JSON.stringify(SIGN_IN_HOLE).slice(1, -1);
/** Bytes of a nonce and two times. */
export const SIGN_IN_BYTES = 40 + 24 + 24;

/** The declaration with its holes; undefined if no wallet of these chains can sign in. */
export function writeSignIn(
  { domain, uri }: SignInSite,
  chains: readonly string[],
  withSchema: boolean,
): string | undefined {
  const supportedChains = [...new Set(chains)].flatMap((chainId) => {
    const type = signatureTypeOf(chainId);
    return type === undefined ? [] : [{ chainId, type }];
  });
  if (supportedChains.length === 0) return undefined;
  const own = { nonce: SIGN_IN_HOLE, issuedAt: SIGN_IN_HOLE, expirationTime: SIGN_IN_HOLE };
  const info = { domain, uri, version: '1', ...own };
  return JSON.stringify({ info, supportedChains, ...(withSchema ? { schema: SCHEMA } : {}) });
}

const TEXT = { type: 'string' };
const TIME = { type: 'string', format: 'date-time' };
const REQUIRED = ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'];
/** The schema of the extension, as its reference writes it. */
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    ...{ domain: TEXT, address: TEXT, statement: TEXT, uri: { type: 'string', format: 'uri' }, version: TEXT },
    ...{ chainId: TEXT, type: TEXT, nonce: TEXT, issuedAt: TIME, expirationTime: TIME, notBefore: TIME },
    ...{ requestId: TEXT, resources: { type: 'array', items: { type: 'string', format: 'uri' } }, signature: TEXT },
  },
  required: REQUIRED,
};

/** The message that a wallet signed, as it was issued; undefined: wallets of that chain sign none. */
export function signedMessage(
  { domain, uri }: SignInSite,
  { nonce, issuedAt, expirationTime }: SignInNonce,
  { chainId, address }: { readonly chainId: string; readonly address: string },
): string | undefined {
  const type = signatureTypeOf(chainId);
  if (type === undefined) return undefined;
  const account = type === 'eip191' ? 'Ethereum' : 'Solana';
  const facts = [
    ...[`URI: ${uri}`, 'Version: 1', `Chain ID: ${chainId.slice(chainId.indexOf(':') + 1)}`],
    ...[`Nonce: ${nonce}`, `Issued At: ${issuedAt}`, `Expiration Time: ${expirationTime}`],
  ];
  // EIP-4361 leaves an empty line for a statement that is not there.
  const empty = type === 'eip191' ? ['', ''] : [''];
  return [`${domain} wants you to sign in with your ${account} account:`, address, ...empty, ...facts].join('\n');
}
