// The transport: keep-alive connections to one upstream on node:net and node:tls, the one used last first. A request is
// sent a second time only if that changes nothing: an idempotent method without a body, on a pooled connection
// that the upstream closed before it responded with a single byte. One sweep over all connections looks after time-outs.
import { PoolCall, type CallPool } from './call.ts';
import { Connection, POOL_IDLE_MS, type ConnectionContext } from './connection.ts';
import { ReadMemory } from './memory.ts';
import { writeHead } from './request-writer.ts';
import type { CallFault, Outbox, Transport, UpstreamTimeouts } from './transport.ts';

export type PoolOptions = {
  /** Its host is also the name that TLS asks for and verifies. */
  readonly upstream: URL;
  /** A Unix socket that is connected to in place of the host and port. */
  readonly socketPath?: string;
  readonly timeouts: UpstreamTimeouts;
  /** Connections at most, idle ones and tunnels included; further requests wait for one up to `timeouts.connectMs`. */
  readonly maxSockets: number;
  readonly outbox: Outbox;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
};

/** For so long the head of a request waits for the first byte of its body. */
const FIRST_BYTE_MS = 1000;

export function createPool(options: PoolOptions): Transport {
  return new Pool(options);
}

class Pool implements Transport, ConnectionContext, CallPool {
  readonly host: string;
  readonly place: ConnectionContext['place'];
  readonly secure: boolean;
  readonly timeouts: UpstreamTimeouts;
  readonly outbox: Outbox;
  readonly now: () => number;
  readonly memory = new ReadMemory();
  private readonly maxSockets: number;
  private readonly sweepMs: number;
  private readonly connections = new Set<Connection>();
  private readonly idle: Connection[] = [];
  /** For a connection. */
  private waiting: PoolCall[] = [];
  /** For the first byte of their bodies. */
  private readonly gathering = new Set<PoolCall>();
  private sweeper: NodeJS.Timeout | undefined;
  private closed: (() => void) | undefined;

  constructor({ upstream, socketPath, timeouts, maxSockets, outbox, now = () => performance.now() }: PoolOptions) {
    const { connectMs, headersMs, idleMs, totalMs = Infinity, uploadMs = Infinity } = timeouts;
    const shortest = Math.min(connectMs, headersMs, idleMs, totalMs, uploadMs, POOL_IDLE_MS);
    this.secure = upstream.protocol === 'https:';
    this.host = upstream.hostname.replace(/^\[|\]$/g, '');
    const port = Number(upstream.port) || (this.secure ? 443 : 80);
    this.place = socketPath === undefined ? { host: this.host, port } : { path: socketPath };
    this.timeouts = timeouts;
    this.outbox = outbox;
    this.now = now;
    this.maxSockets = maxSockets;
    this.sweepMs = Math.max(5, Math.min(500, shortest / 8));
  }

  readonly send: Transport['send'] = (request, listener) => {
    const head = this.closed === undefined ? writeHead(request) : undefined;
    const { totalMs = Infinity } = this.timeouts;
    const call = new PoolCall(request, head ?? '', listener, this.now() + totalMs, this);
    if (head === undefined) {
      process.nextTick(failCall, call, this.closed === undefined ? 'the request cannot be written' : CLOSED);
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
      for (const call of [...this.waiting.splice(0), ...gathering]) failCall(call, CLOSED);
      gathering.clear();
      for (const connection of connections) connection.close(CLOSED);
      if (connections.size === 0) resolve();
    });
    clearInterval(this.sweeper);
  };

  onIdle(connection: Connection): void {
    const next = this.waiting.shift();
    if (next === undefined) this.idle.push(connection);
    else connection.start(next);
  }

  onClosed(connection: Connection): void {
    const { connections, idle } = this;
    connections.delete(connection);
    const at = idle.lastIndexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    const next = this.waiting.shift();
    if (next !== undefined) this.open(next);
    else if (connections.size === 0) this.closed?.();
  }

  onStale(call: PoolCall, fault: CallFault): void {
    if (this.closed !== undefined || !call.takeRetry()) return call.fail(fault);
    call.deadline = this.now() + this.timeouts.connectMs;
    this.open(call);
  }

  onReady(call: PoolCall): void {
    if (this.gathering.delete(call)) this.dispatch(call);
  }

  onLeft(call: PoolCall): void {
    this.gathering.delete(call);
    this.waiting = this.waiting.filter((other) => other !== call);
  }

  private dispatch(call: PoolCall): void {
    const { idle, connections, waiting } = this;
    if (!call.request.upgrade) {
      for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
        if (connection.isUsable) return connection.start(call);
      }
    }
    call.deadline = this.now() + this.timeouts.connectMs;
    if (connections.size < this.maxSockets) this.open(call);
    else waiting.push(call);
  }

  private open(call: PoolCall): void {
    this.connections.add(new Connection(this, call));
    this.sweepOn();
  }

  private sweepOn(): void {
    this.sweeper ??= setInterval(() => this.sweep(), this.sweepMs).unref();
  }

  private sweep(): void {
    const { connections, gathering, waiting } = this;
    const now = this.now();
    for (const call of gathering) {
      // From here on its client's silence counts.
      call.upload?.quietMs(now);
      if (call.deadline <= now + this.sweepMs) this.onReady(call);
    }
    for (const connection of connections) connection.sweep(now);
    const late = waiting.filter(({ deadline }) => deadline <= now);
    for (const call of late) {
      this.onLeft(call);
      call.fail({ code: 'upstream_timeout', detail: 'no free connection to the upstream in time' });
    }
    if (connections.size > 0 || this.waiting.length > 0 || gathering.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }
}

const CLOSED = 'the pool was closed';

function failCall(call: PoolCall, detail: string): void {
  call.fail({ code: 'upstream_unreachable', detail });
}
