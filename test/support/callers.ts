// Who may call a facilitator, judged as CDP and PayAI judge it: by the signature and every claim of a token that was made
// for this very call, and only once. Knows node:crypto and nothing of the program's own code. Accounts are made here too.
import { createPublicKey, generateKeyPairSync, verify, type KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export type Account =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'cdp' | 'payai'; readonly keyId: string; readonly publicKey: KeyObject };

export type NewAccount = {
  readonly account: Account & { readonly keyId: string };
  readonly keyId: string;
  /** As the issuer hands it out. */
  readonly secret: string;
};

/** A key id is no secret: it is shorter than what is looked for as one. */
export function newCdpAccount(form: 'pem' | 'ed25519' = 'ed25519', keyId = 'cdp-key-7'): NewAccount {
  const { privateKey, publicKey } =
    form === 'pem' ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' }) : generateKeyPairSync('ed25519');
  const secret = form === 'pem' ? privateKey.export({ type: 'pkcs8', format: 'pem' }) : bothHalves(privateKey);
  return { account: { kind: 'cdp', keyId, publicKey }, keyId, secret };
}

export function newPayaiAccount(keyId = 'payai-key-7'): NewAccount {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  return { account: { kind: 'payai', keyId, publicKey }, keyId, secret: `payai_sk_${der.toString('base64')}` };
}

/** Base64 of an Ed25519 seed and its public key. */
export function bothHalves(privateKey: KeyObject, publicKey = createPublicKey(privateKey)): string {
  const { d = '' } = privateKey.export({ format: 'jwk' });
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64');
}

/** Says what is wrong with a call, or undefined where its caller may make it. `nowMs`: the facilitator's own clock. */
export type Doorkeeper = (call: Pick<IncomingMessage, 'method' | 'url' | 'headers'>) => string | undefined;

/** `host`: under which it is called, where that is not what the call says. */
export function createDoorkeeper(account: Account, nowMs: () => number, host?: string): Doorkeeper {
  const seen = new Set<string>();
  return ({ method, url, headers }) => {
    const [, token] = /^Bearer ([\x21-\x7e]+)$/.exec(headers.authorization ?? '') ?? [];
    if (token === undefined) return 'no bearer token';
    if (account.kind === 'bearer') return token === account.token ? undefined : 'another token';
    const parts = token.split('.');
    const [head = '', claims = '', signature = ''] = parts;
    if (parts.length !== 3) return 'not a JWT';
    const header = readPart(head);
    const payload = readPart(claims);
    if (!isSigned(account.publicKey, header['alg'], `${head}.${claims}`, signature)) return 'signature';
    if (header['kid'] !== account.keyId || payload['sub'] !== account.keyId) return 'key id';
    if (header['typ'] !== 'JWT') return 'typ';
    const { iat, nbf, exp } = payload;
    const now = nowMs() / 1000;
    if (typeof iat !== 'number' || typeof exp !== 'number' || exp !== iat + 120) return 'lifetime';
    if (iat > now || now >= exp) return 'time';
    const once = account.kind === 'cdp' ? header['nonce'] : payload['jti'];
    const form = account.kind === 'cdp' ? /^[0-9a-f]{32}$/ : UUID_V4;
    if (typeof once !== 'string' || !form.test(once)) return 'nonce';
    if (seen.has(once)) return 'nonce was used before';
    seen.add(once);
    if (account.kind === 'payai') return payload['iss'] === 'payai-merchant' ? undefined : 'iss';
    if (payload['iss'] !== 'cdp' || nbf !== iat || payload['aud'] !== undefined) return 'iss, nbf or aud';
    const [path = ''] = (url ?? '').split('?');
    return JSON.stringify(payload['uris']) === JSON.stringify([`${method} ${host ?? headers.host}${path}`])
      ? undefined
      : 'uris';
  };
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function isSigned(key: KeyObject, alg: unknown, text: string, signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  if (key.asymmetricKeyType === 'ed25519') return alg === 'EdDSA' && verify(null, Buffer.from(text), key, bytes);
  return alg === 'ES256' && verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, bytes);
}

function readPart(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
}
