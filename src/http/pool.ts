// The transport: keep-alive connections to one upstream on node:net and node:tls, the one used last first. A request is
// sent a second time only where nobody can tell the difference: an idempotent method without a body, on a pooled
// connection that the upstream closed before it answered with a single byte. Time-outs are looked after by one sweep
// over all connections, not by a timer each.
import { createLines } from './response-head.ts';
import { openConnection, POOL_IDLE_MS, type Connection, type ConnectionHooks } from './connection.ts';
import type { Job } from './job.ts';
import { createHeadWriter } from './request-head.ts';
import { createSlabs } from './slabs.ts';
import { startUpload, type GatheringListener, type Upload } from './upload.ts';
import type {
  Outbox,
  Transport,
  UpstreamCall,
  UpstreamFailure,
  UpstreamListener,
  UpstreamRequest,
  UpstreamTimeouts,
  UploadFailure,
} from './transport.ts';

export type PoolOptions = {
  readonly upstream: URL;
  /** A Unix socket that is connected to in place of the host and port. */
  readonly socketPath?: string;
  readonly timeouts: UpstreamTimeouts;
  /** Connections at most, idle ones included; further requests wait for one up to `timeouts.connectMs`. */
  readonly maxSockets: number;
  readonly outbox: Outbox;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
};

/** For so long the head of a request waits for the first byte of its body. */
const FIRST_BYTE_MS = 1000;
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

export function createPool(options: PoolOptions): Transport {
  const { upstream, socketPath, timeouts, maxSockets, outbox, now = () => performance.now() } = options;
  const secure = upstream.protocol === 'https:';
  const host = upstream.hostname.replace(/^\[|\]$/g, '');
  const endpoint = {
    host,
    place:
      socketPath === undefined ? { host, port: Number(upstream.port) || (secure ? 443 : 80) } : { path: socketPath },
    secure,
    lines: createLines(),
  };
  const { connectMs, headersMs, idleMs, totalMs, uploadMs } = timeouts;
  const shortest = Math.min(connectMs, headersMs, idleMs, totalMs ?? Infinity, uploadMs ?? Infinity, POOL_IDLE_MS);
  const sweepMs = Math.max(5, Math.min(500, shortest / 8));
  const writeHead = createHeadWriter();
  const slabs = createSlabs();
  const connections = new Set<Connection>();
  const idle: Connection[] = [];
  let waiting: Job[] = [];
  // They wait for the first byte of their bodies.
  const gathering = new Set<Job>();
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
    job.deadline = now() + connectMs;
    if (connections.size < maxSockets) open(job);
    else waiting.push(job);
  }

  /** The first byte of its body is there, or was waited for long enough. */
  function gathered(job: Job): void {
    if (gathering.delete(job)) dispatch(job);
  }

  function sweep(): void {
    const at = now();
    for (const job of gathering) {
      // From here on its client's silence counts.
      job.upload?.quietMs(at);
      if (job.deadline <= at + sweepMs) gathered(job);
    }
    for (const connection of connections) connection.sweep(at);
    if (waiting.some((job) => job.deadline <= at)) {
      const late = waiting.filter((job) => job.deadline <= at);
      waiting = waiting.filter((job) => job.deadline > at);
      for (const job of late)
        fail(job, { code: 'upstream_timeout', detail: 'no free connection to the upstream in time' });
    }
    if (connections.size > 0 || waiting.length > 0 || gathering.size > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  }

  const side: PoolSide = {
    leave: (call) => {
      gathering.delete(call);
      waiting = waiting.filter((other) => other !== call);
    },
    gathered,
    broken: (call, failure) => {
      side.leave(call);
      fail(call, failure);
    },
  };

  function send(request: UpstreamRequest, listener: UpstreamListener): UpstreamCall {
    const head = writeHead(request);
    const call = new Call(request, head ?? '', listener, totalMs === undefined ? Infinity : now() + totalMs, side);
    if (head === undefined) {
      process.nextTick(fail, call, { code: 'upstream_unreachable', detail: 'the request cannot be written' });
    } else if (call.upload === undefined) {
      dispatch(call);
    } else {
      call.deadline = now() + FIRST_BYTE_MS;
      gathering.add(call);
      sweeper ??= setInterval(sweep, sweepMs).unref();
    }
    return call;
  }

  return {
    send,
    close: () => {
      closing = true;
      for (const job of [...waiting.splice(0), ...gathering])
        fail(job, { code: 'upstream_unreachable', detail: 'the pool was closed' });
      gathering.clear();
      for (const connection of connections) connection.close('the pool was closed');
      clearInterval(sweeper);
    },
  };
}

type PoolSide = {
  /** It waits for nothing any more. */
  readonly leave: (call: Call) => void;
  readonly gathered: (call: Call) => void;
  /** Its body broke off before it had a connection. */
  readonly broken: (call: Call, failure: UploadFailure) => void;
};

/** A class, because every request makes one. */
class Call implements Job, UpstreamCall, GatheringListener {
  readonly request: UpstreamRequest;
  readonly head: string;
  readonly listener: UpstreamListener;
  readonly endsAt: number;
  readonly upload: Upload | undefined;
  connection: Connection | undefined;
  paused = false;
  over = false;
  deadline = 0;
  retried = false;
  sent = false;
  private readonly pool: PoolSide;

  constructor(request: UpstreamRequest, head: string, listener: UpstreamListener, endsAt: number, pool: PoolSide) {
    const { body, headers } = request;
    this.request = request;
    this.head = head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.pool = pool;
    this.upload = body === undefined || head === '' ? undefined : startUpload(body, headers, this);
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
    this.upload?.stop();
    if (this.connection === undefined) this.pool.leave(this);
    else this.connection.destroy();
  }

  onReady(): void {
    this.pool.gathered(this);
  }

  onBroken(failure: UploadFailure): void {
    this.pool.broken(this, failure);
  }
}

function fail(job: Job, failure: UpstreamFailure | UploadFailure): void {
  if (job.over) return;
  job.over = true;
  job.upload?.stop();
  job.listener.onFailure({ ...failure, sent: job.sent });
}

function isRepeatable({ body, upgrade, method }: UpstreamRequest): boolean {
  return body === undefined && !upgrade && REPEATABLE.has(method);
}
