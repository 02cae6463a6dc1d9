// The transport: keep-alive connections to one upstream on node:net and node:tls, the one used last first. A request is
// sent a second time only where nobody can tell the difference: an idempotent method without a body, on a pooled
// connection that the upstream closed before it answered with a single byte. Time-outs are looked after by one sweep
// over all connections, not by a timer each.
import { systemClock } from '../../host/clock.ts';
import { createOutbox, type Outbox } from '../../host/outbox.ts';
import { createLines } from './answer-head.ts';
import { openConnection, POOL_IDLE_MS, type Connection, type ConnectionHooks } from './connection.ts';
import type { Job } from './job.ts';
import { createHeadWriter } from './request-head.ts';
import { createSlabs } from './slabs.ts';
import type {
  Transport,
  UpstreamCall,
  UpstreamFailure,
  UpstreamListener,
  UpstreamRequest,
  UpstreamTimeouts,
} from './transport.ts';

export type PoolOptions = {
  readonly upstream: URL;
  readonly timeouts: UpstreamTimeouts;
  /** Connections at most, idle ones included; further requests wait for one up to `timeouts.connectMs`. */
  readonly maxSockets: number;
  readonly outbox?: Outbox;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
};

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

export function createPool(options: PoolOptions): Transport {
  const { upstream, timeouts, maxSockets, outbox = createOutbox(), now = systemClock.monotonic } = options;
  const secure = upstream.protocol === 'https:';
  const endpoint = {
    host: upstream.hostname.replace(/^\[|\]$/g, ''),
    port: Number(upstream.port) || (secure ? 443 : 80),
    secure,
    lines: createLines(),
  };
  const { connectMs, headersMs, idleMs, totalMs } = timeouts;
  const sweepMs = Math.max(
    5,
    Math.min(500, connectMs / 8, headersMs / 8, idleMs / 8, (totalMs ?? Infinity) / 8, POOL_IDLE_MS / 8),
  );
  const writeHead = createHeadWriter();
  const slabs = createSlabs();
  const connections = new Set<Connection>();
  const idle: Connection[] = [];
  let waiting: Job[] = [];
  let sweeper: NodeJS.Timeout | undefined;
  let closing = false;

  const hooks: ConnectionHooks = {
    now,
    outbox,
    onIdle: (connection) => {
      const next = waiting.shift();
      if (next === undefined) idle.push(connection);
      else connection.start(next);
    },
    onClosed: (connection) => {
      connections.delete(connection);
      const at = idle.lastIndexOf(connection);
      if (at >= 0) idle.splice(at, 1);
      const next = waiting.shift();
      if (next !== undefined) open(next);
    },
    onStale: (job, failure) => {
      if (closing || job.retried || !isRepeatable(job.request)) return fail(job, failure);
      job.retried = true;
      job.deadline = now() + connectMs;
      open(job);
    },
  };

  function open(job: Job): void {
    connections.add(openConnection(endpoint, job, timeouts, slabs, hooks));
    sweeper ??= setInterval(sweep, sweepMs).unref();
  }

  function dispatch(job: Job): void {
    if (!job.request.upgrade) {
      for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
        if (connection.isUsable()) return connection.start(job);
      }
    }
    // Not a byte of the body may be lost to another reader before there is a connection for it.
    job.request.body?.pause();
    job.deadline = now() + connectMs;
    if (connections.size < maxSockets) open(job);
    else waiting.push(job);
  }

  function sweep(): void {
    const at = now();
    for (const connection of connections) connection.sweep(at);
    if (waiting.some((job) => job.deadline <= at)) {
      const late = waiting.filter((job) => job.deadline <= at);
      waiting = waiting.filter((job) => job.deadline > at);
      for (const job of late)
        fail(job, { code: 'upstream_timeout', detail: 'no free connection to the upstream in time' });
    }
    if (connections.size > 0 || waiting.length > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  }

  const leave = (call: Call): void => {
    waiting = waiting.filter((other) => other !== call);
  };

  function send(request: UpstreamRequest, listener: UpstreamListener): UpstreamCall {
    const head = writeHead(request);
    const call = new Call(request, head ?? '', listener, totalMs === undefined ? Infinity : now() + totalMs, leave);
    if (head === undefined)
      process.nextTick(fail, call, { code: 'upstream_unreachable', detail: 'the request cannot be written' });
    else dispatch(call);
    return call;
  }

  return {
    send,
    close: () => {
      closing = true;
      for (const job of waiting.splice(0)) fail(job, { code: 'upstream_unreachable', detail: 'the pool was closed' });
      for (const connection of connections) connection.close('the pool was closed');
      clearInterval(sweeper);
    },
  };
}

/** A class, because every request makes one. */
class Call implements Job, UpstreamCall {
  readonly request: UpstreamRequest;
  readonly head: string;
  readonly listener: UpstreamListener;
  readonly endsAt: number;
  connection: Connection | undefined;
  paused = false;
  over = false;
  deadline = 0;
  retried = false;
  /** Takes it out of those that wait for a connection. */
  private readonly leave: (call: Call) => void;

  constructor(
    request: UpstreamRequest,
    head: string,
    listener: UpstreamListener,
    endsAt: number,
    leave: (call: Call) => void,
  ) {
    this.request = request;
    this.head = head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.leave = leave;
  }

  pause(): void {
    this.paused = true;
    if (!this.over) this.connection?.wait();
  }

  resume(): void {
    this.paused = false;
    if (!this.over) this.connection?.resume();
  }

  abort(): void {
    if (this.over) return;
    this.over = true;
    if (this.connection === undefined) this.leave(this);
    else this.connection.destroy();
  }
}

function fail(job: Job, failure: UpstreamFailure): void {
  if (job.over) return;
  job.over = true;
  job.listener.onFailure(failure);
}

function isRepeatable({ body, upgrade, method }: UpstreamRequest): boolean {
  return body === undefined && !upgrade && REPEATABLE.has(method);
}
