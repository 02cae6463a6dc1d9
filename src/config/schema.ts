// The configuration file as a schema: every key with its default, and no other key. It speaks the
// file's snake_case; build.ts turns the result into a Config. What needs two keys to judge stands in combinations.ts.
import { createPublicKey } from 'node:crypto';
import { http } from '../host/node-http.ts';
import { z } from 'zod';
import { PROFILE_NAMES } from '../domain/profile.ts';
import { SCOPES } from '../domain/scope.ts';
import { allowedMethods } from '../domain/method.ts';
import {
  apiKey,
  choice,
  cidr,
  count,
  duration,
  flag,
  headerName,
  host,
  identifier,
  isSafeUrl,
  limit,
  listen,
  oneOf,
  optionalDuration,
  origin,
  parseUrl,
  secret,
  text,
  url,
} from './fields.ts';
import { receiverSchema } from './receivers.ts';
import { configRouteSchema } from './routes.ts';

const RESERVED_HEADERS =
  /^(tollgate-.*|payment-.*|x-payment.*|x-forwarded-.*|host|authorization|cookie|connection|content-.*|transfer-encoding)$/i;

const store = text('sqlite: and a file, such as sqlite:data/tollgate.db', (value) =>
  /^sqlite:(?!:)[^\0?]+$/.test(value),
);

const methods = z.array(
  text('a method that HTTP servers read, such as PURGE or PROPFIND; TRACE and CONNECT are never let in', (value) => {
    const method = value.toUpperCase();
    return http.METHODS.includes(method) && allowedMethods([method]).has(method);
  }).transform((value) => value.toUpperCase()),
);

