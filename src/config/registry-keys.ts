// The keys of the `registry` section, and of `sync`, which follows a registry elsewhere.
import { createPublicKey } from 'node:crypto';
import { resolve } from 'node:path';
import { z } from 'zod';
import { SCOPES } from '../domain/scope.ts';
import { deskSection } from './desk.ts';
import {
  apiKey,
  choice,
  count,
  duration,
  flag,
  identifier,
  isSafeUrl,
  limit,
  listen,
  origin,
  secret,
  text,
  url,
} from './fields.ts';
import { key, section } from './keys.ts';
import { store } from './store.ts';

export type JwtConfig = {
  readonly key:
    | { readonly kind: 'secret'; readonly secret: string }
    | { readonly kind: 'public_key'; readonly pem: string }
    | { readonly kind: 'jwks'; readonly url: string };
  readonly issuer: string;
  readonly audience: string;
};

const jwt = section({
  secret: key('secret', secret().optional(), 'The secret that signs and verifies dashboard tokens.'),
  public_key: key(
    'publicKey',
    text('a public key in PEM (BEGIN PUBLIC KEY); a private key must not stand here', isPublicKey).optional(),
    'A public key that verifies dashboard tokens, in place of `secret`.',
  ),
  jwks_url: key(
    'jwksUrl',
    text('an https URL, or http to a loopback or private address', isSafeUrl).optional(),
    'The URL of a key set (JWKS) that verifies dashboard tokens, in place of `secret`. Publish a new key 30 seconds before it signs.',
  ),
  issuer: key(
    'issuer',
    text('the issuer that tokens must name').default('tollgate'),
    'The issuer (`iss`) that tokens must name.',
  ),
  audience: key(
    'audience',
    text('the audience that tokens must name').default('dashboard'),
    'The audience (`aud`) that tokens must name.',
  ),
}).transform(({ secret, publicKey: pem, jwksUrl: url, issuer, audience }): JwtConfig => {
  if (secret !== undefined) return { key: { kind: 'secret', secret }, issuer, audience };
  if (pem !== undefined) return { key: { kind: 'public_key', pem }, issuer, audience };
  return { key: { kind: 'jwks', url: url ?? '' }, issuer, audience };
});

const apiKeys = z.array(
  section({
    name: key('name', identifier('a name of this key'), 'The name of this key in logs and lists.'),
    key: key('key', apiKey(), 'The key itself, which a client sends.'),
    scopes: key(
      'scopes',
      z
        .array(choice(SCOPES))
        .min(1, `is empty; write ${SCOPES.join(', ')} or both`)
        .default(['sdk']),
      'What the key allows: `sdk` to read and register routes, `ledger` to keep charges.',
    ),
  }),
);

const DAY_MS = 24 * 3_600_000;

export function registrySection(folder: string) {
  return section({
    listen: key(
      'listen',
      listen().prefault('127.0.0.1:8403'),
      'Dashboards, SDKs and sidecars connect here.',
      'restart',
    ),
    store: key(
      'store',
      store(folder).prefault({ url: 'sqlite:data/tollgate.db' }),
      'Routes, API keys and charges.',
      'restart',
    ),
    jwt: key('jwt', jwt.optional(), 'Dashboard tokens. Left out: the first start makes a secret.'),
    api_keys: key('apiKeys', apiKeys.optional(), 'Keys of SDKs and sidecars; `tollgate keys create` makes more.'),
    cors_origins: key(
      'corsOrigins',
      z.array(origin()).default([]),
      'Dashboards of these origins may call the registry.',
    ),
    desk: key('desk', deskSection(), 'The page for owners, under /desk/. False: it is not served.'),
    limits: key(
      'limits',
      section({
        body: key('bodyBytes', count(1024, 1_048_576).default(65_536), 'Most bytes of a request body; above it 413.'),
        routes: key('routes', count(1, 200_000).default(100_000), 'Most routes in the store.'),
        connections: key('connections', count(1, 1_000_000).default(2000), 'Most connections at a time.'),
        event_streams: key('eventStreams', count(0, 1_000_000).default(1000), 'Most event streams at a time.'),
        event_streams_per_key: key('eventStreamsPerKey', count(0, 1_000_000).default(500), 'The same for one API key.'),
        registrations_per_minute: key(
          'registrationsPerMinute',
          limit(1_000_000).default(6000),
          'Routes that one API key may add in a minute, also all of them at once.',
        ),
      }).prefault({}),
      'Limits of the registry.',
      'restart',
    ),
    totals: key(
      'totals',
      section({
        hours: key(
          'hoursMs',
          duration(2 * DAY_MS, 3660 * DAY_MS).prefault('90d'),
          'How long counts of requests are kept by the hour.',
        ),
        days: key(
          'daysMs',
          duration(2 * DAY_MS, 3660 * DAY_MS).prefault('800d'),
          'How long counts of requests are kept by the day.',
        ),
      }).prefault({}),
      'Sums for people who look at what was earned. Sums of money stay.',
    ),
    audit: key(
      'audit',
      section({
        keep: key(
          'keepMs',
          duration(DAY_MS, 3660 * DAY_MS).prefault('400d'),
          'How long entries are kept, the newest million of them at most.',
        ),
      }).prefault({}),
      'The audit log: who changed what, and who was refused.',
    ),
  });
}

export function syncSection(folder: string) {
  return section({
    registry_url: key(
      'registryUrl',
      url('the http or https URL of the registry, without query'),
      'The registry whose routes this sidecar serves. Plain http is allowed only to loopback and private addresses.',
      'restart',
    ),
    api_key: key(
      'apiKey',
      apiKey(),
      'The API key for that registry. It needs the scope `sdk`, and `ledger` if that registry keeps the charges.',
      'restart',
    ),
    insecure: key('', flag().default(false), 'True: plain http is allowed to every address.', 'restart'),
    poll_interval: key(
      'pollIntervalMs',
      duration(10).prefault('15s'),
      'How often the sidecar polls the registry, beside its event stream.',
      'restart',
    ),
    snapshot_file: key(
      'snapshotFile',
      text('a file name')
        .transform((value) => resolve(folder, value))
        .prefault('data/routes.json'),
      'The file with the last good route set. A restart uses it while the registry is away.',
      'restart',
    ),
    snapshot_max_age: key(
      'snapshotMaxAgeMs',
      duration(0, 8760 * 3_600_000).prefault('24h'),
      'How old that file may be.',
      'restart',
    ),
    empty_after: key(
      'emptyAfterMs',
      duration(0).prefault('5m'),
      'How long the old routes stay in force after the registry sends an empty set.',
      'restart',
    ),
    when_absent: key(
      'whenAbsent',
      choice(['refuse', 'forward']).default('refuse'),
      'What happens to requests before the first route set: they are refused, or they pass free.',
      'restart',
    ),
    listen: key(
      'listen',
      listen().optional(),
      'The endpoints of the registry are served here too, as a relay.',
      'restart',
    ),
  });
}

function isPublicKey(value: string): boolean {
  // createPublicKey would take a private key too, and derive the public one from it.
  if (value.includes('PRIVATE')) return false;
  try {
    createPublicKey(value);
    return true;
  } catch {
    return false;
  }
}
