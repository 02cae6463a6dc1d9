// The keys of the `proxy` section: one row each, as keys.ts describes them.
import { z } from 'zod';
import { PROFILE_NAMES } from '../domain/profile.ts';
import { allowedMethods } from '../domain/method.ts';
import { http } from '../host/node-http.ts';
import {
  choice,
  cidr,
  count,
  described,
  duration,
  flag,
  headerName,
  host,
  limit,
  listen,
  oneOf,
  origin,
  parseUrl,
  text,
  url,
} from './fields.ts';
import { key, section } from './keys.ts';

const RESERVED_HEADERS =
  /^(tollgate-.*|payment-.*|x-payment.*|x-forwarded-.*|host|authorization|cookie|connection|content-.*|transfer-encoding)$/i;

const methods = z.array(
  text('a method that HTTP servers read, such as PURGE or PROPFIND; TRACE and CONNECT are never let in', (value) => {
    const method = value.toUpperCase();
    return http.METHODS.includes(method) && allowedMethods([method]).has(method);
  }).transform((value) => value.toUpperCase()),
);

export const proxySection = section({
  listen: key(
    'listen',
    listen().prefault('0.0.0.0:8402'),
    'Clients connect here; nothing of Tollgate itself is served on this port.',
    'restart',
  ),
  upstream: key(
    'upstream',
    url(
      'the scheme, host and port of the API behind Tollgate, such as http://127.0.0.1:3000, without a path',
      (parsed) => parsed.pathname === '/',
    ).transform(toUpstream),
    'Your API.',
  ),
  host_header: key('hostHeader', choice(['preserve', 'upstream']).default('preserve'), 'Which Host your API sees.'),
  public_url: key(
    'publicUrl',
    url(
      'the http or https URL at which clients reach this proxy: scheme, host and maybe port, without a path',
      (parsed) => parsed.pathname === '/',
    ).optional(),
    'Where clients reach this API; left out, the scheme and Host of each request.',
  ),
  hosts: key('hosts', z.array(host()).default([]), 'Further names under which clients reach this API.'),
  trusted_proxies: key('trustedProxies', z.array(cidr()).default([]), 'Whose X-Forwarded-* are believed.'),
  upstream_profile: key(
    'upstreamProfile',
    described(
      z.custom<(typeof PROFILE_NAMES)[number]>((value) => PROFILE_NAMES.some((name) => name === value), {
        error: `is not known; write ${oneOf(PROFILE_NAMES)}`,
      }),
      oneOf(PROFILE_NAMES),
    ).default('unknown'),
    'What your API runs on; `tollgate probe` asks it which profile is safe.',
  ),
  encoded_slashes: key(
    'encodedSlashes',
    choice(['refuse', 'keep']).default('refuse'),
    'What becomes of a path with `%2F` in it.',
  ),
  double_slashes: key(
    'doubleSlashes',
    choice(['merge', 'keep']).default('merge'),
    'Whether `//` in a path counts as one slash.',
  ),
  undeclared_methods: key(
    'undeclaredMethods',
    choice(['forward', 'pay', 'refuse']).default('forward'),
    'What becomes of a method that no route names, on a path that has one.',
  ),
  methods: key('methods', methods.default([]), 'Further methods to let in.'),
  preflight: key(
    'preflight',
    choice(['answer', 'forward']).default('answer'),
    'Who answers CORS preflights for paid paths: Tollgate or your API.',
  ),
  cors_origins: key(
    'corsOrigins',
    z.array(origin()).default([]),
    'Browsers of these origins may read what Tollgate itself answers.',
  ),
  customer_header: key(
    'customerHeader',
    headerName('a header name of letters, digits and dashes')
      .refine((value) => !RESERVED_HEADERS.test(value), {
        error: 'is a header with a meaning of its own; choose another name',
      })
      .default('X-Customer-Id'),
    'Holds the customer id of a request.',
  ),
  customer_header_trusted: key(
    'customerHeaderTrusted',
    flag().default(false),
    'True only if something in front of Tollgate sets that header.',
  ),
  pass_payment_headers: key(
    'passPaymentHeaders',
    flag().default(false),
    'For an API with a paywall of its own: payment headers pass on requests that cost nothing.',
  ),
  limits: key(
    'limits',
    section({
      target: key('targetBytes', count(64, 65_536).default(8192), 'Bytes of a request target: 414.'),
      headers: key('headerBytes', count(1024, 1_048_576).default(32_768), 'Bytes of request headers: 431.', 'restart'),
      connections: key(
        'connections',
        count(1, 1_000_000).default(20_000),
        'Connections of clients at a time.',
        'restart',
      ),
      in_flight: key('inFlight', count(1, 1_000_000).default(10_000), 'Requests at a time.'),
      in_flight_per_client: key('inFlightPerClient', limit(1_000_000).default(0), 'The same, of one client.'),
      payments: key('payments', count(1, 1_000_000).default(1000), 'Requests that present a payment, at a time.'),
      payments_per_client: key('paymentsPerClient', limit(1_000_000).default(0), 'The same, of one client.'),
      refused_payments_per_client: key(
        'refusedPaymentsPerClient',
        limit(1_000_000).default(0),
        'Payments of one client that a facilitator may refuse in a minute.',
      ),
      challenges_per_client: key(
        'challengesPerClient',
        z
          .preprocess(
            (value) => (value === 'off' || value === 0 ? {} : value),
            section({
              per_minute: key('perMinute', limit(1_000_000).default(0), 'A minute.'),
              burst: key('burst', count(1, 1_000_000).default(60), 'At once.'),
              clients: key('clients', count(2, 10_000_000).default(65_536), 'Clients that are remembered.'),
            }),
          )
          .prefault({}),
        'Answers 402 that one client may draw.',
      ),
    }).prefault({}),
    'How much of everything.',
  ),
  timeouts: key(
    'timeouts',
    section({
      connect: key('connectMs', duration(1).prefault('5s'), 'To connect to your API.'),
      headers: key(
        'headersMs',
        duration(1).prefault('60s'),
        'For the head of a response, and for a client to send its headers.',
        'clients',
      ),
      idle: key('idleMs', duration(1).prefault('300s'), 'Without a byte either way.', 'clients'),
      upload: key('uploadMs', duration(1).prefault('30s'), 'Without a byte of a request body that is waited for: 408.'),
      total: key('totalMs', duration(1).optional(), 'For an exchange with your API as a whole; left out, no limit.'),
      drain_delay: key('drainDelayMs', duration(0).prefault('5s'), 'From SIGTERM until nothing more is accepted.'),
      drain: key('drainMs', duration(0).prefault('25s'), 'From SIGTERM until what is in flight is ended.'),
    }).prefault({}),
    'How long things may take.',
  ),
});

/** The part of an upstream URL that a connection needs. */
function toUpstream(value: string): { protocol: 'http' | 'https'; host: string; port: number; origin: string } {
  const parsed = parseUrl(value);
  const protocol = parsed?.protocol === 'https:' ? 'https' : 'http';
  return {
    protocol,
    host: (parsed?.hostname ?? '').replace(/^\[|\]$/g, ''),
    port: Number(parsed?.port || (protocol === 'https' ? 443 : 80)),
    origin: parsed?.origin ?? '',
  };
}
