// One connection to the upstream, and on it one call at a time: writes the request, reads the response, tells the call's
// listener. It serves another call only if its request was sent whole, its response was read whole and not a byte came
// after it. Anything else that happens on the socket ends the connection, so that no caller gets another's bytes.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import type { PoolCall } from './call.ts';
import type { ReadMemory } from './memory.ts';
import type { ResponseHead } from './response-head.ts';
import { ResponseReader, type ResponseEvent } from './response-reader.ts';
import type { CallFault, Outbox, UpstreamTimeouts } from './transport.ts';

/** What the connections of a pool share. */
export type ConnectionContext = {
  /** For `servername`: from configuration, never from a request. */
  readonly host: string;
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly secure: boolean;
  readonly timeouts: UpstreamTimeouts;
  readonly outbox: Outbox;
  now(): number;
  readonly memory: ReadMemory;
  /** It may serve another call. */
  onIdle(connection: Connection): void;
  /** Its socket is closed. */
  onClosed(connection: Connection): void;
  /** `call` ended without a byte of a response on a connection that had served others. */
  onStale(call: PoolCall, fault: CallFault): void;
};

type Busy = {
  readonly at: 'busy';
  readonly call: PoolCall;
  /** `queued`: nothing of the request left yet. */
  sending: 'queued' | 'body' | 'sent';
  readonly reading: ResponseReader;
  /** The last read filled its buffer, or stopped: more may have come than was read. */
  mayBeMore: boolean;
};
type State =
  | { readonly at: 'connecting'; readonly call: PoolCall }
  | { readonly at: 'idle'; readonly since: number }
  | Busy
  | { readonly at: 'closed' };

/** Below the 5 s after which Node and uvicorn close an idle connection: one that we close first is never found dead. */
export const POOL_IDLE_MS = 4000;
const UPLOAD_MS = 30_000;
/** From this size on a read of a long body is handed over with its buffer. */
const HANDED_OVER_BYTES = 16 * 1024;
/** Of a response that is held so much is read on, so that an upstream that dies meanwhile is noticed. */
const HELD_BYTES = 64 * 1024;

export class Connection {
  private readonly context: ConnectionContext;
  private readonly socket: Socket;
  private state: State;
  private calls = 0;
  private deadline: number;
  /** Of a long body: where the next read goes. */
  private memory: Buffer | undefined;

  /** Connects, and sends `first`. */
  constructor(context: ConnectionContext, first: PoolCall) {
    this.context = context;
    this.state = { at: 'connecting', call: first };
    this.deadline = first.deadline;
    this.socket = this.open(first.request.upgrade);
    first.startOn(this);
  }

