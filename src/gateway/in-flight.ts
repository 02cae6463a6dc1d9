// The facts of one request in flight: the request and its response, the caller, and the record that is logged and
// counted. The paywall, the payment and the rules of headers read them here. exchange.ts carries the request through.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { WriteBatch } from '../host/write-batch.ts';
import type { Transport } from '../http/transport.ts';
import type { ReleasePlace } from './admission.ts';
import { type ResponseFacts, type UpstreamFacts, NO_TRACE, type Trace } from './headers.ts';
import type { ResponseOutcome, PaidOutcome } from './outcome.ts';
import type { Paywall } from './paywall.ts';
import { startRecord, type RequestRecord, type Telemetry } from './telemetry.ts';
import type { Caller, Credential } from '../domain/decide.ts';
import { problem, type Problem } from '../domain/problem.ts';
import { BlockList, isIPv6 } from 'node:net';

/** What is the same for every request of a configuration. */
export type ExchangeContext = {
  readonly transport: Transport;
  readonly writeBatch: WriteBatch;
  readonly telemetry: Pick<Telemetry, 'begin' | 'end'>;
  readonly refuse: Paywall['refuse'];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  readonly upstream: URL;
  /** The Host that the upstream is told; undefined: the client's. */
  readonly host: string | undefined;
  readonly publicUrl: string | undefined;
  readonly passPaymentHeaders: boolean;
  /** A proxy in front authenticates the customer header. */
  readonly customerHeaderTrusted: boolean;
  /** A tunnel without a byte for so long is closed. */
  readonly idleMs: number;
};

/** A class, because every request makes one. */
export class InFlight implements UpstreamFacts, ResponseFacts {
  readonly context: ExchangeContext;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  trace: Trace = NO_TRACE;
  /** The peer may speak for others. */
  trusted = false;
  /** Some route protects its path; so until it is known. */
  protectedPath = true;
  /** The time that its payment is judged by. */
  nowMs = 0;
  /** The claimed charge of a request that costs something. */
  charged: PaidOutcome | undefined;
  /** Gives the client's place back, if it holds one. */
  release: ReleasePlace | undefined;

  constructor(context: ExchangeContext, req: IncomingMessage, res: ServerResponse) {
    this.context = context;
    this.req = req;
    this.res = res;
    this.record = startRecord(req, context.clock.monotonic());
  }

  get requestId(): string {
    return this.trace.requestId;
  }

  get method(): string {
    return this.record.method;
  }

  get path(): string {
    return this.record.path;
  }

  get target(): string {
    return this.record.target;
  }

  get origin(): string | undefined {
    return this.req.headers.origin;
  }

  get publicOrigin(): string {
    return publicOrigin(this.req, this.context.publicUrl, this.trusted);
  }

  get customerTrusted(): boolean {
    return this.trusted || this.context.customerHeaderTrusted;
  }

  get conditionalWrite(): boolean {
    const { method, headers } = this.req;
    if (method === 'GET' || method === 'HEAD') return false;
    return headers['if-match'] !== undefined || headers['if-unmodified-since'] !== undefined;
  }

  get upstream(): URL {
    return this.context.upstream;
  }

  get host(): string | undefined {
    return this.context.host ?? this.req.headers.host;
  }

  get paid(): boolean {
    return this.charged !== undefined;
  }

  get unconditional(): boolean {
    return this.charged?.settles === 'before_response';
  }

  get passPaymentHeaders(): boolean {
    return this.context.passPaymentHeaders && this.charged === undefined;
  }

  asksForPage(): boolean {
    return asksForPage(this.req);
  }

  left(): boolean {
    return this.req.socket.destroyed;
  }

  notePayer(payer: string): void {
    this.record.payer = payer;
  }

  noteAnswer({ outcome, reason, chargeId, routeId, response }: ResponseOutcome): void {
    const { req, record } = this;
    // Refused before it had a canonical path.
    if (record.path === '') record.path = shownTarget(req.url ?? '');
    record.outcome = outcome;
    record.reason = reason;
    record.chargeId = chargeId;
    record.routeId ??= routeId;
    record.status = response.status;
  }

  notePaid(paid: PaidOutcome): void {
    const { record } = this;
    this.charged = paid;
    record.chargeId = paid.charge.id;
    record.amount = paid.charge.price.amount;
    record.currency = paid.charge.price.currency;
  }
}

const SHOWN_TARGET = 256;

/**
 * A raw target for the log: up to its query, visible ASCII, without a user's name and password, 256 characters at most.
 */
function shownTarget(target: string): string {
  const [path = ''] = target.split('?', 1);
  const shown = path
    .slice(0, 4 * SHOWN_TARGET)
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*@/, '$1//')
    .replace(/[^\x21-\x7e]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  return shown.length <= SHOWN_TARGET ? shown : shown.slice(0, SHOWN_TARGET).replace(/%[0-9A-Fa-f]?$/, '');
}

