// One sub-request of a proxy, from its arrival to its one answer. It knows whether that answer left: an allow counts as delivered
// once it was handed to the socket whole.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ResponseWatcher } from '../../host/client-connection.ts';
import type { OwnResponse } from '../../host/respond.ts';
import { respond } from '../../host/respond.ts';
import type { WriteBatch } from '../../host/write-batch.ts';
import { leavesBodyUnread } from '../client-response.ts';
import type { ReleasePlace } from '../client-semaphores.ts';
import { hasBody } from '../headers.ts';
import type { RequestRecord } from '../telemetry.ts';
import type { TracedRequest } from '../tracing/request-span.ts';

export class AskedRequest implements ResponseWatcher, TracedRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  /** Scheme and authority that the client of the proxy used, if the question is traced; empty until it was read. */
  publicOrigin = '';
  /** Gives the place of its client back, if it holds one. */
  release: ReleasePlace | undefined;
  /** Ends the watch over its time. */
  stopTimer: (() => void) | undefined;
  /** Whether its peer may speak for others. */
  isBelieved = false;
  isAnswered = false;
  private isWhole = false;
  private isClosed = false;
  private heard: ((whole: boolean) => void) | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, record: RequestRecord) {
    this.req = req;
    this.res = res;
    this.record = record;
  }

  /** Whether nobody waits for its answer any more. */
  get isGone(): boolean {
    return this.isAnswered || this.isClosed || this.req.socket.destroyed;
  }

  /** Answers. `added`: further headers. */
  answer(response: OwnResponse, added: readonly string[], writeBatch: WriteBatch): void {
    const { req, res } = this;
    this.isAnswered = true;
    this.stopTimer?.();
    const closing = leavesBodyUnread(req) ? [...added, 'Connection', 'close'] : added;
    respond(res, response, req.method === 'HEAD', closing, hasBody(req) ? undefined : writeBatch);
    if (!req.complete) req.resume();
  }

  /** Resolves with whether the answer was handed to the socket whole, once that is known; asked for once, with the answer. */
  isHandedOver(): Promise<boolean> {
    if (this.isClosed) return Promise.resolve(this.isWhole);
    return new Promise((resolve) => (this.heard = resolve));
  }

  onFinish(): void {
    this.isWhole = !this.req.socket.destroyed;
  }

  onClose(): void {
    this.isClosed = true;
    this.heard?.(this.isWhole);
  }
}
