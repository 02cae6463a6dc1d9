// Memory of this process about payments, lost with it: the responses that were paid for, while a client may need one
// again, and the payments it has seen.
import type { PaymentKey } from '../../domain/payment/charge.ts';
import type { PresentedRequest } from '../../domain/payment/claim-policy.ts';
import type { Schedule } from '../../host/clock.ts';
import type { OwnResponse } from '../../host/respond.ts';

// Responses are kept for a client that leaves before the last byte, and for 60 s after it: that byte may be lost in a
// buffer. All kept responses of a process share one limit. A response that does not fit is not kept.

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

/** A replay has its own. */
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

// Payments that were seen, so that a new one needs no look-up. With a look-up each, a paid request takes 1.06 to 1.1 times
// the CPU with two workers, and 1.01 with one process (`node bench/paid.ts --paid --workers 2 --root . --root ../without`).
// A payment that came before a restart or through another process is not seen here, and the ledger says so when it is
// claimed or refused.

export type SeenPayments = {
  /**
   * Whether a payment may have been seen. False: it was never added. True: it was, or now and then looks like one that
   * was, so ask the ledger.
   */
  readonly has: (payment: PaymentKey) => boolean;
  readonly add: (payment: PaymentKey) => void;
};

/** Payments of one generation. Two are remembered: at 1,000 payments a second those of the last 17 to 33 minutes. */
const CAPACITY = 1_000_000;
/** Bits for each payment. Four are set, so two of a thousand others look the same when a generation is full. */
const BITS_PER_PAYMENT = 16;
/** Random if payers are well advised: 128 bits at its end are looked at. */
const HEX = /[0-9a-f]{32}$/;

export function createSeenPayments(capacity = CAPACITY): SeenPayments {
  // A power of two; memory that no bit was set in is not taken yet.
  const words = 2 ** Math.ceil(Math.log2((capacity * BITS_PER_PAYMENT) / 32));
  let young = new Uint32Array(words);
  let old: Uint32Array | undefined;
  let added = 0;

  return {
    has: ({ unique }) => {
      if (!HEX.test(unique)) return true;
      return holds(young, unique) || (old !== undefined && holds(old, unique));
    },
    add: ({ unique }) => {
      if (!HEX.test(unique)) return;
      if (added === capacity) {
        old = young;
        young = new Uint32Array(words);
        added = 0;
      }
      added += 1;
      for (let part = 0; part < PARTS; part++) {
        const at = partOf(unique, part);
        const word = wordOf(young, at);
        young[word] = (young[word] ?? 0) | bitOf(at);
      }
    },
  };
}

const PARTS = 4;
const PART_DIGITS = 8;

function holds(bits: Uint32Array, unique: string): boolean {
  for (let part = 0; part < PARTS; part++) {
    const at = partOf(unique, part);
    if (((bits[wordOf(bits, at)] ?? 0) & bitOf(at)) === 0) return false;
  }
  return true;
}

/** Reads 32 bits of a payment's unique part. */
function partOf(unique: string, part: number): number {
  const from = unique.length - (PARTS - part) * PART_DIGITS;
  return Number.parseInt(unique.slice(from, from + PART_DIGITS), 16);
}

function wordOf(bits: Uint32Array, at: number): number {
  return (at >>> 5) & (bits.length - 1);
}

function bitOf(at: number): number {
  return 1 << (at & 31);
}
