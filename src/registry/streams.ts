// Open event streams (Server-Sent Events): every change of the routes to every stream, resuming after what a client has
// seen. A reader that does not keep up is dropped and not buffered for; a stream whose key was revoked ends before the
// next event. Sidecars that are refused or dropped poll instead.
import type { ServerResponse } from 'node:http';
import { toWire } from '../domain/route.ts';
import type { RouteEvent } from './route-memory.ts';
import type { Routes } from './routes.ts';
import { nameKey, type Principal } from './credentials.ts';

export type Streams = {
  /** Whether one more stream may be opened, by anyone and by this one. */
  readonly hasRoom: (principal: Principal) => boolean;
  /** `lastSeen` is the revision that the client names, or undefined if it names none: then only news are sent. */
  readonly open: (res: ServerResponse, principal: Principal, lastSeen: number | undefined) => void;
  readonly count: () => number;
  readonly close: () => void;
};

export type StreamOptions = {
  readonly routes: Pick<Routes, 'head' | 'subscribe' | 'changesAfter'>;
  readonly stillAllowed: (principal: Principal) => Promise<boolean>;
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

/** `live` once it has all that was; until then `waits` counts heartbeats in which its reader took nothing. `seen`: its revision. */
type Stream = {
  readonly res: ServerResponse;
  readonly principal: Principal;
  readonly key: string;
  live: boolean;
  seen: number;
  waits: number;
};

const RETRY_MS = 5_000;
const MAX_WAITS = 4;
/** Changes read from the store at once for a client that resumes. */
const PAGE = 200;

export function createStreams({ routes, stillAllowed, limits }: StreamOptions): Streams {
  const streams = new Set<Stream>();

  const drop = (stream: Stream): void => {
    streams.delete(stream);
    stream.res.destroy();
  };
  const send = (stream: Stream, text: string): void => {
    stream.res.write(text);
    if (stream.res.writableLength > limits.streamBuffer) drop(stream);
  };
  let broadcasting: Promise<void> = Promise.resolve();
  /** One after the other, each after it was asked who still may listen. `change` undefined: a sign of life. */
  const broadcast = (change: RouteEvent | undefined): void => {
    const text = change === undefined ? ': still here\n\n' : writeChange(change);
    broadcasting = broadcasting.then(async () => {
      const allowed = await askWhoMay();
      for (const stream of streams) {
        const may = allowed.get(stream.key);
        // One that came meanwhile was let in just now.
        if (may === false) drop(stream);
        else if (stream.live && isNews(stream, change)) send(stream, text);
      }
    });
  };
  const isNews = (stream: Stream, change: RouteEvent | undefined): boolean => {
    if (change === undefined) return true;
    if (change.kind !== 'reset' && change.revision <= stream.seen) return false;
    stream.seen = change.revision;
    return true;
  };
  /** Asks once for each key, however many streams it has; a store that cannot say so ends the stream. */
  const askWhoMay = async (): Promise<ReadonlyMap<string, boolean>> => {
    const principals = new Map([...streams].map(({ key, principal }) => [key, principal]));
    const asked = [...principals].map(async ([key, principal]): Promise<[string, boolean]> => [
      key,
      await stillAllowed(principal).catch(() => false),
    ]);
    return new Map(await Promise.all(asked));
  };

  const unsubscribe = routes.subscribe(broadcast);
  const heartbeat = setInterval(() => {
    broadcast(undefined);
    for (const stream of streams) if (!stream.live && ++stream.waits > MAX_WAITS) drop(stream);
  }, limits.heartbeatMs);
  heartbeat.unref();

  /** Sends what was missed, a page each time the reader has taken the one before; then the stream is live. */
  const resume = async (stream: Stream): Promise<void> => {
    for (;;) {
      const changes = await routes.changesAfter(stream.seen, PAGE);
      if (!streams.has(stream)) return;
      const { revision } = routes.head();
      if (changes === 'too_old') {
        stream.seen = revision;
        send(stream, writeReset(revision));
        break;
      }
      // What is written and not in force here yet is told with the others.
      const told = changes.filter((change) => change.revision <= revision);
      const last = told.at(-1);
      if (last === undefined) {
        if (revision <= stream.seen) break;
        continue;
      }
      stream.seen = last.revision;
      if (!stream.res.write(told.map(writeChange).join(''))) {
        stream.waits = 0;
        stream.res.once('drain', () => void resumeSafely(stream));
        return;
      }
    }
    stream.live = true;
  };
  const resumeSafely = async (stream: Stream): Promise<void> => {
    if (!streams.has(stream)) return;
    try {
      await resume(stream);
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
      const seen = lastSeen ?? routes.head().revision;
      const stream: Stream = { res, principal, key: nameKey(principal), live: lastSeen === undefined, seen, waits: 0 };
      streams.add(stream);
      res.once('close', () => streams.delete(stream));
      res.once('error', () => streams.delete(stream));
      // An id without data moves a client's last event id and is no event: it can resume from here.
      const start = lastSeen === undefined ? `id: ${routes.head().revision}\n` : '';
      res.write(`retry: ${RETRY_MS}\n${start}\n`);
      if (lastSeen !== undefined) void resumeSafely(stream);
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

function writeChange(change: RouteEvent): string {
  switch (change.kind) {
    case 'created':
    case 'updated':
      return writeEvent(change, toWire(change.route));
    case 'deleted':
      return writeEvent(change, { id: change.route.id });
    case 'reset':
      return writeReset(change.revision);
    default:
      return change satisfies never;
  }
}

function writeEvent({ kind, revision }: Pick<RouteEvent, 'kind' | 'revision'>, data: object): string {
  return `event: route.${kind}\nid: ${revision}\ndata: ${JSON.stringify(data)}\n\n`;
}

function writeReset(revision: number): string {
  return `event: reset\nid: ${revision}\ndata: {"revision":${revision}}\n\n`;
}