  private open(upgrade: boolean): Socket {
    const { context } = this;
    const { host, place, secure } = context;
    // A tunnel takes its socket over as a stream.
    const onread = { buffer: () => this.memory ?? context.memory.shared, callback: this.onRead };
    const options = upgrade ? place : { ...place, onread };
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = secure ? connectSecure({ ...options, ...name, ALPNProtocols: ['http/1.1'] }) : connect(options);
    socket.setNoDelay(true);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      if (this.state.at === 'connecting') this.start(this.state.call);
    });
    if (upgrade) socket.on('data', this.onStream);
    socket.on('drain', this.onDrain);
    socket.on('end', this.onFin);
    socket.on('error', ignore);
    socket.on('close', this.onClose);
    return socket;
  }

  /** Sends `call`; only from `onIdle` on. */
  start(call: PoolCall): void {
    const { outbox } = this.context;
    const reading = new ResponseReader(call.request.method === 'HEAD');
    const state: Busy = { at: 'busy', call, sending: 'queued', reading, mayBeMore: false };
    this.state = state;
    this.calls++;
    call.startOn(this);
    this.wait();
    const { upload } = call;
    if (upload === undefined)
      return outbox.write(this.socket, call.head, 'latin1', () => this.onSending(state, 'sent'));
    upload.sendOn(this.socket, outbox, {
      onLeaving: () => this.onSending(state, 'body'),
      onSent: () => this.onSending(state, 'sent'),
      onBroken: (fault) => this.fail(fault),
    });
  }

  private onSending(state: Busy, sending: 'body' | 'sent'): void {
    state.sending = sending;
    state.call.sent = true;
    this.wait();
  }

  private readonly onDrain = (): void => {
    if (this.state.at !== 'busy') return;
    this.state.call.upload?.onDrain();
    this.wait();
  };

  /** Sets the time for the next thing that has to happen. */
  wait(): void {
    const { state, context } = this;
    if (state.at !== 'busy') return;
    const { headersMs, idleMs } = context.timeouts;
    const waitsForHead = state.reading.phase === 'head';
    if (state.call.paused && !waitsForHead) this.deadline = Infinity;
    else this.deadline = context.now() + (waitsForHead && state.sending !== 'body' ? headersMs : idleMs);
  }

  /** Ends what has taken too long by `now`. */
  sweep(now: number): void {
    const { state, context } = this;
    if (state.at === 'idle' && now >= state.since + POOL_IDLE_MS) return this.destroy();
    if (state.at === 'idle' || state.at === 'closed') return;
    const { call } = state;
    if (now >= call.endsAt) return this.fail(timeout('the whole took too long'));
    if (state.at === 'connecting') {
      if (now >= this.deadline) this.fail(timeout('no connection to the upstream in time'));
      return;
    }
    const waitsForHead = state.reading.phase === 'head';
    const uploading = state.sending !== 'sent' ? call.upload : undefined;
    // A client that heard the upstream already may have nothing more to say.
    if (waitsForHead && uploading !== undefined && uploading.quietMs(now) >= (context.timeouts.uploadMs ?? UPLOAD_MS))
      return this.fail({ code: 'upload_stalled', detail: 'nothing came of the body in time' });
    if (now < this.deadline) return;
    if (!waitsForHead) return this.fail(timeout('the response stopped in the middle'));
    // The upstream took everything that came: it is the client who stopped.
    if (uploading !== undefined && this.socket.writableLength === 0) this.wait();
    else this.fail(timeout('no response in time'));
  }

  private readonly onRead = (size: number, buffer: Uint8Array): boolean => {
    const { memory } = this;
    const owned = memory !== undefined && size >= HANDED_OVER_BYTES;
    if (this.state.at === 'busy') this.state.mayBeMore = size === buffer.length;
    this.take(owned ? this.context.memory.handOver(memory, size) : Buffer.copyBytesFrom(buffer, 0, size));
    const { state } = this;
    const long =
      state.at === 'busy' && state.reading.phase !== 'head' && (memory !== undefined || size === buffer.length);
    if (!long && memory !== undefined && !owned) this.context.memory.put(memory);
    if (!long) this.memory = undefined;
    else if (owned || memory === undefined) this.memory = this.context.memory.take();
    if (!this.isFull()) return true;
    if (state.at === 'busy') state.mayBeMore = true;
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
    // Bytes that were not asked for.
    if (state.at !== 'busy') return this.destroy();
    if (state.sending === 'queued') return this.fail(unreachable('bytes came before the request was sent'));
    state.reading.push(bytes);
    if (state.reading.phase !== 'head') this.wait();
    this.read(state);
  }

  private read(state: Busy): void {
    const { call, reading } = state;
    while (this.state === state) {
      // A response without a body ends all the same.
      if (call.paused && reading.phase !== 'head' && reading.phase !== 'none') return;
      const event = reading.next();
      if (event === undefined) return;
      this.tell(state, event);
    }
  }

  private tell(state: Busy, event: ResponseEvent): void {
    const { listener } = state.call;
    switch (event.kind) {
      case 'information':
        return this.onInformation(state, event.head);
      case 'head':
        this.wait();
        return listener.onHead(event.head.status, event.head.headers);
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

  private onInformation({ call, reading }: Busy, { status, headers }: ResponseHead): void {
    if (status === 101 && !call.request.upgrade)
      return this.fail(unreachable('the upstream switched protocols unasked'));
    if (status === 101) {
      this.letGo();
      call.end();
      call.listener.onUpgrade(headers, this.socket, reading.unread);
    } else if (status !== 100) {
      call.listener.onInformation(status, headers);
    }
  }

  private onEnd({ call, sending, reading, mayBeMore }: Busy): void {
    call.end();
    const isWhole = sending === 'sent' && reading.unread.length === 0;
    if (isWhole && reading.keepAlive && this.isUsable && !call.request.upgrade) {
      const idle: State = { at: 'idle', since: this.context.now() };
      this.state = idle;
      if (mayBeMore) {
        this.socket.resume();
        // Only the next polls show what came behind the response.
        setImmediate(setImmediate, () => this.offer(idle));
      } else {
        this.context.onIdle(this);
      }
    } else {
      this.destroy();
    }
    call.listener.onEnd();
  }

  private offer(idle: State): void {
    if (this.state === idle && this.isUsable) this.context.onIdle(this);
  }

  get isUsable(): boolean {
    const { socket } = this;
    return !socket.readableEnded && !socket.destroyed && socket.writable;
  }

  /** The call was paused before and is not any more. */
  resume(): void {
    this.wait();
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
    else if (this.state.at === 'idle') this.destroy();
  };

  private readonly onClose = (): void => {
    const { state, context } = this;
    if (state.at === 'busy') this.conclude(state);
    else if (state.at === 'connecting') this.fail(unreachable(this.describe('the connection closed')));
    context.onClosed(this);
  };

  /** No more comes; what was read before that still counts. */
  private conclude(state: Busy): void {
    const { socket } = this;
    const { reading } = state;
    const orderly = socket.readableEnded && socket.errored === null;
    if (orderly && reading.unread.length > 0 && reading.mayEndHere) return;
    if (orderly && reading.phase === 'close') return this.onEnd(state);
    this.fail(unreachable(this.describe(reading.phase === 'head' ? 'no response came' : 'the response broke off')));
  }

  private describe(otherwise: string): string {
    const error: NodeJS.ErrnoException | null = this.socket.errored;
    return error === null ? otherwise : `${error.code ?? 'error'}: ${error.message}`;
  }

  private fail(fault: CallFault): void {
    const { state, context } = this;
    if (state.at !== 'busy' && state.at !== 'connecting') return;
    this.destroy();
    const stale = state.at === 'busy' && this.calls > 1 && state.reading.progress === 'nothing';
    if (stale && fault.code === 'upstream_unreachable') context.onStale(state.call, fault);
    else state.call.fail(fault);
  }

  /** From here on its socket is the listener's; it counts until it closes. */
  private letGo(): void {
    this.state = { at: 'closed' };
    this.socket.pause();
    this.socket.removeListener('data', this.onStream);
  }

  /** Ends the connection without a word to its call. */
  destroy(): void {
    if (this.state.at === 'busy') this.state.call.upload?.stop();
    this.state = { at: 'closed' };
    this.socket.destroy();
  }

  /** Ends the connection; its call fails. */
  close(detail: string): void {
    this.fail(unreachable(detail));
    this.destroy();
  }
}

function ignore(): void {
  // `close` follows.
}

function unreachable(detail: string): CallFault {
  return { code: 'upstream_unreachable', detail };
}

function timeout(detail: string): CallFault {
  return { code: 'upstream_timeout', detail };
}
