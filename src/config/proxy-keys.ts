// The keys of the `proxy` section: one row each, as keys.ts describes them.
import { z } from 'zod';
import { PROFILE_NAMES } from '../domain/routing/profile.ts';
import { allowedMethods } from '../domain/routing/method.ts';
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

/** Rows of `limits`. */
export const LIMIT_KEYS = {
  target: key('targetBytes', count(64, 65_536).default(8192), 'Most bytes of a request target; above it 414.'),
  headers: key(
    'headerBytes',
    count(1024, 1_048_576).default(32_768),
    'Most bytes of request headers; above it 431.',
    'restart',
  ),
  connections: key(
    'connections',
    count(1, 1_000_000).default(20_000),
    'Most connections of clients at a time.',
    'restart',
  ),
  in_flight: key('inFlight', count(1, 1_000_000).default(10_000), 'Most requests at a time.'),
  in_flight_per_client: key('inFlightPerClient', limit(1_000_000).default(0), 'The same for one client.'),
  payments: key('payments', count(1, 1_000_000).default(1000), 'Most requests with a payment at a time.'),
  payments_per_client: key('paymentsPerClient', limit(1_000_000).default(0), 'The same for one client.'),
  refused_payments_per_client: key(
    'refusedPaymentsPerClient',
    limit(1_000_000).default(0),
    'Payments of one client that facilitators may refuse in a minute; then 429 until it is over.',
  ),
  challenges_per_client: key(
    'challengesPerClient',
    z
      .preprocess(
        (value) => (value === 'off' || value === 0 ? {} : value),
        section({
          per_minute: key('perMinute', limit(1_000_000).default(0), '402 responses that one client gets in a minute.'),
          burst: key(
            'burst',
            count(1, 1_000_000).default(60),
            '402 responses that one client gets at once, before that rate applies.',
          ),
          clients: key(
            'clients',
            count(2, 10_000_000).default(65_536),
            'Clients that Tollgate remembers for this limit.',
          ),
        }),
      )
      .prefault({}),
    'A limit of 402 responses for one client.',
  ),
};

/** Rows of `timeouts` about the end of a process. */
export const DRAIN_KEYS = {
  drain_delay: key(
    'drainDelayMs',
    duration(0).prefault('5s'),
    'Time from SIGTERM until Tollgate stops accepting connections.',
  ),
  drain: key(
    'drainMs',
    duration(0).prefault('25s'),
    'Time from SIGTERM until Tollgate ends the requests that are still in flight.',
  ),
};

/** Rows of the section; a decision listener takes some of them over. */
export const PROXY_KEYS = {
  listen: key(
    'listen',
    listen().prefault('0.0.0.0:8402'),
    'Clients connect here. Tollgate serves no endpoint of its own on this port.',
    'restart',
  ),
  upstream: key(
    'upstream',
    url(
      'the scheme, host and port of the API behind Tollgate, such as http://127.0.0.1:3000, without a path',
      (parsed) => parsed.pathname === '/',
    ).transform(toUpstream),
    'The address of your API.',
  ),
  host_header: key(
    'hostHeader',
    choice(['preserve', 'upstream']).default('preserve'),
    'The Host header that your API sees: that of the client, or that of `upstream`.',
  ),
  public_url: key(
    'publicUrl',
    url(
      'the http or https URL at which clients reach this proxy: scheme, host and maybe port, without a path',
      (parsed) => parsed.pathname === '/',
    ).optional(),
    'The URL at which clients reach this API. Left out: the scheme and Host of each request.',
  ),
  hosts: key('hosts', z.array(host()).default([]), 'Further host names of this API.'),
  trusted_proxies: key(
    'trustedProxies',
    z.array(cidr()).default([]),
    'Proxies in front of Tollgate. Only their X-Forwarded-* headers are trusted.',
  ),
  upstream_profile: key(
    'upstreamProfile',
    described(
      z.custom<(typeof PROFILE_NAMES)[number]>((value) => PROFILE_NAMES.some((name) => name === value), {
        error: `is not known; write ${oneOf(PROFILE_NAMES)}`,
      }),
      oneOf(PROFILE_NAMES),
    ).default('unknown'),
    'The router of your API. `tollgate probe` finds out which profile is safe.',
  ),
  encoded_slashes: key(
    'encodedSlashes',
    choice(['refuse', 'keep']).default('refuse'),
    '`refuse`: a path with `%2F` in it is refused. `keep`: it is forwarded.',
  ),
  double_slashes: key(
    'doubleSlashes',
    choice(['merge', 'keep']).default('merge'),
    '`merge`: `//` in a path counts as one slash. `keep`: as two.',
  ),
  undeclared_methods: key(
    'undeclaredMethods',
    choice(['forward', 'pay', 'refuse']).default('forward'),
    'What happens to a method that no route of a path names: it passes free, it costs what the path costs, or it is refused.',
  ),
  methods: key('methods', methods.default([]), 'Further methods that Tollgate accepts.'),
  preflight: key(
    'preflight',
    choice(['answer', 'forward']).default('answer'),
    'CORS preflights for paid paths: Tollgate answers them, or your API does.',
  ),
  cors_origins: key(
    'corsOrigins',
    z.array(origin()).default([]),
    'Pages of these origins may read the responses of Tollgate itself.',
  ),
  customer_header: key(
    'customerHeader',
    headerName('a header name of letters, digits and dashes')
      .refine((value) => !RESERVED_HEADERS.test(value), {
        error: 'is a header with a meaning of its own; choose another name',
      })
      .default('X-Customer-Id'),
    'The header that holds the customer id of a request.',
  ),
  customer_header_trusted: key(
    'customerHeaderTrusted',
    flag().default(false),
    'Set it to true only if a proxy in front of Tollgate sets that header.',
  ),
  pass_payment_headers: key(
    'passPaymentHeaders',
    flag().default(false),
    'For an API with its own paywall: payment headers are forwarded on free requests.',
  ),
  limits: key('limits', section(LIMIT_KEYS).prefault({}), 'Limits of the proxy.'),
  timeouts: key(
    'timeouts',
    section({
      connect: key('connectMs', duration(1).prefault('5s'), 'Time to connect to your API.'),
      headers: key(
        'headersMs',
        duration(1).prefault('60s'),
        'Time for your API to answer with headers, and for a client to send its headers.',
        'clients',
      ),
      idle: key(
        'idleMs',
        duration(1).prefault('300s'),
        'Time without a byte in either direction, after which an exchange ends.',
        'clients',
      ),
      upload: key(
        'uploadMs',
        duration(1).prefault('30s'),
        'Time without a byte of a request body that Tollgate waits for; then 408.',
      ),
      total: key('totalMs', duration(1).optional(), 'Time for a whole exchange with your API. Left out: no limit.'),
      ...DRAIN_KEYS,
    }).prefault({}),
    'Time limits of the proxy.',
  ),
};

export const proxySection = section(PROXY_KEYS);

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
