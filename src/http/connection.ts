// Holds one connection to the upstream, and on it one call at a time: sends the request, reads the response, tells the
// call's listener. It serves another call only if its request was sent whole, its response was read whole and not a
// byte came after it. Anything else that happens on the socket ends the connection, so that no caller gets another's
// bytes.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { type ResponseHead, ResponseReader, SPEAKS_TLS, type ResponseEvent, Inbox } from './response-reader.ts';
import type {
  CallFault,
  PoolOptions,
  BatchedWrites,
  ReservedConnection,
  UpstreamListener,
  UpstreamRequest,
} from './transport.ts';
import type { Upload } from './request-writer.ts';

/** Waiter for a connection: a call, or a reservation. */
export type ConnectionWaiter = {
  /** Whether the call takes the socket over: only a new connection will do. */
  readonly upgrade: boolean;
  /** Time by which all has to be over, and until which it waits for a connection, in milliseconds of the pool's clock. */
  readonly endsAt: number;
  deadline: number;
  /** Whether the waiter waits no more. */
  readonly isOver: boolean;
  /** Says that `connection` is being made for this waiter. */
  moveTo(connection: Connection): void;
  /** Says that `connection` is there. */
  onConnection(connection: Connection): void;
  fail(fault: CallFault): void;
};

/** Call as its connection sees it. */
export type CarriedCall = ConnectionWaiter & {
  readonly request: UpstreamRequest;
  readonly listener: UpstreamListener;
  readonly upload: Upload | undefined;
  readonly paused: boolean;
  /** Progress of sending; `queued`: nothing left yet. */
  readonly sending: 'queued' | 'body' | 'sent';
  sendOn(socket: Socket, writeBatch: BatchedWrites): void;
  /** True once, if it may be sent a second time. */
  takeRetry(): boolean;
  /** Ends the call: its listener hears nothing more. */
  end(): void;
};

/** Pool as its connections see it. */
export type ConnectionPool = {
  readonly options: PoolOptions;
  /** Clock that only ever grows, in milliseconds. */
  readonly now: () => number;
  /** Says that `connection` may serve another call. */
  onIdle(connection: Connection): void;
  /** Says that the socket of `connection` is closed. */
  onClosed(connection: Connection): void;
  /** Hears that `call` ended without a byte of a response on a connection that was kept for it, or had served others. */
  onStale(call: CarriedCall, fault: CallFault): void;
};

type BusyState = { readonly at: 'busy'; readonly call: CarriedCall; readonly reading: ResponseReader };
type State =
  | { readonly at: 'connecting'; readonly call: ConnectionWaiter }
  | { readonly at: 'idle' }
  /** The connection is kept for a request that is not sent yet. */
  | { readonly at: 'reserved' }
  | BusyState
  | { readonly at: 'closed' };

const IDLE: State = { at: 'idle' };
const CLOSED: State = { at: 'closed' };

/** Time after which an idle connection is closed: with two sweeps below the 5 s after which Node and uvicorn close an idle connection: what we close is never found dead. */
export const POOL_IDLE_MS = 3500;
const UPLOAD_MS = 30_000;
/** Number of bytes of a held response that are read on, so that an upstream that dies meanwhile is noticed. */
const HELD_BYTES = 64 * 1024;

export class Connection implements ReservedConnection {
  private readonly pool: ConnectionPool;
  private readonly inbox = new Inbox();
  private readonly socket: Socket;
  /** Whether the connection is for one call, which takes the socket over. */
  private readonly isUpgrade: boolean;
  private state: State;
  private calls = 0;
  /** Says that the connection was there before the call that it carries was sent. */
  private wasKept = false;
  /** Says that more may have come than was read. */
  private mayBeMore = false;
  /** Time since which nothing happens, as the sweep saw it. */
  private quietSince: number | undefined;

  /** Connects for `first`. */
  constructor(pool: ConnectionPool, first: ConnectionWaiter) {
    this.pool = pool;
    this.state = { at: 'connecting', call: first };
    this.isUpgrade = first.upgrade;
    this.socket = this.open(first.upgrade);
    first.moveTo(this);
  }

