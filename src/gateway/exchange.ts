// One request in flight, from its arrival to its one end. `phase` says where it stands. Below stand the events of the
// upstream, the payment and the client, and what each of them does in each phase. A response that broke off never looks
// whole to the client. The payment decides before any of it is sent. It is held only while a settlement is awaited.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ResponseWatcher } from '../host/client-connection.ts';
import { NO_TRACE, type Trace } from '../host/identifiers.ts';
import type { RefusalKind } from '../host/listener-refusals.ts';
import { respond, type OwnResponse } from '../host/respond.ts';
import type {
  CallFault,
  ReservedConnection,
  UploadFault,
  UpstreamCall,
  UpstreamFault,
  UpstreamListener,
} from '../http/transport.ts';
import { breakOff, ClientResponse, sendEarlyHints, sendOwn, type ClientResponseListener } from './client-response.ts';
import { noteAnswer, noteEnd, outcomeOf, startRecord, type RequestRecord } from './telemetry.ts';
import {
  hasBody,
  publicOrigin,
  responseHeaders,
  upstreamHeaders,
  type ResponseFacts,
  type UpstreamFacts,
} from './headers.ts';
import type { ReleasePlace } from './client-semaphores.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { asksForPage } from './negotiation.ts';
import type { ClientBody, HeldResponse, Phase } from './phase.ts';
import type { KeptResponse } from './pay/kept-responses.ts';
import type {
  ClientAbort,
  End,
  ResponseOutcome,
  ResponseCollector,
  PaidOutcome,
  GrantedOutcome,
  RequestFacts,
  SeenResponseHead,
  ResponseVerdict,
  GrantedVerdict,
} from './outcome.ts';
import type { Permit } from '../domain/decide.ts';
import { redirectDocument } from './redirect.ts';
import { problem, type Problem } from '../domain/problem.ts';
import { acceptsTunnel, openTunnel, TUNNEL_OFFER } from './tunnel.ts';

const DECIDING: Phase = { at: 'deciding' };
const WAITING: Phase = { at: 'waiting' };
const KEEPING: Phase = { at: 'keeping' };
const RESPONDED: Phase = { at: 'done', end: undefined };
const NO_TRAILERS: readonly string[] = [];
/** Faults of a request behind its head, for its client. */
const UNREADABLE = {
  request_malformed: 'The rest of the request is not well-formed HTTP/1.1',
  headers_too_large: 'The trailers of the request are larger than this server reads',
};
/** The verdict on a response that costs nothing. */
const FREE: ResponseVerdict = { kind: 'stream', headers: [] };

