// The keys of the `registry` section, and of `sync`, which follows a registry elsewhere.
import { createPublicKey } from 'node:crypto';
import { resolve } from 'node:path';
import { z } from 'zod';
import { SCOPES } from '../domain/scope.ts';
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
  secret: key('secret', secret().optional(), 'Signs and verifies dashboard tokens.'),
  public_key: key(
    'publicKey',
    text('a public key in PEM (BEGIN PUBLIC KEY); a private key must not stand here', isPublicKey).optional(),
    'Verifies them instead.',
  ),
  jwks_url: key(
    'jwksUrl',
    text('an https URL, or http to a loopback or private address', isSafeUrl).optional(),
    'Where the keys stand that verify them instead; publish a new one 30 seconds before it signs.',
  ),
  issuer: key(
    'issuer',
    text('the issuer that tokens must name').default('tollgate'),
    'The issuer that tokens must name.',
  ),
  audience: key(
    'audience',
    text('the audience that tokens must name').default('dashboard'),
    'The audience that tokens must name.',
  ),
}).transform(({ secret, publicKey: pem, jwksUrl: url, issuer, audience }): JwtConfig => {
  if (secret !== undefined) return { key: { kind: 'secret', secret }, issuer, audience };
  if (pem !== undefined) return { key: { kind: 'public_key', pem }, issuer, audience };
  return { key: { kind: 'jwks', url: url ?? '' }, issuer, audience };
});

const apiKeys = z.array(
  section({
    name: key('name', identifier('a name of this key'), 'Stands in logs and lists.'),
    key: key('key', apiKey(), 'What its holder presents.'),
    scopes: key(
      'scopes',
      z
        .array(choice(SCOPES))
        .min(1, `is empty; write ${SCOPES.join(', ')} or both`)
        .default(['sdk']),
      'What it may be used for.',
    ),
  }),
);

export function registrySection(folder: string) {
  return section({
    listen: key('listen', listen().prefault('127.0.0.1:8403'), 'Dashboards and SDKs connect here.', 'restart'),
    store: key(
      'store',
      store(folder).prefault({ url: 'sqlite:data/tollgate.db' }),
      'Routes, API keys and charges.',
      'restart',
    ),
    jwt: key('jwt', jwt.optional(), 'Dashboard tokens; left out, the first start makes a secret.'),
    api_keys: key('apiKeys', apiKeys.optional(), 'Keys of SDKs and sidecars; more by `tollgate keys create`.'),
    cors_origins: key('corsOrigins', z.array(origin()).default([]), 'Dashboards of these origins may ask.'),
    limits: key(
      'limits',
      section({
        body: key('bodyBytes', count(1024, 1_048_576).default(65_536), 'Bytes of a request body: 413.'),
        routes: key('routes', count(1, 200_000).default(100_000), 'Routes that are stored.'),
        connections: key('connections', count(1, 1_000_000).default(2000), 'Connections at a time.'),
        event_streams: key('eventStreams', count(0, 1_000_000).default(1000), 'Event streams at a time.'),
        event_streams_per_key: key('eventStreamsPerKey', count(0, 1_000_000).default(500), 'The same, of one API key.'),
        registrations_per_minute: key(
          'registrationsPerMinute',
          limit(1_000_000).default(6000),
          'Routes that one API key may add in a minute, all of them at once if it likes.',
        ),
      }).prefault({}),
      'How much of everything.',
      'restart',
    ),
  });
}

export function syncSection(folder: string) {
  return section({
    registry_url: key(
      'registryUrl',
      url('the http or https URL of the registry, without query'),
      'Where routes come from; http only to loopback and private addresses.',
      'restart',
    ),
    api_key: key(
      'apiKey',
      apiKey(),
      'Presented there; scope sdk, and ledger if that registry keeps the charges.',
      'restart',
    ),
    insecure: key('', flag().default(false), 'True: plain http to anywhere.', 'restart'),
    poll_interval: key(
      'pollIntervalMs',
      duration(10).prefault('15s'),
      'How often it is asked, beside its event stream.',
      'restart',
    ),
    snapshot_file: key(
      'snapshotFile',
      text('a file name')
        .transform((value) => resolve(folder, value))
        .prefault('data/routes.json'),
      'The last good route set: serves a restart while the registry is away.',
      'restart',
    ),
    snapshot_max_age: key(
      'snapshotMaxAgeMs',
      duration(0, 8760 * 3_600_000).prefault('24h'),
      'How old that may be.',
      'restart',
    ),
    empty_after: key(
      'emptyAfterMs',
      duration(0).prefault('5m'),
      'How long an emptied route set is held back.',
      'restart',
    ),
    when_absent: key(
      'whenAbsent',
      choice(['refuse', 'forward']).default('refuse'),
      'What becomes of requests before any route set is there.',
      'restart',
    ),
    listen: key('listen', listen().optional(), 'The endpoints of the registry here too, relayed.', 'restart'),
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
