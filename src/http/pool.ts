// The transport: keep-alive connections to one upstream, the one used last first, and the calls that go over them. A
// call is sent a second time only if that changes nothing. The upstream closed the pooled connection before the first
// byte of a response, and no byte of the request had left, or its method is idempotent and it has no body. One sweep over
// all connections looks after time-outs.
import type { Socket } from 'node:net';
import {
  Connection,
  POOL_IDLE_MS,
  type ConnectionPool,
  timeout,
  unreachable,
  type CarriedCall,
  type ConnectionWaiter,
} from './connection.ts';
import { Reservation } from './reservation.ts';
import { readFraming, writeHead, Upload, type UploadListener } from './request-writer.ts';
import type {
  CallFault,
  PoolOptions,
  ReservedConnection,
  Transport,
  BatchedWrites,
  UpstreamCall,
  UpstreamFault,
  UpstreamListener,
  UpstreamRequest,
} from './transport.ts';

/** Time that the head of a request waits for the first byte of its body. */
const FIRST_BYTE_MS = 1000;
const CLOSED = 'the pool was closed';
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

export function createPool(options: PoolOptions): Transport {
  return new Pool(options);
}

class Pool implements Transport, ConnectionPool {
  readonly options: PoolOptions;
  readonly now: () => number;
  private readonly sweepMs: number;
  private readonly connections = new Set<Connection>();
  private readonly idle: Connection[] = [];
  /** Waiters for a connection; some may be over. */
  private waiting: ConnectionWaiter[] = [];
  /** Calls that wait for the first byte of their bodies; some may be over. */
  private readonly gathering = new Set<PoolCall>();
  private sweeper: NodeJS.Timeout | undefined;
  private closed: (() => void) | undefined;

  constructor(options: PoolOptions) {
    const { connectMs, headersMs, idleMs, totalMs = Infinity, uploadMs = Infinity } = options.timeouts;
    const shortest = Math.min(connectMs, headersMs, idleMs, totalMs, uploadMs, POOL_IDLE_MS);
    this.options = options;
    this.now = options.now ?? (() => performance.now());
    this.sweepMs = Math.max(5, Math.min(500, shortest / 8));
  }

  readonly send: Transport['send'] = (request, listener, reserved) => {
    const head = this.closed === undefined ? writeHead(request) : undefined;
    const { totalMs } = this.options.timeouts;
    const endsAt = totalMs === undefined ? Infinity : this.now() + totalMs;
    const call = new PoolCall(request, head ?? '', { listener, endsAt, reserved, whenReady: this.onReady });
    if (head === undefined) {
      const detail = this.closed === undefined ? 'the request cannot be written' : CLOSED;
      process.nextTick(() => call.fail(unreachable(detail)));
    } else if (call.upload === undefined) {
      this.dispatch(call);
    } else {
      call.deadline = this.now() + FIRST_BYTE_MS;
      this.gathering.add(call);
      this.sweepOn();
    }
    return call;
  };

  readonly reserve: Transport['reserve'] = async (upgrade) => {
    const idle = upgrade ? undefined : this.takeIdle();
    if (idle === undefined) return this.reserveNew(upgrade);
    idle.reserve();
    return idle;
  };

  private reserveNew(upgrade: boolean): Promise<ReservedConnection | UpstreamFault> {
    return new Promise((resolve) => {
      const deadline = this.now() + this.options.timeouts.connectMs;
      const waiting = new Reservation(upgrade, deadline, (had) =>
        resolve(had instanceof Connection ? had : { code: 'upstream_unreachable', detail: had.detail }),
      );
      if (this.closed === undefined) this.openSoon(waiting);
      else waiting.fail(unreachable(CLOSED));
    });
  }

  readonly close = async (): Promise<void> => {
    const { connections, gathering } = this;
    await new Promise<void>((resolve) => {
      this.closed = resolve;
      for (const call of [...this.waiting.splice(0), ...gathering]) call.fail(unreachable(CLOSED));
      gathering.clear();
      for (const connection of connections) connection.close(CLOSED);
      if (connections.size === 0) resolve();
    });
    clearInterval(this.sweeper);
  };

  onIdle(connection: Connection): void {
    const next = this.nextWaiting();
    if (next === undefined) return void this.idle.push(connection);
    if (!next.upgrade) return next.onConnection(connection);
    // The place of the connection is for a new one.
    this.waiting.unshift(next);
    connection.destroy();
  }

  onClosed(connection: Connection): void {
    const { connections, idle } = this;
    connections.delete(connection);
    const at = idle.lastIndexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    const next = this.nextWaiting();
    if (next !== undefined) this.open(next);
    else if (connections.size === 0) this.closed?.();
  }

  onStale(call: CarriedCall, fault: CallFault): void {
    if (this.closed !== undefined || !call.takeRetry()) return call.fail(fault);
    call.deadline = this.now() + this.options.timeouts.connectMs;
    this.openSoon(call);
  }

  private readonly onReady = (call: PoolCall): void => {
    if (this.gathering.delete(call) && !call.isOver) this.dispatch(call);
  };

  private dispatch(call: PoolCall): void {
    const { reserved } = call;
    const kept = reserved === undefined && !call.upgrade ? this.takeIdle() : this.takeReserved(reserved);
    if (kept !== undefined) return kept.start(call);
    call.deadline = this.now() + this.options.timeouts.connectMs;
    this.openSoon(call);
  }

