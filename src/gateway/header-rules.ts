// The headers that may cross, by name. Our own names and those of payments are reserved in every spelling: CGI, WSGI,
// Rack and PHP read `X_A`, `X.A` and `X-A` as one. A name with any other character than letters, digits and dashes
// never goes upstream. The lists are data; headers.ts applies them.

/** Rule for a request header on its way to the upstream. */
export type InboundRule =
  | 'pass'
  | 'drop'
  /** Passes if the request costs nothing and the operator said so. */
  | 'payment'
  /** Dropped on paths that some route protects: it changes the method behind our back. */
  | 'method_override'
  /** Dropped if the settlement waits for the response. */
  | 'conditional'
  /** Passes without our cookies. */
  | 'cookie'
  /** Dropped if the body has to be whole; together with If-Range also if the settlement waits for the response. */
  | 'range'
  /** Dropped if the body has to be read. */
  | 'encoding'
  /** Believed only if it comes from a trusted peer. */
  | 'forwarded_for'
  | 'forwarded_proto'
  | 'forwarded_host'
  | 'trusted_only';

/** Rule for a response header on its way to the client. */
export type OutboundRule =
  | 'pass'
  | 'drop'
  | 'payment'
  | 'connection'
  | 'content_length'
  | 'cache_control'
  /** A cache may obey it instead of Cache-Control. */
  | 'cache_override'
  | 'allow_origin'
  | 'location';

/** RFC 9110 section 7.6.1, and what older proxies send. */
export const HOP_BY_HOP: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Names that rewrite a request and that the patterns below do not know. */
const REWRITES: ReadonlySet<string> = new Set(['forwarded', 'x-forwarded-prefix', 'x-host', 'x-now-route-matches']);

export const INBOUND: ReadonlyMap<string, InboundRule> = spelled([
  ...rules('pass', [
    'accept',
    'accept-charset',
    'accept-language',
    'authorization',
    'cache-control',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-type',
    'date',
    'dnt',
    'origin',
    'pragma',
    'priority',
    'referer',
    'sec-fetch-dest',
    'sec-fetch-mode',
    'sec-fetch-site',
    'upgrade-insecure-requests',
    'user-agent',
    'x-requested-with',
  ]),
  // Framing and Host are computed anew; Expect is answered here.
  ...rules('drop', [...HOP_BY_HOP, 'host', 'content-length', 'expect', 'http2-settings']),
  // Ours to say: the request's identities.
  ...rules('drop', ['x-request-id', 'traceparent', 'tracestate']),
  // A server that believes one of these serves another path or host than was matched; NAMES_A_TARGET has the others.
  ...rules('drop', [...REWRITES]),
  ...rules('conditional', ['if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since']),
  ...rules('cookie', ['cookie']),
  ...rules('range', ['range']),
  ...rules('encoding', ['accept-encoding']),
  ...rules('method_override', ['x-http-method', 'x-http-method-override', 'x-method-override']),
  ...rules('payment', ['sign-in-with-x', 'x-payment', 'x-payment-response']),
  ...rules('forwarded_for', ['x-forwarded-for']),
  ...rules('forwarded_proto', ['x-forwarded-proto']),
  ...rules('forwarded_host', ['x-forwarded-host']),
  ...rules('trusted_only', ['x-real-ip']),
]);

/** Rules by the start of a name, if the table above does not know it. */
export const INBOUND_PREFIXES: readonly (readonly [string, InboundRule])[] = [
  ['tollgate', 'drop'],
  ['payment-', 'payment'],
  ['x-forwarded-', 'trusted_only'],
  // Orders about files: Rack::Sendfile takes both from a request, and maps paths by them (CVE-2025-61780).
  ['x-accel-', 'drop'],
  ['x-sendfile', 'drop'],
  // Next.js lets these skip its middleware or say which page is meant.
  ['x-middleware-', 'drop'],
  ['x-invoke-', 'drop'],
];