  private open(upgrade: boolean): Socket {
    const { upstream, socketPath } = this.pool.options;
    const secure = upstream.protocol === 'https:';
    const host = upstream.hostname.replace(/^\[|\]$/g, '');
    const port = Number(upstream.port) || (secure ? 443 : 80);
    const place = socketPath === undefined ? { host, port } : { path: socketPath };
    // A tunnel takes its socket over as a stream.
    const onread = { buffer: () => this.inbox.next(), callback: this.onRead };
    const options = upgrade ? place : { ...place, onread };
    // The host comes from the configuration, never from a request.
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = secure ? connectSecure({ ...options, ...name, ALPNProtocols: ['http/1.1'] }) : connect(options);
    socket.setNoDelay(true);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      if (this.state.at !== 'connecting') return;
      if (this.state.call.isOver) this.destroy();
      else this.state.call.onConnection(this);
    });
    if (upgrade) socket.on('data', this.onStream);
    socket.on('drain', this.onDrain);
    socket.on('end', this.onFin);
    socket.on('error', ignore);
    socket.on('close', this.onClose);
    return socket;
  }

  get isUsable(): boolean {
    const { socket } = this;
    return !socket.readableEnded && !socket.destroyed && socket.writable;
  }

  /** Whether nothing was sent on the connection yet. */
  get isNew(): boolean {
    return this.calls === 0 && !this.wasKept;
  }

  /** Usable, and not idle for so long that the upstream may be closing it: a new one is not idle for an upstream. */
  get isFresh(): boolean {
    return this.isUsable && (this.calls === 0 || !this.isQuiet);
  }

  private get isQuiet(): boolean {
    return this.quietSince !== undefined && this.pool.now() - this.quietSince >= POOL_IDLE_MS;
  }

  /** Keeps it for one request, from `onConnection` or idleness on. */
  reserve(): void {
    this.state = { at: 'reserved' };
    this.wasKept = true;
  }

  /** Ends a reservation whose request is not sent. */
  release(): void {
    if (this.state.at !== 'reserved') return;
    if (this.isUpgrade || this.isQuiet || !this.isUsable) return this.destroy();
    this.state = { at: 'idle' };
    this.pool.onIdle(this);
  }

  /** Sends `call`; only from `onIdle` on, or when it was reserved. */
  start(call: CarriedCall): void {
    this.wasKept ||= this.calls > 0;
    this.state = { at: 'busy', call, reading: new ResponseReader(call.request.method === 'HEAD') };
    this.calls++;
    this.moved();
    call.moveTo(this);
    call.sendOn(this.socket, this.pool.options.writeBatch);
  }

  private readonly onDrain = (): void => {
    if (this.state.at === 'busy') this.state.call.upload?.onDrain();
    this.moved();
  };

  moved(): void {
    this.quietSince = undefined;
  }

  /** Ends what has taken too long by `now`. What moved counts from the first sweep after it. */
  sweep(now: number): void {
    const { state } = this;
    this.quietSince ??= now;
    if (state.at === 'closed' || state.at === 'reserved') return;
    if (state.at === 'idle') {
      if (now - this.quietSince >= POOL_IDLE_MS) this.destroy();
      return;
    }
    const { call } = state;
    if (now >= call.endsAt) this.fail(timeout('the whole took too long'));
    else if (state.at === 'busy') this.sweepBusy(state, now, now - this.quietSince);
    else if (now >= call.deadline) this.fail(timeout('no connection to the upstream in time'));
  }

  private sweepBusy({ call, reading }: BusyState, now: number, quietMs: number): void {
    const { headersMs, idleMs, uploadMs = UPLOAD_MS } = this.pool.options.timeouts;
    const upload = call.sending === 'sent' ? undefined : call.upload;
    if (reading.phase !== 'head') {
      // A paused call waits for its caller.
      if (call.paused) this.moved();
      else if (quietMs >= idleMs) this.fail(timeout('the response stopped in the middle'));
    } else if (upload !== undefined && upload.quietMs(now) >= uploadMs) {
      // A client may have nothing more to say after the head of the response.
      this.fail({ code: 'upload_stalled', detail: 'nothing came of the body in time' });
    } else if (quietMs >= (call.sending === 'body' ? idleMs : headersMs)) {
      // The client stopped, if the upstream took everything that came.
      if (upload !== undefined && this.socket.writableLength === 0) this.moved();
      else this.fail(timeout('no response in time'));
    }
  }

  private readonly onRead = (size: number): boolean => {
    const bytes = this.inbox.read(size);
    this.mayBeMore = this.inbox.isFull;
    this.take(bytes);
    if (!this.isFull()) return true;
    this.mayBeMore = true;
    return false;
  };

  private readonly onStream = (bytes: Buffer): void => {
    this.take(bytes);
    if (this.isFull()) this.socket.pause();
  };

  private isFull(): boolean {
    const { state } = this;
    if (state.at !== 'busy' || !state.call.paused) return false;
    return state.reading.progress === 'body' || state.reading.unread.length >= HELD_BYTES;
  }

  private take(bytes: Buffer): void {
    const { state } = this;
    // The upstream sent bytes that were not asked for.
    if (state.at !== 'busy') return this.destroy();
    if (state.call.sending === 'queued') return this.fail(unreachable('bytes came before the request was sent'));
    state.reading.push(bytes);
    if (state.reading.phase !== 'head') this.moved();
    this.read(state);
  }

  private read(state: BusyState): void {
    const { call, reading } = state;
    while (this.state === state) {
      // A response without a body ends all the same.
      if (call.paused && reading.phase !== 'head' && reading.phase !== 'none') return;
      const event = reading.next();
      if (event === undefined) return;
      this.tell(state, event);
    }
  }

  private tell(state: BusyState, event: ResponseEvent): void {
    const { listener } = state.call;
    switch (event.kind) {
      case 'information':
        return this.onInformation(state, event.head);
      case 'head':
        this.moved();
        return listener.onHead(event.head.status, event.head.headers, state.reading.goesOn);
      case 'data':
        return listener.onData(event.chunk);
      case 'end':
        return this.onEnd(state);
      case 'broken':
        return this.fail(unreachable(event.detail));
      default:
        return event satisfies never;
    }
  }

  private onInformation({ call, reading }: BusyState, { status, headers }: ResponseHead): void {
    if (status === 101 && !call.request.upgrade)
      return this.fail(unreachable('the upstream switched protocols unasked'));
    if (status === 101) {
      // The socket is the listener's from here on; it counts until it closes.
      this.state = CLOSED;
      this.socket.pause();
      this.socket.removeListener('data', this.onStream);
      call.end();
      call.listener.onUpgrade(headers, this.socket, reading.unread);
    } else if (status !== 100) {
      call.listener.onInformation(status, headers);
    }
  }

  private onEnd({ call, reading }: BusyState): void {
    call.end();
    this.inbox.rest();
    const isWhole = call.sending === 'sent' && reading.unread.length === 0;
    if (isWhole && reading.keepAlive && this.isUsable && !call.request.upgrade) {
      this.state = IDLE;
      this.moved();
      if (this.mayBeMore) {
        this.socket.resume();
        // Bytes that came behind the response show only in the next polls.
        setImmediate(setImmediate, () => {
          if (this.state.at === 'idle' && this.isUsable) this.pool.onIdle(this);
        });
      } else {
        this.pool.onIdle(this);
      }
    } else {
      this.destroy();
    }
    call.listener.onEnd(reading.trailers);
  }

  /** Goes on with a call that was paused and is not any more. */
  resume(): void {
    this.moved();
    process.nextTick(() => this.readOn());
  }

  private readOn(): void {
    const { state, socket } = this;
    if (state.at !== 'busy' || state.call.paused) return;
    this.read(state);
    if (this.state !== state) return;
    if (socket.readableEnded || socket.destroyed) this.conclude(state);
    else if (!this.isFull()) socket.resume();
  }

  private readonly onFin = (): void => {
    if (this.state.at === 'busy') this.conclude(this.state);
    else if (this.state.at === 'idle' || this.state.at === 'reserved') this.destroy();
  };

  private readonly onClose = (): void => {
    const { state } = this;
    if (state.at === 'busy') this.conclude(state);
    else if (state.at === 'connecting') this.fail(unreachable(this.describe('the connection closed')));
    this.pool.onClosed(this);
  };

  /** Ends the response when no more comes; what was read before still counts. */
  private conclude(state: BusyState): void {
    const { socket } = this;
    const { reading } = state;
    const orderly = socket.readableEnded && socket.errored === null;
    if (orderly && reading.unread.length > 0 && reading.mayEndHere) return;
    if (orderly && reading.phase === 'close') return this.onEnd(state);
    this.fail(unreachable(this.describe(reading.phase === 'head' ? 'no response came' : 'the response broke off')));
  }

  /** Describes for the log what happened, and the likely mistake. */
  private describe(otherwise: string): string {
    const { state, socket } = this;
    const error: NodeJS.ErrnoException | null = socket.errored;
    if (error !== null) {
      const hint = error.code === 'ERR_SSL_WRONG_VERSION_NUMBER' ? '; does the upstream speak http, not https?' : '';
      return `${error.code ?? 'error'}: ${error.message.trim()}${hint}`;
    }
    const isFirst = state.at === 'busy' && this.calls === 1 && state.reading.progress === 'nothing';
    return isFirst && !('encrypted' in socket) ? `${otherwise}; ${SPEAKS_TLS}` : otherwise;
  }

  private fail(fault: CallFault): void {
    const { state, pool } = this;
    if (state.at !== 'busy' && state.at !== 'connecting') return;
    this.destroy();
    const stale = state.at === 'busy' && this.wasKept && state.reading.progress === 'nothing';
    if (stale && fault.code === 'upstream_unreachable') pool.onStale(state.call, fault);
    else state.call.fail(fault);
  }

  /** Ends the connection without a word to its call. */
  destroy(): void {
    if (this.state.at === 'busy') this.state.call.upload?.stop();
    this.state = CLOSED;
    this.socket.destroy();
  }

  /** Ends the connection; its call fails. */
  close(detail: string): void {
    this.fail(unreachable(detail));
    this.destroy();
  }
}

export function unreachable(detail: string): CallFault {
  return { code: 'upstream_unreachable', detail };
}

export function timeout(detail: string): CallFault {
  return { code: 'upstream_timeout', detail };
}

function ignore(): void {
  // The event `close` follows.
}
