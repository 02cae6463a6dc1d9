// The three ways to configure the key of dashboard tokens, each as a registry over real HTTP with a clock that stands
// still, its right signer, and a trap: a server that nothing may ever connect to, whose address tokens offer as a source
// of keys.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KeyObject } from 'node:crypto';
import { LIST, SECRET, SETTINGS, startRegistry, type Ask, type Reply } from '../kit.ts';
import { ecdsa, encode, hmac, issuerEc, issuerEd, issuerRsa, join, rsa, type Signer } from './forge.ts';

/** Seconds. */
export const NOW = 1_800_000_000;
export const ISSUER = 'tollgate';
export const AUDIENCE = 'dashboard';

export type SettingName = 'secret' | 'public_key' | 'jwks_url';
type Members = Readonly<Record<string, unknown>>;

export type Setting = {
  readonly name: SettingName;
  readonly signer: Signer;
  /** Header members that a token of this issuer has beside `alg`. */
  readonly header: Members;
  /** Public text of the key: what a confused verifier could take for an HMAC secret. */
  readonly publicTexts: readonly (string | Buffer)[];
  /** Base URL of the trap. */
  readonly trap: string;
};

export type Stage = Setting & {
  readonly ask: (ask: Ask, method?: string, path?: string) => Promise<Reply>;
  /** Connections that the trap has seen. */
  readonly trapped: () => number;
  readonly close: () => Promise<void>;
};

export function goodClaims(rest: Members = {}): Members {
  return { iss: ISSUER, aud: AUDIENCE, sub: 'ann', iat: NOW - 10, exp: NOW + 60, ...rest };
}

/** A token of the issuer itself, but for what `rest` and `header` change; undefined takes a member out. */
export function issue(setting: Setting, rest: Members = {}, header: Members = {}, signer = setting.signer): string {
  const whole = { alg: signer.alg, ...setting.header, ...header };
  return join(encode(whole), encode(goodClaims(rest)), signer);
}

export const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' });
export const jwkOf = (key: KeyObject, rest: Members = {}): Members => ({ ...key.export({ format: 'jwk' }), ...rest });

export const KEY_SET = {
  keys: [
    jwkOf(issuerEc.publicKey, { kid: 'ec-1', use: 'sig', alg: 'ES256' }),
    jwkOf(issuerRsa.publicKey, { kid: 'rsa-1', use: 'sig', alg: 'RS256' }),
    jwkOf(issuerEd.publicKey, { kid: 'ed-1', use: 'sig', alg: 'EdDSA' }),
    { kty: 'oct', kid: 'oct-1', alg: 'HS256', k: encode(Buffer.from(SECRET)) },
  ],
};

export async function startSetting(name: SettingName): Promise<Stage> {
  let connections = 0;
  const trap = await listen((_req, res) => void res.end(JSON.stringify(KEY_SET)));
  trap.server.on('connection', () => connections++);
  const keySet = await listen((_req, res) => void res.end(JSON.stringify(KEY_SET)));
  const key = {
    secret: { kind: 'secret', secret: SECRET },
    public_key: { kind: 'public_key', pem: pemOf(issuerRsa.publicKey) },
    jwks_url: { kind: 'jwks', url: `${keySet.url}/keys` },
  } as const;
  const kit = await startRegistry({
    now: () => NOW * 1000,
    settings: { jwt: { ...SETTINGS.jwt, issuer: ISSUER, audience: AUDIENCE, key: key[name] } },
  });
  const signers: Record<SettingName, Pick<Setting, 'signer' | 'header' | 'publicTexts'>> = {
    secret: { signer: hmac(256, SECRET), header: { typ: 'JWT' }, publicTexts: [] },
    public_key: {
      signer: rsa(256, issuerRsa.privateKey),
      header: { typ: 'JWT' },
      publicTexts: textsOf(issuerRsa.publicKey),
    },
    jwks_url: {
      signer: ecdsa(issuerEc.privateKey),
      header: { typ: 'JWT', kid: 'ec-1' },
      publicTexts: [...textsOf(issuerEc.publicKey), ...textsOf(issuerRsa.publicKey), JSON.stringify(KEY_SET)],
    },
  };
  return {
    name,
    ...signers[name],
    trap: trap.url,
    ask: (ask, method = 'GET', path = LIST) => kit.ask(method, path, ask),
    trapped: () => connections,
    close: async () => {
      await kit.close();
      await Promise.all([trap.close(), keySet.close()]);
    },
  };
}

function textsOf(key: KeyObject): (string | Buffer)[] {
  const pem = pemOf(key);
  const { n, x } = key.export({ format: 'jwk' });
  return [
    pem,
    pem.trim(),
    pem.replaceAll('\n', ''),
    pem.replaceAll('\n', '\r\n'),
    pem.split('\n').slice(1, -2).join(''),
    key.export({ type: 'spki', format: 'der' }),
    JSON.stringify(key.export({ format: 'jwk' })),
    n ?? x ?? '',
  ];
}

async function listen(
  handle: Parameters<typeof createServer>[1],
): Promise<{ server: ReturnType<typeof createServer>; url: string; close: () => Promise<unknown> }> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