// The caller: the customer id and the payment credential, read only if a request costs something. They are read from the raw
// headers: Node joins or drops repeated ones, and two credentials must never be taken for one. The customer id is a claim
// unless something in front of Tollgate vouches for it.

const CREDENTIAL_BYTES = 16 * 1024;
const CUSTOMER_ID = /^[\x21-\x7e]{1,128}$/;
const CREDENTIAL_HEADERS: ReadonlyMap<string, Credential['version']> = new Map([
  ['payment-signature', 2],
  ['x-payment', 1],
]);

/**
 * `customerHeader`: its lower-cased name. Problems: `payment_malformed` for two credentials or one over 16 KiB; its rail
 * reads what is in it. `customer_required` for a customer id that is repeated or not 1..128 visible ASCII characters.
 */
export function readCaller(rawHeaders: readonly string[], customerHeader: string): Caller | Problem {
  let customerId: string | undefined;
  let credential: Credential | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    // Only these lengths can be one of the three names.
    if (given.length !== 17 && given.length !== 9 && given.length !== customerHeader.length) continue;
    const name = given.toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    const version = CREDENTIAL_HEADERS.get(name);
    if (version !== undefined) {
      if (credential !== undefined)
        return problem('payment_malformed', 'The request carries more than one payment; send one.');
      if (value.length > CREDENTIAL_BYTES) return problem('payment_malformed', 'The payment is longer than 16 KiB.');
      credential = { version, value };
    } else if (name === customerHeader) {
      if (customerId !== undefined || !CUSTOMER_ID.test(value)) {
        return problem(
          'customer_required',
          'The customer id must be given once, as 1 to 128 visible ASCII characters.',
        );
      }
      customerId = value;
    }
  }
  return { customerId, credential };
}

// The peer of a connection, and what it may say about the request: X-Forwarded-* headers are believed from peers in
// `trusted_proxies` only, by default from none.

/** Whether a peer's address lies in one of `cidrs`. Asked per request: cheap if the list is empty. */
export function createTrust(cidrs: readonly string[]): (address: string | undefined) => boolean {
  if (cidrs.length === 0) return () => false;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', bits] = cidr.split('/');
    const family = isIPv6(network) ? 'ipv6' : 'ipv4';
    list.addSubnet(network, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return (address) => address !== undefined && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

const HOST = /^[A-Za-z0-9.\-_~[\]:]{1,255}$/;

/** Scheme and authority under which the client reached us: the configured one, a trusted peer's word, or our own view. */
function publicOrigin(req: IncomingMessage, configured: string | undefined, trusted: boolean): string {
  if (configured !== undefined) return configured;
  const proto = trusted ? last(req.headers['x-forwarded-proto']) : undefined;
  const forwarded = trusted ? last(req.headers['x-forwarded-host']) : undefined;
  const host = forwarded !== undefined && HOST.test(forwarded) ? forwarded : (req.headers.host ?? 'localhost');
  return `${proto === 'https' ? 'https' : 'http'}://${host}`;
}

/** The value that the nearest peer added: the last of a comma-separated list. */
function last(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value.at(-1) : value;
  return text?.slice(text.lastIndexOf(',') + 1).trim();
}

// The navigation of a browser, apart from every other request: only that one is shown the page for people. All others get the
// 402 that programs read.

/** Whether a request without a payment comes from somebody who looks at a browser's window. */
export function asksForPage({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  const { accept } = headers;
  if (method !== 'GET' || accept === undefined || !/html/i.test(accept) || !prefersHtml(accept)) return false;
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers;
  if (mode === 'navigate' && dest === 'document') return true;
  // Browsers say so only to origins that they trust, and older ones never.
  const says = Object.keys(headers).some((name) => name.startsWith('sec-fetch-'));
  return !says && (headers['user-agent']?.includes('Mozilla/') ?? false);
}

/** Whether `accept` names a kind of HTML that it does not like less than JSON (RFC 9110 section 12.5.1). */
function prefersHtml(accept: string): boolean {
  const ranges = new Map<string, number>();
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim());
    ranges.set(range, weightOf(parameters));
  }
  const html = Math.max(ranges.get('text/html') ?? 0, ranges.get('application/xhtml+xml') ?? 0);
  const json = ranges.get('application/json') ?? ranges.get('application/*') ?? ranges.get('*/*') ?? 0;
  return html > 0 && html >= json;
}

/** 0 for what is no weight: what cannot be read is not preferred. */
function weightOf(parameters: readonly string[]): number {
  const written = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  if (written === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(written) ? Number(written) : 0;
}
