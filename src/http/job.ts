// One call as the pool and its connections see it: what was asked, who listens, and how far it got. A job is on one
// connection at a time, and its listener hears of one end.
import type { Connection } from './connection.ts';
import type { UpstreamListener, UpstreamRequest } from './transport.ts';
import type { Upload } from './upload.ts';

/** One request on its way, over as many connections as it takes. */
export type Job = {
  readonly request: UpstreamRequest;
  /** The request's head as it is written. */
  readonly head: string;
  readonly listener: UpstreamListener;
  /** Of a request with a body. */
  readonly upload: Upload | undefined;
  connection: Connection | undefined;
  paused: boolean;
  /** Aborted, failed or whole: nothing more is said of it. */
  over: boolean;
  /** A byte of it may have left. */
  sent: boolean;
  /** Until when it waits for the beginning of its body, or for a connection, in milliseconds of the pool's clock. */
  deadline: number;
  /** Until when all of it has to be over. */
  readonly endsAt: number;
  /** It was sent on a connection that had been used before, and once more on a new one. */
  retried: boolean;
};