/** A class, because every request makes one. */
export class Exchange
  implements RequestFacts, UpstreamFacts, ResponseFacts, UpstreamListener, ClientResponseListener, ResponseWatcher
{
  readonly context: ExchangeContext;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  trace: Trace = NO_TRACE;
  /** The peer may speak for others. */
  trusted = false;
  /** Whether some route protects its path; true until it is known. */
  protectedPath = true;
  /** The time that its payment is judged by. */
  nowMs = 0;
  /** What a request is forwarded under that costs something. */
  charged: PaidOutcome | GrantedOutcome | undefined;
  /** Gives the client's place back, if it holds one. */
  release: ReleasePlace | undefined;
  phase: Phase = DECIDING;
  /** Bytes that arrived behind a WebSocket handshake. */
  private readonly tunnelHead: Buffer | undefined;
  private call: UpstreamCall | undefined;
  /** Connection that is kept for this request until it is sent, or ends without. */
  private reserved: ReservedConnection | undefined;
  /** Time at which it was sent, later by as long as its response was held. */
  private sentAt = 0;
  /** The status of the upstream's response, or of what replaced it. */
  private status: number | undefined;
  /** Why the rest of the request cannot be read. */
  private unreadable: keyof typeof UNREADABLE | undefined;
  private kept: KeptResponse | undefined;
  /** Collects a response that the client does not get; it may go on after the exchange has ended. */
  private aside: ResponseCollector | undefined;

  constructor(context: ExchangeContext, req: IncomingMessage, res: ServerResponse, tunnelHead?: Buffer) {
    this.context = context;
    this.req = req;
    this.res = res;
    this.record = startRecord(req, context.clock.monotonic());
    this.tunnelHead = tunnelHead;
    context.telemetry.begin();
  }

  // The facts of the request, as the paywall, the payment and the rules of headers read them.

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

  /** The response is for this client alone. A dry run leaves it as it would be without a plan. */
  get paid(): boolean {
    const { charged } = this;
    return charged !== undefined && (charged.kind === 'paid' || charged.access !== 'observed');
  }

  get unconditional(): boolean {
    return this.charged?.settles === 'before_response' || (this.needs === 'whole body' && !this.conditionalWrite);
  }

  get needs(): UpstreamFacts['needs'] {
    return this.charged?.hearer?.needs;
  }

  get passPaymentHeaders(): boolean {
    return this.context.passPaymentHeaders && this.charged === undefined;
  }

  asksForPage(): boolean {
    return asksForPage(this.req);
  }

  left(): boolean {
    return this.unreadable !== undefined || this.req.socket.destroyed;
  }

  notePayer(payer: string): void {
    this.record.payer = payer;
  }

  private noteCharged(charged: PaidOutcome | GrantedOutcome): void {
    const { record } = this;
    this.charged = charged;
    if (charged.kind === 'granted') {
      if (charged.customerId !== undefined) record.customerId = charged.customerId;
      if (charged.chargeId !== undefined) record.chargeId = charged.chargeId;
    }
    if (charged.grant === undefined) return;
    const { id, price } = charged.grant;
    record.chargeId = id;
    record.amount = price.amount;
    record.currency = price.currency;
  }

  // The decisions about it.

  /** A response of ours; `closes`: the connection ends with it. */
  respond(outcome: ResponseOutcome, closes?: boolean): void {
    const { req, res, record, context } = this;
    noteAnswer(record, outcome, req.url ?? '');
    if (this.phase.at === 'deciding') this.phase = RESPONDED;
    // A response that was kept is the upstream's, word for word.
    const isKept = outcome.outcome === 'paid' || outcome.outcome === 'pass';
    const shown = isKept ? this.asPlace(outcome.response) : undefined;
    const sent = shown === undefined ? outcome : { ...outcome, response: shown };
    sendOwn(req, res, sent, record.requestId, context.writeBatch, closes);
    this.close();
  }

  async connect(): Promise<UpstreamFault | undefined> {
    if (this.reserved !== undefined) return undefined;
    const reserved = await this.context.transport.reserve(this.tunnelHead !== undefined);
    if ('code' in reserved) return reserved;
    if (this.phase.at === 'deciding') this.reserved = reserved;
    else reserved.release();
    return undefined;
  }

  /** The client left before anything was charged. */
  giveUp(routeId: string): void {
    this.record.routeId = routeId;
    this.record.outcome = 'released';
    this.end({ kind: 'not_sent' });
  }

  forward(permit: Permit, charged?: PaidOutcome | GrantedOutcome): void {
    const { req, res, record, context, tunnelHead } = this;
    record.routeId = permit.route?.id;
    if (charged !== undefined) this.noteCharged(charged);
    this.keepIn(charged?.keep);
    // A client that left while its payment was taken is sent nothing, and nothing goes upstream for it.
    if (this.left()) return this.end({ kind: 'not_sent' });
    this.phase = WAITING;
    this.sentAt = context.clock.monotonic();
    const upgrade = tunnelHead !== undefined;
    // Connections tell of other responses.
    if (upgrade) {
      res.on('finish', () => this.onFinish());
      res.on('close', () => this.onClose());
    }
    // A client that expects a 100 gets it when the request goes upstream. So no refusal has a 100 in front of it.
    if (req.headers.expect !== undefined && req.httpVersionMinor === 1 && !upgrade) res.writeContinue();
    const headers = upstreamHeaders(req, permit, this);
    const assertion = context.assert?.(permit, this);
    if (assertion !== undefined) headers.push('Tollgate-Assertion', assertion);
    if (upgrade) headers.push(...TUNNEL_OFFER);
    const body = hasBody(req) ? req : undefined;
    const { reserved } = this;
    this.reserved = undefined;
    const request = { method: record.method, target: record.target, headers, body, upgrade };
    this.call = context.transport.send(request, this, reserved);
  }

  // What the upstream says.

  onInformation(status: number, raw: readonly string[]): void {
    const { req, res, phase, charged, tunnelHead } = this;
    if (status !== 103 || phase.at !== 'waiting' || charged !== undefined || tunnelHead !== undefined) return;
    if (req.httpVersionMinor === 1) sendEarlyHints(res, raw);
  }

  onHead(status: number, raw: string[], followed: boolean): void {
    this.status = status;
    if (this.charged === undefined) this.begin(FREE, raw, followed);
    else this.judge(this.charged, status, raw, (verdict, atOnce) => this.begin(verdict, raw, followed && atOnce));
  }

  onUpgrade(raw: string[], upstream: Socket, head: Buffer): void {
    this.status = 101;
    // The upstream may die while its 101 is held; nothing may be thrown then.
    upstream.on('error', () => upstream.destroy());
    if (!acceptsTunnel(raw)) {
      upstream.destroy();
      this.onFailure(unreachable('a 101 for a protocol that was not asked for'));
    } else if (this.charged === undefined) this.switch(FREE, raw, upstream, head);
    else this.judge(this.charged, 101, raw, (verdict) => this.switch(verdict, raw, upstream, head));
  }

  onData(chunk: Buffer): void {
    const { phase, kept, aside, charged } = this;
    charged?.hearer?.data(chunk);
    if (phase.at === 'streaming') {
      kept?.add(chunk);
      if (!phase.response.write(chunk)) this.call?.pause();
    } else if (phase.at === 'keeping') {
      kept?.add(chunk);
      if (!this.isKept) this.leave();
    } else if (aside !== undefined) {
      aside.response.add(chunk);
      if (!aside.response.isKept) this.endAside(false);
    }
  }

  onEnd(trailers: readonly string[] = NO_TRAILERS): void {
    const { phase } = this;
    if (phase.at !== 'held') this.charged?.hearer?.end(trailers);
    if (phase.at === 'streaming') {
      this.phase = this.ending('delivered');
      phase.response.end();
    } else if (phase.at === 'held') phase.ended = true;
    else if (phase.at === 'keeping') this.leave({ whole: true });
    else this.endAside(true);
  }

  onFailure(failure: CallFault): void {
    const { phase } = this;
    if (phase.at === 'held') phase.failure = failure;
    else if (phase.at === 'waiting' || phase.at === 'streaming') {
      const begun = phase.at === 'streaming';
      if (begun) breakOff(this.req, this.res);
      if (!isOfUpload(failure)) this.fail(failure, begun);
      // The upstream is not to blame, and has nothing to say any more.
      else this.leave({ upload: failure.code === 'upload_stalled' ? 'stalled' : 'broken_off' });
    } else if (phase.at === 'keeping') this.leave(isOfUpload(failure) ? { upload: 'broken_off' } : { failed: true });
    else this.endAside(false);
  }

  // What the payment says of a response: before that nothing of it reaches the client.

  private judge(
    charged: PaidOutcome | GrantedOutcome,
    status: number,
    headers: readonly string[],
    proceed: (verdict: GrantedVerdict, atOnce: boolean) => void,
  ): void {
    const verdict = ask(charged, { status, headers });
    if (!(verdict instanceof Promise)) return proceed(verdict, true);
    const { clock, log } = this.context;
    const held: HeldResponse = { at: 'held', since: clock.monotonic(), ended: false, failure: undefined };
    this.phase = held;
    this.call?.pause();
    verdict
      .then((taken) => {
        this.letGo(held);
        if (taken.kind === 'again') return proceed(taken, false);
        if (taken.kind === 'stream' && held.failure !== undefined) return this.onFailure(held.failure);
        this.call?.resume();
        proceed(taken, false);
        if (held.failure !== undefined) this.onFailure(held.failure);
        else if (held.ended) this.onEnd();
      })
      .catch((error: unknown) => {
        log.error('the decision about a response failed', { error });
        if (this.phase === held) this.letGo(held);
        this.call?.abort();
        this.onFailure(unreachable('the decision about the response failed'));
      });
  }

  private letGo(held: HeldResponse): void {
    this.sentAt += this.context.clock.monotonic() - held.since;
    this.phase = this.res.destroyed ? KEEPING : WAITING;
  }

  /** Begins the response. `followed`: more of it comes right behind this. */
  private begin(verdict: GrantedVerdict, raw: string[], followed: boolean): void {
    const { req, res, context, status = 0 } = this;
    if (verdict.kind === 'again') {
      this.call?.abort();
      this.status = undefined;
      return this.forward(verdict.permit, verdict.granted);
    }
    const headers = responseHeaders(this, status, raw);
    if (verdict.kind === 'replace') {
      verdict.keep?.response.begin(status, headers);
      return this.replace(verdict.response, verdict.keep);
    }
    for (const part of verdict.headers) headers.push(part);
    this.keepIn(verdict.keep);
    this.kept?.begin(status, headers);
    if (this.phase.at === 'keeping') {
      if (!this.isKept) this.leave();
      return;
    }
    const place = this.paid ? this.asPlace({ status, headers }) : undefined;
    if (place !== undefined) {
      this.phase = { at: 'streaming', response: instead(place, req, res) };
      return;
    }
    const response = new ClientResponse(req, res, context.writeBatch, this, status, headers);
    this.phase = { at: 'streaming', response };
    // A body that is there leaves in one write with its head; one that is slow must not hold the head back.
    if (!followed) process.nextTick(flushHead, response);
  }

  /** Makes what the page for people gets in place of a redirect. */
  private asPlace({ status, headers }: Pick<OwnResponse, 'status' | 'headers'>): OwnResponse | undefined {
    if (this.req.headers['tollgate-page'] !== '1') return undefined;
    return redirectDocument(status, headers, this.publicOrigin + this.target);
  }

  /** Switches protocols after a 101. */
  private switch(verdict: GrantedVerdict, raw: string[], upstream: Socket, head: Buffer): void {
    const { req, phase, tunnelHead, context } = this;
    const gone = phase.at === 'keeping';
    if (verdict.kind !== 'stream' || gone || tunnelHead === undefined) upstream.destroy();
    if (verdict.kind === 'replace') return this.replace(verdict.response);
    if (verdict.kind === 'again') return this.onFailure(unreachable('a 101 to a request that was to be sent again'));
    if (gone) return this.leave();
    if (upstream.destroyed || tunnelHead === undefined)
      return this.onFailure(unreachable('the upstream died after its 101'));
    // The sockets themselves tell from here on.
    this.phase = { at: 'tunnel' };
    const headers = [...responseHeaders(this, 101, raw), ...verdict.headers];
    const client = { socket: req.socket, head: tunnelHead };
    openTunnel(client, { socket: upstream, head }, headers, context.idleMs, (delivered) => {
      if (delivered) this.end({ kind: 'delivered', status: 101, upstreamMs: this.upstreamMs(), kept: undefined });
      else this.leave();
    });
  }

  /** Ours goes to the client. `aside`: where the upstream's is read into all the same. */
  private replace(response: ResponseOutcome['response'], aside?: ResponseCollector): void {
    const gone = this.phase.at === 'keeping';
    this.phase = this.ending('replaced');
    this.status = response.status;
    this.aside = aside;
    if (aside === undefined) this.call?.abort();
    if (gone) this.leave();
    else respond(this.res, response, this.req.method === 'HEAD', ['X-Request-Id', this.requestId]);
  }

  private endAside(whole: boolean): void {
    const { aside } = this;
    if (aside === undefined) return;
    this.aside = undefined;
    this.call?.abort();
    aside.ended(whole);
  }

  // The events of the client.

  onDrain(): void {
    this.call?.resume();
  }

  /** Who pays is told where the money is, when that is known. Other requests are not taken any further. */
  onUnreadable(refusal: RefusalKind): boolean {
    const { phase, charged } = this;
    if (phase.at !== 'deciding' && charged?.kind !== 'paid') return false;
    this.unreadable = refusal === 'headersTooLarge' ? 'headers_too_large' : 'request_malformed';
    this.onFailure({ code: 'upload_broken_off', detail: 'the rest of the request cannot be read' });
    return true;
  }

  onUnwritable(detail: string): void {
    this.call?.abort();
    this.fail(unreachable(detail), false);
  }

  onFinish(): void {
    // Older Nodes report a finish for a socket that was destroyed with bytes still in it.
    if (this.phase.at === 'ending') this.phase.handedOver = !this.req.socket.destroyed;
  }

  onClose(): void {
    const { phase, status = 0 } = this;
    if (phase.at === 'waiting' || phase.at === 'streaming') {
      if (!this.isKept) return this.leave();
      this.phase = KEEPING;
      this.call?.resume();
    } else if (phase.at === 'ending') {
      const { as, upstreamMs, handedOver } = phase;
      if (!handedOver) this.leave({ whole: as === 'delivered' });
      else if (as === 'replaced') this.end({ kind: as, status, upstreamMs });
      else this.end({ kind: as, status, upstreamMs, kept: this.takeKept() });
    }
  }

  // How it ends.

  private ending(as: 'delivered' | 'replaced'): Phase {
    return { at: 'ending', as, upstreamMs: this.upstreamMs(), handedOver: false };
  }

  private upstreamMs(): number {
    return this.context.clock.monotonic() - this.sentAt;
  }

  private fail({ code, detail }: UpstreamFault, headersSent: boolean): void {
    this.end({ kind: 'failed', headersSent, status: this.status, code, detail, asked: this.asked });
  }

  private get asked(): boolean {
    return this.call?.sent === true;
  }

  /** The client left, and the upstream's response is not needed any more. */
  private leave({ whole = false, failed = false, upload = this.uploaded() }: Partial<ClientDeparture> = {}): void {
    const { phase, res, status } = this;
    const handedOver = phase.at === 'tunnel' || (phase.at === 'ending' && phase.as === 'delivered');
    const headSent = handedOver || res.headersSent;
    const { asked } = this;
    if (this.aside === undefined) this.call?.abort();
    const kept = whole ? this.takeKept() : undefined;
    this.end({ kind: 'client_gone', status, headSent, failed, upload, asked, kept });
  }

  private uploaded(): ClientAbort['upload'] {
    const { req } = this;
    return !req.complete && req.destroyed && hasBody(req) ? 'broken_off' : 'whole';
  }

  private keepIn(kept: KeptResponse | undefined): void {
    // A response to HEAD is nothing that could be kept.
    if (kept !== undefined && this.req.method !== 'HEAD') this.kept = kept;
  }

  private get isKept(): boolean {
    return this.kept?.isKept === true;
  }

  /** Whole, and not ours any more. */
  private takeKept(): KeptResponse | undefined {
    const { kept } = this;
    if (!this.isKept || this.status === undefined) return undefined;
    this.kept = undefined;
    return kept;
  }

  private end(end: End): void {
    if (this.phase.at === 'done') return;
    this.phase = { at: 'done', end };
    const { req, record, charged, context } = this;
    this.kept?.drop();
    // Drops the rest of an upload that is not read any more; the listener bounds how long that may take.
    if (!req.complete) req.resume();
    try {
      charged?.done(end);
      const untold = noteEnd(record, end, charged && outcomeOf(end, charged)) ?? this.unread();
      if (end.kind === 'failed')
        context.log.warn('upstream failed', { request_id: record.requestId, code: end.code, detail: end.detail });
      const closes = end.kind === 'client_gone' ? true : undefined;
      if (untold === undefined) this.close();
      else if (charged?.kind !== 'paid') this.respond(context.refuse(untold, this.origin), closes);
      else this.respondPaid(charged, untold, closes);
    } catch (error) {
      context.log.error('the end of a request failed', { error });
      req.socket.destroy();
    }
  }

  /** What a client is told whose request could not be read to its end. */
  private unread(): Problem | undefined {
    const { unreadable, charged, res } = this;
    if (unreadable === undefined || res.headersSent || res.destroyed) return undefined;
    const detail = UNREADABLE[unreadable];
    // It was given up while its payment was taken: nothing was sent for that.
    if (charged === undefined)
      return problem(unreadable, `${detail}; nothing was charged.`, { members: { charged: false } });
    return problem(unreadable, `${detail}.`);
  }

  /** A problem under a charge says where the money is. */
  private respondPaid(charged: PaidOutcome, untold: Problem, closes: true | undefined): void {
    const { req, context } = this;
    charged
      .tell(untold)
      .then((told) => this.respond(context.refuse(told, this.origin), closes))
      .catch((error: unknown) => {
        context.log.error('the end of a request failed', { error });
        req.socket.destroy();
      });
  }

  /** Ends the exchange, which is counted and logged once. */
  private close(): void {
    const { context, release, reserved } = this;
    this.release = undefined;
    release?.();
    this.reserved = undefined;
    reserved?.release();
    context.telemetry.end(this.record, context.clock.monotonic());
  }
}

type ClientDeparture = Pick<ClientAbort, 'failed' | 'upload'> & { readonly whole: boolean };

/** Replaces the upstream's response: `response` goes out when that one, which the client does not get, has ended. */
function instead(response: OwnResponse, { method }: IncomingMessage, res: ServerResponse): ClientBody {
  return { write: () => true, end: () => respond(res, response, method === 'HEAD') };
}

function flushHead(response: ClientResponse): void {
  response.flushHead();
}

/** A defect is no verdict: it is told as one of a settlement is. */
function ask(charged: PaidOutcome | GrantedOutcome, head: SeenResponseHead): GrantedVerdict | Promise<GrantedVerdict> {
  try {
    return charged.beforeResponse(head);
  } catch (error) {
    return Promise.reject(error);
  }
}

function isOfUpload(failure: CallFault): failure is UploadFault {
  return failure.code === 'upload_broken_off' || failure.code === 'upload_stalled';
}

function unreachable(detail: string): UpstreamFault {
  return { code: 'upstream_unreachable', detail };
}
