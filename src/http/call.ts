// One request on its way, over as many connections as it takes: what was asked, who listens, and how far it got. It is on
// one connection at a time, and its listener hears of one end.
import type { Socket } from 'node:net';
import { readFraming } from './framing.ts';
import type { CallFault, BatchedWrites, UpstreamCall, UpstreamListener, UpstreamRequest } from './transport.ts';
import { Upload, type UploadListener } from './upload.ts';

/** What a call needs of the connection that it is on. */
export type CallConnection = {
  /** What has to happen next has its whole time from here on. */
  moved(): void;
  resume(): void;
  destroy(): void;
};

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** A class, because every request makes one. */
export class PoolCall implements UpstreamCall, UploadListener {
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
  /** On this connection; `queued`: nothing of it left yet. */
  sending: 'queued' | 'body' | 'sent' = 'queued';
  /** A byte of it may have left, on this connection or the one before. */
  private hasLeft = false;
  private retried = false;
  private place: 'waiting' | CallConnection | 'over' = 'waiting';
  private readonly whenReady: (call: PoolCall) => void;

  /** `whenReady`: the first byte of its body is there. */
  constructor(
    request: UpstreamRequest,
    head: string,
    listener: UpstreamListener,
    endsAt: number,
    whenReady: (call: PoolCall) => void,
  ) {
    const { body, headers } = request;
    this.request = request;
    this.head = head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.whenReady = whenReady;
    this.upload =
      body === undefined || head === '' ? undefined : new Upload(body, head, readFraming(headers) ?? 0, this);
  }

  get isOver(): boolean {
    return this.place === 'over';
  }

  moveTo(connection: CallConnection): void {
    this.place = connection;
  }

  sendOn(socket: Socket, writeBatch: BatchedWrites): void {
    this.sending = 'queued';
    if (this.upload === undefined) writeBatch.write(socket, this.head, 'latin1', () => this.onProgress('sent'));
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
    if (this.isOver) return;
    this.end();
    this.tell(fault);
  }

  private tell(fault: CallFault): void {
    this.listener.onFailure({ ...fault, sent: this.hasLeft });
  }
}

export function unreachable(detail: string): CallFault {
  return { code: 'upstream_unreachable', detail };
}

export function timeout(detail: string): CallFault {
  return { code: 'upstream_timeout', detail };
}
