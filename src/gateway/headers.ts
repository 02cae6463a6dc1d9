// The headers that cross each border. Towards the upstream: nothing with which a client could speak in our name, change
// path or method after the decision, or frame the request in a second way. Towards the client: nothing hop-by-hop,
// nothing that lets a cache keep what was paid for, nothing that leads around us. Headers are raw, in order, read in
// one pass. A header is dropped by its name (header-rules.ts), and never turned into another. Sources: RFC 9110 section
// 7.6, RFC 9112 section 6.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { HTTP_VERSION_UNSUPPORTED, problem, type Problem } from '../domain/problem.ts';
import {
  INBOUND,
  INBOUND_PREFIXES,
  NAMES_A_TARGET,
  OUTBOUND,
  OUTBOUND_PREFIXES,
  type InboundRule,
  type OutboundRule,
  withoutDeskCookies,
} from './header-rules.ts';
import type { Permit } from '../domain/decide.ts';
import type { ResponseHearer } from './outcome.ts';
import type { Trace } from '../host/identifiers.ts';

/** A name that cannot be meant for an address, with a port that cannot be too large: most of them. */
const PLAIN_NAME = /^(?:[A-Za-z0-9_-]+\.)*[A-Za-z_][A-Za-z0-9_-]*(?::(?:\d{1,4}|[1-5]\d{4}))?$/;
/** An address of IPv4 as everybody writes it, by which proxies of the same machine ask. */
const PLAIN_ADDRESS =
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?::(?:\d{1,4}|[1-5]\d{4}))?$/;
const HOST = /^(?:(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;
/** A name has 255 bytes at most (RFC 1035 section 2.3.4). */
const HOST_BYTES = 255 + ':65535'.length;
const LENGTH = /^(?:0|[1-9]\d{0,15})$/;

/**
 * Refuses what Node's parser accepts but a paywall must not. Problems: `http_version_unsupported`,
 * `request_malformed`, `coding_unsupported`.
 */
export function inspectInbound(req: IncomingMessage): Problem | undefined {
  if (req.httpVersionMajor !== 1 || req.httpVersionMinor > 1) {
    return HTTP_VERSION_UNSUPPORTED;
  }
  const raw = req.rawHeaders;
  let hosts = 0;
  let lengths = 0;
  let codings = 0;
  let host = '';
  let length = '0';
  let coding = '';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const size = name.length;
    // Names of other lengths are none of the three.
    if (size !== 4 && size !== 14 && size !== 17) continue;
    switch (name.toLowerCase()) {
      case 'host':
        hosts++;
        host = raw[i + 1] ?? '';
        break;
      case 'content-length':
        lengths++;
        length = raw[i + 1] ?? '';
        break;
      case 'transfer-encoding':
        codings++;
        coding = raw[i + 1] ?? '';
        break;
    }
  }
  if (hosts > 1 || (hosts === 1 ? !isHost(host) : req.httpVersionMinor === 1)) {
    return malformed('The request needs exactly one Host header that names a host.');
  }
  if (lengths > 1 || !LENGTH.test(length)) return malformed('The Content-Length is not one plain number.');
  if (codings === 0) return undefined;
  if (req.httpVersionMinor === 0) return malformed('HTTP/1.0 has no transfer codings.');
  if (lengths > 0) return malformed('The request has both a Content-Length and a transfer coding.');
  if (codings === 1 && coding.toLowerCase() === 'chunked') return undefined;
  return problem('coding_unsupported', 'The only transfer coding this server knows is chunked.');
}

/** Whether a text is a host, or host and port, that a URL can have: a URL made from it later must not fail, nor name another. */
export function isHost(text: string): boolean {
  if (text.length > HOST_BYTES) return false;
  if (PLAIN_NAME.test(text) || PLAIN_ADDRESS.test(text)) return true;
  return HOST.test(text) && URL.canParse(`http://${text}`);
}

const FORWARDED_HOST = /^[A-Za-z0-9.\-_~[\]:]{1,255}$/;

/** Scheme and authority under which the client reached us: the configured one, a trusted peer's word, or our own view. */
export function publicOrigin(req: IncomingMessage, configured: string | undefined, trusted: boolean): string {
  if (configured !== undefined) return configured;
  const { headers } = req;
  const scheme = trusted ? forwardedScheme(headers) : 'http';
  const forwarded = trusted ? lastOf(headers['x-forwarded-host']) : undefined;
  const host = forwarded !== undefined && FORWARDED_HOST.test(forwarded) ? forwarded : (headers.host ?? 'localhost');
  return `${scheme}://${host}`;
}

/** Scheme that the client used, as the nearest peer says. */
export function forwardedScheme(headers: IncomingHttpHeaders): 'http' | 'https' {
  return lastOf(headers['x-forwarded-proto']) === 'https' ? 'https' : 'http';
}

/** Whether a request is a browser's question before one of another origin (CORS). */
export function isPreflight(method: string, headers: IncomingHttpHeaders): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/** The value that the nearest peer added: the last of a comma-separated list. */
function lastOf(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value.at(-1) : value;
  return text?.slice(text.lastIndexOf(',') + 1).trim();
}

/** Whether a request announces a body; one with a length of 0 does not. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

export type UpstreamFacts = {
  readonly trace: Trace;
  /** The peer may speak for others: its X-Forwarded-* are believed and added to. */
  readonly trusted: boolean;
  /** Whether some route protects this path. */
  readonly protectedPath: boolean;
  /** The operator passes payment headers on, and this request costs nothing. */
  readonly passPaymentHeaders: boolean;
  /** Value of the Host header; undefined if the client named none (HTTP/1.0). */
  readonly host: string | undefined;
  /** The upstream is not told which copy the client has: it would answer about that, for nothing. */
  readonly unconditional: boolean;
  /** What has to be had of the response so that it says what the request costs; undefined: no more than anybody gets. */
  readonly needs: ResponseHearer['needs'] | undefined;
};