  private takeIdle(): Connection | undefined {
    const { idle } = this;
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.isUsable) return connection;
    }
    return undefined;
  }

  /** Takes a reserved connection. Undefined: it is dead or about to be, and others that are idle may be as well. */
  private takeReserved(reserved: ReservedConnection | undefined): Connection | undefined {
    if (!(reserved instanceof Connection)) return undefined;
    if (reserved.isFresh) return reserved;
    reserved.destroy();
    return undefined;
  }

  /** Opens a connection for `waiting` when there is room for one. */
  private openSoon(waiting: ConnectionWaiter): void {
    if (this.connections.size < this.options.maxSockets) this.open(waiting);
    else this.waiting.push(waiting);
  }

  private nextWaiting(): ConnectionWaiter | undefined {
    for (let call = this.waiting.shift(); call !== undefined; call = this.waiting.shift()) {
      if (!call.isOver) return call;
    }
    return undefined;
  }

  private open(waiting: ConnectionWaiter): void {
    this.connections.add(new Connection(this, waiting));
    this.sweepOn();
  }

  private sweepOn(): void {
    this.sweeper ??= setInterval(() => this.sweep(), this.sweepMs).unref();
  }

  private sweep(): void {
    const { connections, gathering } = this;
    const now = this.now();
    for (const call of gathering) {
      // The silence of the client counts from here on.
      call.upload?.quietMs(now);
      if (call.isOver || call.deadline <= now + this.sweepMs) this.onReady(call);
    }
    for (const connection of connections) connection.sweep(now);
    for (const call of this.waiting)
      if (call.deadline <= now) call.fail(timeout('no free connection to the upstream in time'));
    this.waiting = this.waiting.filter((call) => !call.isOver);
    if (connections.size > 0 || this.waiting.length > 0 || gathering.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }
}

// One request on its way: what was asked, who listens, and how far it got. It is on one connection at a time, and its
// listener hears of one end.

/** A class, because every request makes one. */
class PoolCall implements CarriedCall, UpstreamCall, UploadListener {
  readonly request: UpstreamRequest;
  /** The request's head as it is written, and a body that is there already. */
  readonly head: string;
  readonly listener: UpstreamListener;
  /** Time by which all of it has to be over, in milliseconds of the pool's clock. */
  readonly endsAt: number;
  /** Upload of a request with a body. */
  readonly upload: Upload | undefined;
  /** Time until which it waits for the beginning of its body, or for a connection. */
  deadline = 0;
  paused = false;
  /** Progress of sending on this connection; `queued`: nothing left yet. */
  sending: 'queued' | 'body' | 'sent' = 'queued';
  /** A byte of it may have left, on this connection or the one before. */
  private hasLeft = false;
  private retried = false;
  private place: 'waiting' | Connection | 'over' = 'waiting';
  /** The connection that was kept for it, until it is used or given back. */
  reserved: ReservedConnection | undefined;
  private readonly whenReady: (call: PoolCall) => void;

  /** Makes a call. `whenReady` is called when the first byte of its body is there. */
  constructor(
    request: UpstreamRequest,
    head: string,
    {
      listener,
      endsAt,
      reserved,
      whenReady,
    }: Pick<PoolCall, 'listener' | 'endsAt' | 'reserved'> & { readonly whenReady: (call: PoolCall) => void },
  ) {
    const { body, headers } = request;
    const whole = typeof body === 'string';
    this.request = request;
    this.head = whole && head !== '' ? head + body : head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.reserved = reserved;
    this.whenReady = whenReady;
    this.upload =
      body === undefined || whole || head === '' ? undefined : new Upload(body, head, readFraming(headers) ?? 0, this);
  }

  get isOver(): boolean {
    return this.place === 'over';
  }

  get upgrade(): boolean {
    return this.request.upgrade;
  }

  get sent(): boolean {
    return this.hasLeft;
  }

  onConnection(connection: Connection): void {
    connection.start(this);
  }

  moveTo(connection: Connection): void {
    this.reserved = undefined;
    this.place = connection;
  }

  sendOn(socket: Socket, writeBatch: BatchedWrites): void {
    this.sending = 'queued';
    if (this.upload === undefined) writeBatch.write(socket, this.head, 'latin1', this);
    else this.upload.sendOn(socket, writeBatch);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    if (typeof this.place === 'object') this.place.resume();
  }

  abort(): void {
    const { place } = this;
    this.end();
    if (typeof place === 'object') place.destroy();
  }

  onLeaving(): void {
    this.onProgress('sent');
  }

  onProgress(progress: 'ready' | 'body' | 'sent'): void {
    if (progress === 'ready') return this.whenReady(this);
    this.sending = progress;
    this.hasLeft = true;
    if (typeof this.place === 'object') this.place.moved();
  }

  onBroken(fault: CallFault): void {
    this.abort();
    this.tell(fault);
  }

  /**
   * True once, for a call that can be sent twice without a difference to anybody: without a body, and idempotent or not
   * a byte of it has left.
   */
  takeRetry(): boolean {
    const { body, upgrade, method } = this.request;
    if (this.retried || body !== undefined || upgrade || (this.hasLeft && !REPEATABLE.has(method))) return false;
    this.retried = true;
    return true;
  }

  /** Ends the call: its listener hears nothing more. */
  end(): void {
    this.place = 'over';
    this.upload?.stop();
    const { reserved } = this;
    this.reserved = undefined;
    reserved?.release();
  }

  fail(fault: CallFault): void {
    if (this.isOver) return;
    this.end();
    this.tell(fault);
  }

  private tell(fault: CallFault): void {
    this.listener.onFailure({ ...fault, sent: this.hasLeft });
  }
}
