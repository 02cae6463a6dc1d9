// Open event streams (Server-Sent Events): every change of the book to every stream, resuming after what a client has
// seen. A reader that does not keep up is dropped and not buffered for; a stream whose key was revoked ends before the
// next event. Sidecars that are refused or dropped poll instead.
import type { ServerResponse } from 'node:http';
import { toWire } from '../domain/route.ts';
import type { RouteBook, Change } from './book.ts';
import { nameKey, type Principal } from './credentials.ts';
import type { RouteStore, StoredChange } from './store/ports.ts';

export type Streams = {
  /** Whether one more stream may be opened, by anyone and by this one. */
  readonly hasRoom: (principal: Principal) => boolean;
  /** `lastSeen` is the revision that the client names, or undefined if it names none: then only news are sent. */
  readonly open: (res: ServerResponse, principal: Principal, lastSeen: number | undefined) => void;
  readonly count: () => number;
  readonly close: () => void;
};

export type StreamOptions = {
  readonly book: RouteBook;
  readonly changesAfter: RouteStore['changesAfter'];
  readonly stillAllowed: (principal: Principal) => boolean;
  readonly limits: StreamLimits;
};

export type StreamLimits = {
  readonly streams: number;
  /** Of one API key. */
  readonly streamsPerKey: number;
  /** Bytes that may wait for one slow reader. */
  readonly streamBuffer: number;
  readonly heartbeatMs: number;
};

/** `live` once it has all that was; until then `waits` counts heartbeats in which its reader took nothing. */
type Stream = {
  readonly res: ServerResponse;
  readonly principal: Principal;
  readonly key: string;
  live: boolean;
  waits: number;
};

const RETRY_MS = 5_000;
const MAX_WAITS = 4;
/** Changes read from the store at once for a client that resumes. */
const PAGE = 200;

export function createStreams({ book, changesAfter, stillAllowed, limits }: StreamOptions): Streams {
  const streams = new Set<Stream>();

  const drop = (stream: Stream): void => {
    streams.delete(stream);
    stream.res.destroy();
  };
  const send = (stream: Stream, text: string): void => {
    stream.res.write(text);
    if (stream.res.writableLength > limits.streamBuffer) drop(stream);
  };
  const broadcast = (text: string): void => {
    const allowed = new Map<string, boolean>();
    for (const stream of streams) {
      if (!isAllowed(stream, allowed)) drop(stream);
      else if (stream.live) send(stream, text);
    }
  };
  /** Asks once for each key, however many streams it has; a store that cannot say so ends the stream. */
  const isAllowed = ({ principal, key }: Stream, known: Map<string, boolean>): boolean => {
    let allowed = known.get(key);
    if (allowed === undefined) {
      try {
        allowed = stillAllowed(principal);
      } catch {
        allowed = false;
      }
      known.set(key, allowed);
    }
    return allowed;
  };

  const unsubscribe = book.subscribe((change) => broadcast(writeChange(change)));
  const heartbeat = setInterval(() => {
    broadcast(': still here\n\n');
    for (const stream of streams) if (!stream.live && ++stream.waits > MAX_WAITS) drop(stream);
  }, limits.heartbeatMs);
  heartbeat.unref();

  /** Sends what was missed, a page each time the reader has taken the one before; then the stream is live. */
  const resume = (stream: Stream, after: number): void => {
    let seen = after;
    for (;;) {
      const changes = changesAfter(seen, PAGE);
      if (changes === undefined) {
        send(stream, writeReset(book.head().revision));
        break;
      }
      const last = changes.at(-1);
      if (!last) break;
      seen = last.revision;
      if (!stream.res.write(changes.map(writeStored).join(''))) {
        stream.waits = 0;
        stream.res.once('drain', () => resumeSafely(stream, seen));
        return;
      }
    }
    stream.live = true;
  };
  const resumeSafely = (stream: Stream, after: number): void => {
    if (!streams.has(stream)) return;
    try {
      resume(stream, after);
    } catch {
      // The store is away: the client comes back and asks again.
      drop(stream);
    }
  };

  return {
    hasRoom: (principal) => {
      if (streams.size >= limits.streams) return false;
      const key = nameKey(principal);
      let own = 0;
      for (const stream of streams) if (stream.key === key) own++;
      return own < limits.streamsPerKey;
    },
    open: (res, principal, lastSeen) => {
      const stream: Stream = { res, principal, key: nameKey(principal), live: lastSeen === undefined, waits: 0 };
      streams.add(stream);
      res.once('close', () => streams.delete(stream));
      res.once('error', () => streams.delete(stream));
      // An id without data moves a client's last event id and is no event: it can resume from here.
      const start = lastSeen === undefined ? `id: ${book.head().revision}\n` : '';
      res.write(`retry: ${RETRY_MS}\n${start}\n`);
      if (lastSeen !== undefined) resumeSafely(stream, lastSeen);
    },
    count: () => streams.size,
    close: () => {
      clearInterval(heartbeat);
      unsubscribe();
      for (const { res } of streams) res.end();
      streams.clear();
    },
  };
}

function writeChange(change: Change): string {
  switch (change.kind) {
    case 'created':
    case 'updated':
      return writeStored({ ...change, data: JSON.stringify(toWire(change.route)) });
    case 'deleted':
      return writeStored({ ...change, data: JSON.stringify({ id: change.route.id }) });
    case 'reset':
      return writeReset(change.revision);
    default:
      return change satisfies never;
  }
}

function writeStored({ kind, revision, data }: StoredChange): string {
  return `event: route.${kind}\nid: ${revision}\ndata: ${data}\n\n`;
}

function writeReset(revision: number): string {
  return `event: reset\nid: ${revision}\ndata: {"revision":${revision}}\n\n`;
}