/** The complete headers for the upstream. `req` went through `inspectInbound`. */
export function upstreamHeaders(req: IncomingMessage, permit: Permit, facts: UpstreamFacts): string[] {
  const { headers, rawHeaders: raw, socket } = req;
  const named = namedByConnection(headers.connection);
  const out: string[] = [];
  out.push('Host', facts.host ?? `${bracketed(socket.localAddress)}:${socket.localPort}`);
  let forwardedFor = '';
  let forwardedProto = '';
  let forwardedHost = '';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    switch (inboundRule(name)) {
      case 'pass':
        break;
      case 'drop':
        continue;
      case 'payment':
        if (!facts.passPaymentHeaders) continue;
        break;
      case 'method_override':
        if (facts.protectedPath) continue;
        break;
      case 'conditional':
        if (facts.unconditional) continue;
        break;
      // Meant for the case that If-Range holds: without it a part is not what was asked for.
      case 'range':
        if (facts.needs === 'whole body' || (facts.unconditional && headers['if-range'] !== undefined)) continue;
        break;
      case 'encoding':
        if (facts.needs === 'whole body' || facts.needs === 'plain body') continue;
        break;
      case 'cookie': {
        const others = withoutDeskCookies(value);
        if (others !== '' && (named === undefined || !named.has('cookie'))) out.push(name, others);
        continue;
      }
      // The next three are set below, whatever Connection names.
      case 'forwarded_for':
        if (facts.trusted) forwardedFor = join(forwardedFor, value);
        continue;
      case 'forwarded_proto':
        if (facts.trusted) forwardedProto = join(forwardedProto, value);
        continue;
      case 'forwarded_host':
        if (facts.trusted) forwardedHost = join(forwardedHost, value);
        continue;
      case 'trusted_only':
        if (facts.trusted) out.push(name, value);
        continue;
    }
    if (named === undefined || !named.has(name.toLowerCase())) out.push(name, value);
  }
  out.push('X-Forwarded-For', join(forwardedFor, peerAddress(socket.remoteAddress)));
  out.push('X-Forwarded-Proto', forwardedProto || 'http');
  if (forwardedHost !== '' || headers.host !== undefined)
    out.push('X-Forwarded-Host', forwardedHost || (headers.host ?? ''));
  const { requestId, traceparent, tracestate } = facts.trace;
  out.push('X-Request-Id', requestId);
  if (traceparent !== undefined) out.push('traceparent', traceparent);
  if (tracestate !== undefined) out.push('tracestate', tracestate);
  if (facts.needs === 'trailers') out.push('TE', 'trailers', 'Connection', 'TE');
  // Framing comes after everything of the client's: Node writes a Content-Disposition that follows a Content-Length anew.
  if (headers['transfer-encoding'] !== undefined) out.push('Transfer-Encoding', 'chunked');
  else if (headers['content-length'] !== undefined) out.push('Content-Length', headers['content-length']);
  for (const part of permit.headers) out.push(part);
  return out;
}

export type ResponseFacts = {
  readonly requestId: string;
  readonly paid: boolean;
  /** Whether payment headers pass, as in UpstreamFacts. */
  readonly passPaymentHeaders: boolean;
  readonly upstream: URL;
  /** Scheme and authority by which clients reach us. */
  readonly publicOrigin: string;
};

// Names of ours that a browser may read from an answer of another origin.
export const EXPOSED =
  'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, Tollgate-Reason, Tollgate-Free-Left, Tollgate-Pass, Tollgate-Pass-Left';

