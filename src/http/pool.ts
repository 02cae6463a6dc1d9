// The transport: keep-alive connections to one upstream on node:net and node:tls, the one used last first. A request is
// sent a second time only if that changes nothing: an idempotent method without a body, on a pooled connection
// that the upstream closed before it responded with a single byte. One sweep over all connections looks after time-outs.
import { PoolCall, timeout, unreachable } from './call.ts';
import { Connection, POOL_IDLE_MS, type ConnectionPool } from './connection.ts';
import { writeHead } from './request-writer.ts';
import type { CallFault, PoolOptions, Transport } from './transport.ts';

/** For so long the head of a request waits for the first byte of its body. */
const FIRST_BYTE_MS = 1000;
const CLOSED = 'the pool was closed';

export function createPool(options: PoolOptions): Transport {
  return new Pool(options);
}

class Pool implements Transport, ConnectionPool {
  readonly options: PoolOptions;
  private readonly now: () => number;
  private readonly sweepMs: number;
  private readonly connections = new Set<Connection>();
  private readonly idle: Connection[] = [];
  /** For a connection; some may be over. */
  private waiting: PoolCall[] = [];
  /** For the first byte of their bodies; some may be over. */
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

  readonly send: Transport['send'] = (request, listener) => {
    const head = this.closed === undefined ? writeHead(request) : undefined;
    const { totalMs } = this.options.timeouts;
    const endsAt = totalMs === undefined ? Infinity : this.now() + totalMs;
    const call = new PoolCall(request, head ?? '', listener, endsAt, this.onReady);
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
    if (next === undefined) this.idle.push(connection);
    else connection.start(next);
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

  onStale(call: PoolCall, fault: CallFault): void {
    if (this.closed !== undefined || !call.takeRetry()) return call.fail(fault);
    call.deadline = this.now() + this.options.timeouts.connectMs;
    this.open(call);
  }

  private readonly onReady = (call: PoolCall): void => {
    if (this.gathering.delete(call) && !call.isOver) this.dispatch(call);
  };

  private dispatch(call: PoolCall): void {
    const { idle, connections, waiting, options } = this;
    if (!call.request.upgrade) {
      for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
        if (connection.isUsable) return connection.start(call);
      }
    }
    call.deadline = this.now() + options.timeouts.connectMs;
    if (connections.size < options.maxSockets) this.open(call);
    else waiting.push(call);
  }

  private nextWaiting(): PoolCall | undefined {
    for (let call = this.waiting.shift(); call !== undefined; call = this.waiting.shift()) {
      if (!call.isOver) return call;
    }
    return undefined;
  }

  private open(call: PoolCall): void {
    this.connections.add(new Connection(this, call));
    this.sweepOn();
  }

  private sweepOn(): void {
    this.sweeper ??= setInterval(() => this.sweep(), this.sweepMs).unref();
  }

  private sweep(): void {
    const { connections, gathering } = this;
    const now = this.now();
    for (const call of gathering) {
      // From here on its client's silence counts.
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
