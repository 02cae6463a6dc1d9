// Responses that were paid for, kept in memory alone for a client that leaves before the last byte, and for 60 s after it:
// that byte may be lost in a buffer. All kept responses of a process share one limit. A response that does not fit is not
// kept.
import type { PresentedRequest } from '../../domain/payment/claim-policy.ts';
import type { Schedule } from '../../host/clock.ts';
import type { OwnResponse } from '../../host/respond.ts';

/** Budget in bytes for kept responses in this process. */
export type ResponseMemory = {
  /** Counts bytes; false if they do not fit, and then they are not counted. */
  readonly take: (bytes: number) => boolean;
  readonly give: (bytes: number) => void;
};

const MEMORY_BYTES = 64 * 1024 * 1024;
/** Bytes that a response costs beside its body: resident memory, measured with 100,000 small ones. */
const OVERHEAD_BYTES = 1800;

export function createResponseMemory(maxBytes = MEMORY_BYTES): ResponseMemory {
  let used = 0;
  return {
    take: (bytes) => {
      if (used + bytes > maxBytes) return false;
      used += bytes;
      return true;
    },
    give: (bytes) => {
      used -= bytes;
    },
  };
}

/** Response while it is collected and afterwards. Its last holder calls `drop`. */
export class KeptResponse {
  private readonly memory: ResponseMemory;
  private bodyLeft: number;
  private counted = 0;
  private status = 0;
  private headers: readonly string[] = [];
  private pieces: Buffer[] = [];
  private state: 'kept' | 'dropped' = 'kept';

  /** Starts empty; `limit` is the most bytes of the body. */
  constructor(memory: ResponseMemory, limit: number) {
    this.memory = memory;
    this.bodyLeft = limit;
  }

  get isKept(): boolean {
    return this.state === 'kept';
  }

  /** Takes the head of the response. `headers` are as the client gets them. */
  begin(status: number, headers: readonly string[]): void {
    this.status = status;
    this.headers = headers.filter((_, i) => !MADE_ANEW.has(headers[i - (i % 2)]?.toLowerCase() ?? ''));
    let bytes = OVERHEAD_BYTES;
    for (const part of this.headers) bytes += part.length;
    this.count(bytes);
  }

  add(chunk: Buffer): void {
    if (this.state === 'dropped') return;
    this.bodyLeft -= chunk.length;
    if (this.bodyLeft < 0) this.drop();
    else if (this.count(chunk.length)) this.pieces.push(Buffer.from(chunk));
  }

  /** Returns the whole response; called when nothing more comes. */
  response(): OwnResponse {
    if (this.pieces.length !== 1) this.pieces = [Buffer.concat(this.pieces)];
    const [body = Buffer.alloc(0)] = this.pieces;
    return { status: this.status, headers: this.headers, body };
  }

  drop(): void {
    this.state = 'dropped';
    this.memory.give(this.counted);
    this.counted = 0;
    this.pieces = [];
  }

  private count(bytes: number): boolean {
    if (this.state === 'kept' && this.memory.take(bytes)) {
      this.counted += bytes;
      return true;
    }
    this.drop();
    return false;
  }
}

/** Headers that a replay has its own of. */
const MADE_ANEW: ReadonlySet<string> = new Set(['content-length', 'x-request-id']);

/** Response that a repeated request gets, and what the request has to show for it. */
export type Replay = { readonly response: OwnResponse; readonly chargeId: string; readonly routeId: string };

/** Responses whose last byte was handed over, for as long as it may be lost behind that. */
export type Replays = {
  /** Takes `kept`, which is whole. */
  readonly remember: (key: PresentedRequest, kept: KeptResponse, of: Omit<Replay, 'response'>) => void;
  readonly find: (key: PresentedRequest) => Replay | undefined;
};

const REPLAY_MS = 60_000;

type RememberedResponse = PresentedRequest & {
  readonly until: number;
  readonly kept: KeptResponse;
  readonly replay: Replay;
};

export function createReplays(schedule: Schedule, monotonic: () => number): Replays {
  // Responses in the order in which they were added, which is that in which they end.
  const remembered = new Map<string, RememberedResponse>();
  let waiting = false;

  const sweep = (): void => {
    waiting = false;
    for (const [sha256, { until, kept }] of remembered) {
      if (until > monotonic()) {
        waiting = true;
        schedule(until - monotonic(), sweep);
        return;
      }
      kept.drop();
      remembered.delete(sha256);
    }
  };

  return {
    remember: (key, kept, of) => {
      const { credentialSha256 } = key;
      remembered.get(credentialSha256)?.kept.drop();
      remembered.delete(credentialSha256);
      const replay = { ...of, response: kept.response() };
      remembered.set(credentialSha256, { ...key, until: monotonic() + REPLAY_MS, kept, replay });
      if (!waiting) schedule(REPLAY_MS, sweep);
      waiting = true;
    },
    find: ({ credentialSha256, method, targetSha256 }) => {
      const found = remembered.get(credentialSha256);
      if (found === undefined || found.until <= monotonic()) return undefined;
      return found.method === method && found.targetSha256 === targetSha256 ? found.replay : undefined;
    },
  };
}