/** Filters what crosses of an upstream's head to the client, in place: `raw` becomes the result. */
export function responseHeaders(facts: ResponseFacts, status: number, raw: string[]): string[] {
  let crossed = 0;
  let connection: string | undefined;
  let length: string | undefined;
  let allowsOrigin = false;
  let isPrivate = false;
  let caching: string[] | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    let value = raw[i + 1] ?? '';
    switch (outboundRule(name)) {
      case 'pass':
        break;
      case 'drop':
        continue;
      case 'payment':
        if (!facts.passPaymentHeaders || facts.paid) continue;
        break;
      case 'connection':
        connection = connection === undefined ? value : join(connection, value);
        continue;
      case 'content_length':
        length = value;
        continue;
      case 'cache_control':
        if (!facts.paid) break;
        (caching ??= []).push(name, value);
        isPrivate ||= saysPrivate(value);
        continue;
      case 'cache_override':
        if (facts.paid) continue;
        break;
      case 'allow_origin':
        allowsOrigin = true;
        break;
      case 'location':
        value = publicLocation(value, facts);
        break;
    }
    raw[crossed] = name;
    raw[crossed + 1] = value;
    crossed += 2;
  }
  raw.length = crossed;
  const named = namedByConnection(connection);
  const kept = named === undefined ? raw : raw.filter((_, i) => !named.has((raw[i - (i % 2)] ?? '').toLowerCase()));
  if (facts.paid) {
    if (isPrivate && caching !== undefined) kept.push(...caching);
    else kept.push('Cache-Control', 'private, no-store');
    if (allowsOrigin) kept.push('Access-Control-Expose-Headers', EXPOSED);
  }
  kept.push('X-Request-Id', facts.requestId);
  // A 204 has no length (RFC 9110 section 8.6). Last, for the reason given above.
  if (length !== undefined && status !== 204 && status >= 200) kept.push('Content-Length', length);
  return kept;
}

/** A character that some servers take for a dash. */
const ODD = /[^a-z0-9-]/;

function inboundRule(name: string): InboundRule {
  const usual = INBOUND.get(name);
  if (usual !== undefined) return usual;
  const lower = name.toLowerCase();
  const known = INBOUND.get(lower);
  if (known !== undefined) return known;
  if (ODD.test(lower) || NAMES_A_TARGET.test(lower)) return 'drop';
  for (const [prefix, rule] of INBOUND_PREFIXES) if (lower.startsWith(prefix)) return rule;
  return 'pass';
}

function outboundRule(name: string): OutboundRule {
  const usual = OUTBOUND.get(name);
  if (usual !== undefined) return usual;
  const lower = name.toLowerCase();
  const known = OUTBOUND.get(lower);
  if (known !== undefined) return known;
  // Headers for one cache by name: CDN-Cache-Control, Netlify-CDN-Cache-Control, X-LiteSpeed-Cache-Control.
  if (lower.endsWith('-cache-control')) return 'cache_override';
  const plain = lower.replace(/[^a-z0-9]/g, '-');
  for (const [prefix, rule] of OUTBOUND_PREFIXES) if (plain.startsWith(prefix)) return rule;
  return plain === lower ? 'pass' : (OUTBOUND.get(plain) ?? 'pass');
}

/**
 * The lower-cased names that a Connection header lists; undefined if it has only a usual one (keep-alive, close,
 * upgrade).
 */
export function namedByConnection(value: string | undefined): ReadonlySet<string> | undefined {
  if (value === undefined) return undefined;
  const lower = value.toLowerCase();
  if (lower === 'keep-alive' || lower === 'close' || lower === 'upgrade') return undefined;
  return new Set(lower.split(',').map((name) => name.trim()));
}

function join(list: string, value: string): string {
  return list === '' ? value : `${list}, ${value}`;
}

/** An IPv4 address on a socket for both families is written as IPv4. */
function peerAddress(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

function bracketed(address: string | undefined): string {
  const plain = peerAddress(address);
  return plain.includes(':') ? `[${plain}]` : plain;
}

function malformed(detail: string): Problem {
  return problem('request_malformed', detail);
}

/** Whether `private` covers the whole answer: `private="name"` is one header, and beside `public` no promise. */
function saysPrivate(value: string): boolean {
  const directives = value.toLowerCase().split(',');
  return directives.some((it) => it.trim() === 'private') && !directives.some((it) => it.trim() === 'public');
}

const AUTHORITY = /^(?:https?:)?\/\/[^/?#\\]*/i;

/** A URL at the upstream's own origin becomes one at ours, or the client would walk around us. */
function publicLocation(value: string, facts: ResponseFacts): string {
  const { upstream } = facts;
  const authority = AUTHORITY.exec(value)?.[0];
  if (authority === undefined) return value;
  const absolute = authority.startsWith('//') ? `${upstream.protocol}${authority}` : authority;
  if (!URL.canParse(absolute) || new URL(absolute).origin !== upstream.origin) return value;
  return `${facts.publicOrigin}${value.slice(authority.length)}`;
}