/**
 * Names of another target, method or host for the request, as proxies and frameworks of many makers spell them:
 * X-Original-URL, X-MS-Original-URL, X-Rewrite-Uri, X-Envoy-Original-Path, Path-Info, X-HTTP-Path-Override.
 */
export const NAMES_A_TARGET =
  /(?:^|-)(?:(?:orig(?:inal)?|rewrite|rewritten|override|real|forwarded|matched|unencoded)-(?:url|uri|path|path-info|query|host|method)|(?:url|uri|path|host)-override|path-info|path-translated|request-uri|script-(?:name|filename|uri|url))$/;

const REWRITING_PREFIXES = ['x-accel-', 'x-sendfile', 'x-middleware-', 'x-invoke-'];

/** Whether a header changes the target, host or page of its request behind our back. `name`: lower-case, all else a dash. */
export function rewritesRequest(name: string): boolean {
  return REWRITES.has(name) || NAMES_A_TARGET.test(name) || REWRITING_PREFIXES.some((each) => name.startsWith(each));
}

export const OUTBOUND: ReadonlyMap<string, OutboundRule> = spelled([
  ...rules('pass', [
    'accept-ranges',
    'age',
    'content-encoding',
    'content-language',
    'content-type',
    'date',
    'etag',
    'last-modified',
    'server',
    'set-cookie',
    'vary',
    'x-powered-by',
  ]),
  ...rules('drop', HOP_BY_HOP),
  // Set anew, the one that the log has.
  ...rules('drop', ['x-request-id']),
  ...rules('connection', ['connection']),
  // Orders to a proxy like us, not to the client.
  ...rules('drop', ['x-lighttpd-send-file', 'x-litespeed-location', 'x-reproxy-url']),
  // Would lead the client around us, straight to the upstream.
  ...rules('drop', ['alt-svc']),
  ...rules('payment', ['x-payment', 'x-payment-response']),
  ...rules('content_length', ['content-length']),
  ...rules('cache_control', ['cache-control']),
  ...rules('cache_override', ['edge-control', 'expires', 'surrogate-control']),
  ...rules('allow_origin', ['access-control-allow-origin']),
  ...rules('location', ['location', 'content-location']),
]);

export const OUTBOUND_PREFIXES: readonly (readonly [string, OutboundRule])[] = [
  ['tollgate', 'drop'],
  ['payment-', 'payment'],
  ['x-accel-', 'drop'],
  ['x-sendfile', 'drop'],
];

/** Maps the usual spellings of each name, so that it need not be lowered first. */
function spelled<Rule>(entries: readonly [string, Rule][]): ReadonlyMap<string, Rule> {
  return new Map(entries.flatMap(([name, rule]) => spellings(name).map((each): [string, Rule] => [each, rule])));
}

/** The two spellings that nearly every header's name comes in: `etag` and `Etag`. `name` is lower-case. */
export function spellings(name: string): [string, string] {
  return [name, name.replace(/(?<![a-z0-9])[a-z]/g, (letter) => letter.toUpperCase())];
}

function rules<Rule extends string>(rule: Rule, names: readonly string[]): [string, Rule][] {
  return names.map((name) => [name, rule]);
}

const OUR_COOKIES: ReadonlySet<string> = new Set([
  'tollgate_pass',
  ...['__Host-tollgate', 'tollgate_desk', '__Host-tollgate_flow', 'tollgate_flow'],
]);

/** A Cookie header without ours: those of the desk, which browsers send to every port of a host, and passes. The others stay byte for byte. */
export function withoutDeskCookies(value: string): string {
  if (!value.includes('tollgate')) return value;
  const pairs = value.split(';');
  const kept = pairs.filter((pair) => !OUR_COOKIES.has((pair.split('=', 1)[0] ?? '').trim()));
  return kept.length === pairs.length ? value : kept.join(';').replace(/^ +/, '');
}
