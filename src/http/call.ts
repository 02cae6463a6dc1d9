// One request on its way, over as many connections as it takes: what was asked, who listens, and how far it got. It is on
// one connection at a time, and its listener hears of one end.
import { readFraming } from './framing.ts';
import type { CallFault, UpstreamCall, UpstreamListener, UpstreamRequest } from './transport.ts';
import { Upload, type GatheringListener } from './upload.ts';

/** What a call tells its pool. */
export type CallPool = {
  /** The first byte of its body is there. */
  onReady(call: PoolCall): void;
  /** It waits for nothing any more. */
  onLeft(call: PoolCall): void;
};

/** What a call needs of the connection that it is on. */
export type CallConnection = { wait(): void; resume(): void; destroy(): void };

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** A class, because every request makes one. */
export class PoolCall implements UpstreamCall, GatheringListener {
  readonly request: UpstreamRequest;
  /** The request's head as it is written. */
  readonly head: string;
  readonly listener: UpstreamListener;
  /** Until when all of it has to be over, in milliseconds of the pool's clock. */
  readonly endsAt: number;
  /** Of a request with a body. */
  readonly upload: Upload | undefined;
  /** Until when it waits for the beginning of its body, or for a connection. */
  deadline = 0;
  paused = false;
  /** A byte of it may have left. */
  sent = false;
  private retried = false;
  private place: 'waiting' | CallConnection | 'over' = 'waiting';
  private readonly pool: CallPool;

  constructor(request: UpstreamRequest, head: string, listener: UpstreamListener, endsAt: number, pool: CallPool) {
    const { body, headers } = request;
    this.request = request;
    this.head = head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.pool = pool;
    this.upload =
      body === undefined || head === '' ? undefined : new Upload(body, head, readFraming(headers) ?? 0, this);
  }

  pause(): void {
    this.paused = true;
    if (typeof this.place === 'object') this.place.wait();
  }

  resume(): void {
    this.paused = false;
    if (typeof this.place === 'object') this.place.resume();
  }

  abort(): void {
    const { place } = this;
    this.end();
    if (place === 'waiting') this.pool.onLeft(this);
    else if (place !== 'over') place.destroy();
  }

  onReady(): void {
    this.pool.onReady(this);
  }

  onBroken(fault: CallFault): void {
    this.abort();
    this.listener.onFailure({ ...fault, sent: this.sent });
  }

  startOn(connection: CallConnection): void {
    this.place = connection;
  }

  /** True once, for a call that can be sent twice without a difference to anybody: idempotent and without a body. */
  takeRetry(): boolean {
    const { body, upgrade, method } = this.request;
    if (this.retried || body !== undefined || upgrade || !REPEATABLE.has(method)) return false;
    this.retried = true;
    return true;
  }

  /** Nothing more is said of it. */
  end(): void {
    this.place = 'over';
    this.upload?.stop();
  }

  fail(fault: CallFault): void {
    if (this.place === 'over') return;
    this.end();
    this.listener.onFailure({ ...fault, sent: this.sent });
  }
}