const proxy = z.strictObject({
  listen: listen().prefault('0.0.0.0:8402'),
  upstream: url(
    'the scheme, host and port of the API behind Tollgate, such as http://127.0.0.1:3000, without a path',
    (parsed) => parsed.pathname === '/',
  ),
  host_header: choice(['preserve', 'upstream']).default('preserve'),
  public_url: url(
    'the http or https URL at which clients reach this proxy: scheme, host and maybe port, without a path',
    (parsed) => parsed.pathname === '/',
  ).optional(),
  hosts: z.array(host()).default([]),
  trusted_proxies: z.array(cidr()).default([]),
  upstream_profile: z
    .custom<(typeof PROFILE_NAMES)[number]>((value) => PROFILE_NAMES.some((name) => name === value), {
      error: `is not known; write ${oneOf(PROFILE_NAMES)}`,
    })
    .default('unknown'),
  encoded_slashes: choice(['refuse', 'keep']).default('refuse'),
  double_slashes: choice(['merge', 'keep']).default('merge'),
  undeclared_methods: choice(['forward', 'pay', 'refuse']).default('forward'),
  methods: methods.default([]),
  preflight: choice(['answer', 'forward']).default('answer'),
  cors_origins: z.array(origin()).default([]),
  customer_header: headerName('a header name of letters, digits and dashes')
    .refine((value) => !RESERVED_HEADERS.test(value), {
      error: 'is a header with a meaning of its own; choose another name',
    })
    .default('X-Customer-Id'),
  customer_header_trusted: flag().default(false),
  pass_payment_headers: flag().default(false),
  timeouts: z
    .strictObject({
      connect: duration(1).prefault('5s'),
      headers: duration(1).prefault('60s'),
      idle: duration(1).prefault('300s'),
      upload: duration(1).prefault('30s'),
      total: duration(1).optional(),
      drain_delay: duration(0).prefault('5s'),
      drain: duration(0).prefault('25s'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      target: count(64, 65_536).default(8192),
      headers: count(1024, 1_048_576).default(32_768),
      connections: count(1, 1_000_000).default(20_000),
      in_flight: count(1, 1_000_000).default(10_000),
      in_flight_per_client: limit(1_000_000).default(0),
      payments: count(1, 1_000_000).default(1000),
      payments_per_client: limit(1_000_000).default(0),
      refused_payments_per_client: limit(1_000_000).default(0),
      challenges_per_client: z
        .preprocess(
          (value) => (value === 'off' || value === 0 ? {} : value),
          z.strictObject({
            per_minute: limit(1_000_000).default(0),
            burst: count(1, 1_000_000).default(60),
            clients: count(2, 10_000_000).default(65_536),
          }),
        )
        .prefault({}),
    })
    .prefault({}),
});

const jwt = z.strictObject({
  secret: secret().optional(),
  public_key: text('a public key in PEM (BEGIN PUBLIC KEY); a private key must not stand here', isPublicKey).optional(),
  jwks_url: text('an https URL, or http to a loopback or private address', isSafeUrl).optional(),
  issuer: text('the issuer that tokens must name').default('tollgate'),
  audience: text('the audience that tokens must name').default('dashboard'),
});

const registry = z.strictObject({
  listen: listen().prefault('127.0.0.1:8403'),
  store: store.default('sqlite:data/tollgate.db'),
  jwt: jwt.optional(),
  api_keys: z
    .array(
      z.strictObject({
        name: identifier('a name of this key'),
        key: apiKey(),
        scopes: z
          .array(choice(SCOPES))
          .min(1, `is empty; write ${SCOPES.join(', ')} or both`)
          .default(['sdk']),
      }),
    )
    .optional(),
  cors_origins: z.array(origin()).default([]),
  limits: z
    .strictObject({
      body: count(1024, 1_048_576).default(65_536),
      routes: count(1, 200_000).default(100_000),
      connections: count(1, 1_000_000).default(2000),
      event_streams: count(0, 1_000_000).default(1000),
      event_streams_per_key: count(0, 1_000_000).default(500),
      registrations_per_minute: limit(1_000_000).default(6000),
    })
    .prefault({}),
});

const sync = z.strictObject({
  registry_url: url('the http or https URL of the registry, without query'),
  api_key: apiKey(),
  insecure: flag().default(false),
  poll_interval: duration(10).prefault('15s'),
  snapshot_file: text('a file name').default('data/routes.json'),
  snapshot_max_age: duration(0, 8760 * 3_600_000).prefault('24h'),
  empty_after: duration(0).prefault('5m'),
  when_absent: choice(['refuse', 'forward']).default('refuse'),
  listen: listen().optional(),
});

/** A week: long enough that nobody loses charges that were not looked at yet. */
const RETENTION_MS = 7 * 86_400_000;

export const configSchema = z.strictObject({
  proxy: proxy.optional(),
  registry: registry.optional(),
  sync: sync.optional(),
  admin: z.strictObject({ listen: listen().prefault('127.0.0.1:9402') }).prefault({}),
  charges: z
    .strictObject({
      secrets: z.array(secret()).min(1, 'is empty; write at least one secret').optional(),
      store: store.optional(),
      quote_ttl: duration(1000, 24 * 3_600_000).prefault('300s'),
      keep_response: count(0, 16_777_216).default(65_536),
      max_unsettled_per_payer: count(1, 10_000).default(64),
      retention: optionalDuration(RETENTION_MS).optional(),
    })
    .prefault({}),
  receivers: z.array(receiverSchema).default([]),
  routes: z.array(configRouteSchema).default([]),
  x402: z.strictObject({ v1: flag().default(false) }).prefault({}),
  metrics: z.strictObject({ max_routes: count(0, 100_000).default(1000) }).prefault({}),
  log: z
    .strictObject({
      level: choice(['debug', 'info', 'warn', 'error']).default('info'),
      access: flag().default(true),
      format: choice(['auto', 'json', 'text']).default('auto'),
    })
    .prefault({}),
  workers: count(1, 1).default(1),
});
export type ConfigInput = z.output<typeof configSchema>;

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

/** The part of an upstream URL that a connection needs. `value` was checked by the schema. */
export function toUpstream(value: string): { protocol: 'http' | 'https'; host: string; port: number; origin: string } {
  const parsed = parseUrl(value);
  const protocol = parsed?.protocol === 'https:' ? 'https' : 'http';
  return {
    protocol,
    host: (parsed?.hostname ?? '').replace(/^\[|\]$/g, ''),
    port: Number(parsed?.port || (protocol === 'https' ? 443 : 80)),
    origin: parsed?.origin ?? '',
  };
}
