// The keys of the `decision` section: one row each, as keys.ts describes them. Many are those of the proxy, without their
// defaults: a listener that leaves one out takes it from `proxy` (front.ts).
import { z } from 'zod';
import { DIALECTS } from '../domain/dialect.ts';
import { choice, cidr, duration, headerName, listen, text } from './fields.ts';
import { key, section, type Key } from './keys.ts';
import { DRAIN_KEYS, LIMIT_KEYS, PROXY_KEYS } from './proxy-keys.ts';

/** Names that mean something else on this listener. */
const NOT_FOR_SECRET =
  /^(tollgate-(?!secret$).*|payment-.*|x-payment.*|x-forwarded-.*|x-original-.*|x-request-id|host|authorization|cookie|connection|content-.*|transfer-encoding)$/i;

/** A key of the proxy that a decision listener may leave out. */
function inherited<const Name extends string, Schema extends z.ZodType>(
  row: Key<Name, Schema>,
): Key<Name, z.ZodOptional<z.ZodType<z.output<Schema>>>> {
  const given =
    row.schema instanceof z.ZodDefault || row.schema instanceof z.ZodPrefault || row.schema instanceof z.ZodOptional;
  const schema = (given ? row.schema.def.innerType : row.schema) as z.ZodType<z.output<Schema>>;
  return { ...row, schema: schema.optional(), sentence: `${row.sentence} Left out: that of \`proxy\`.` };
}

const {
  target,
  headers,
  connections,
  in_flight,
  in_flight_per_client,
  payments,
  payments_per_client,
  refused_payments_per_client,
  challenges_per_client,
} = LIMIT_KEYS;

const decisionSection = section({
  listen: key('listen', listen().prefault('127.0.0.1:8404'), 'Proxies ask here.', 'restart'),
  dialect: key(
    'dialect',
    choice(DIALECTS),
    'The proxy that asks, and so the form of its questions and of the answers. `haproxy` also fits Apache.',
    'restart',
  ),
  trusted_peers: key(
    'trustedPeers',
    z.array(cidr()).default(['127.0.0.0/8', '::1/128']),
    'Addresses that may ask. Everybody else is refused.',
  ),
  secret: key(
    'secret',
    text('a secret of 16 to 512 visible ASCII characters, without spaces', (value) =>
      /^[\x21-\x7e]{16,512}$/.test(value),
    ).optional(),
    'Every question has to carry it. Reports of a failed upstream need it.',
  ),
  secret_header: key(
    'secretHeader',
    headerName('a header name of letters, digits and dashes')
      .refine((value) => !NOT_FOR_SECRET.test(value), {
        error: 'is a header with a meaning of its own; choose another name',
      })
      .default('Tollgate-Secret'),
    'The header that carries the secret.',
  ),
  pass: key(
    'pass',
    text('a location of nginx, such as "@app" or /app', (value) => /^[@/][\x21-\x7e]{0,255}$/.test(value)).default(
      '@app',
    ),
    'For `nginx_accel`: the location that forwards an allowed request.',
  ),
  path_prefix: key(
    'pathPrefix',
    text('a path such as /tollgate, or ""', (value) =>
      /^$|^\/[A-Za-z0-9\-._~/]{0,255}[A-Za-z0-9\-._~]$/.test(value),
    ).default(''),
    'For `envoy`: what its http_service.path_prefix puts in front of each target.',
  ),
  answer_within: key(
    'answerWithinMs',
    duration(1000, 120_000).prefault('25s'),
    'Time in which every question is answered. The time-out of the proxy must be longer.',
  ),
  repeat_window: key(
    'repeatWindowMs',
    duration(0, 600_000).prefault('60s'),
    'Time in which the same request may be asked about again after it was allowed.',
  ),
  allow_headers: key(
    'allowHeaders',
    z
      .array(
        headerName('a header name of letters, digits and dashes').refine((value) => !/^tollgate-/i.test(value), {
          error: 'begins with tollgate-: no such header is let in',
        }),
      )
      .default([]),
    'Headers that rewrite a URL or a method, and are let in all the same.',
  ),
  public_url: inherited(PROXY_KEYS.public_url),
  upstream_profile: inherited(PROXY_KEYS.upstream_profile),
  encoded_slashes: inherited(PROXY_KEYS.encoded_slashes),
  double_slashes: inherited(PROXY_KEYS.double_slashes),
  undeclared_methods: inherited(PROXY_KEYS.undeclared_methods),
  methods: inherited(PROXY_KEYS.methods),
  preflight: inherited(PROXY_KEYS.preflight),
  cors_origins: inherited(PROXY_KEYS.cors_origins),
  customer_header: inherited(PROXY_KEYS.customer_header),
  customer_header_trusted: inherited(PROXY_KEYS.customer_header_trusted),
  limits: key(
    'limits',
    section({
      target: inherited(target),
      headers: inherited(headers),
      connections: inherited(connections),
      in_flight: inherited(in_flight),
      in_flight_per_client: inherited(in_flight_per_client),
      payments: inherited(payments),
      payments_per_client: inherited(payments_per_client),
      refused_payments_per_client: inherited(refused_payments_per_client),
      challenges_per_client: inherited(challenges_per_client),
    }).prefault({}),
    'Limits of this listener.',
  ),
  timeouts: key(
    'timeouts',
    section({ drain_delay: inherited(DRAIN_KEYS.drain_delay), drain: inherited(DRAIN_KEYS.drain) }).prefault({}),
    'Time limits of this listener.',
  ),
});

/** One listener or several, always as a list (`expandDecision`). */
export const decisionList = z
  .array(decisionSection, { error: 'is no listener; write a section, or a list of sections' })
  .min(1, 'is empty; write at least one listener');

export type DecisionSection = z.output<typeof decisionSection>;
