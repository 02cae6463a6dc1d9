// Open event streams (Server-Sent Events). Every stream gets every change of the routes, after the last one that its
// client has seen. Each heartbeat carries the digest of the set, by which a client knows that it has missed nothing. A
// reader that does not keep up is dropped, not buffered for. A stream whose key was revoked ends before the next event,
// and within a second. Sidecars that are refused a stream poll instead.
import type { ServerResponse } from 'node:http';
import { toWire } from '../domain/route.ts';
import type { Random } from '../host/clock.ts';
import type { RouteEvent, SetProof } from './route-memory.ts';
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

type StreamOptions = {
  readonly routes: Pick<Routes, 'head' | 'subscribe' | 'prove'> & {
    readonly changesAfter: (revision: number, limit: number) => Promise<readonly RouteEvent[] | 'too_old'>;
  };
  readonly stillAllowed: (principal: Principal) => Promise<boolean>;
  readonly random: Random;
  readonly limits: StreamLimits;
};

export type StreamLimits = {
  readonly streams: number;
  /** Of one API key. */
  readonly streamsPerKey: number;
  /** Bytes that may wait for one slow reader. */
  readonly streamBuffer: number;
  readonly heartbeatMs: number;
  /** How often it is asked whether the keys of open streams still hold. */
  readonly keysMs: number;
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

/** What leaves in order: a change for all, or the head for those who have the set it speaks of. */
type Told =
  | { readonly kind: 'change'; readonly change: RouteEvent }
  | { readonly kind: 'head'; readonly proof: SetProof; readonly to: Stream | undefined };

/** Readers come back after a time that is drawn for each: after a restart not all at once. */
const RETRY_MS = { least: 1_000, most: 10_000 };
const MAX_WAITS = 4;
/** Changes read from the store at once for a client that resumes. */
const PAGE = 200;

export function createStreams({ routes, stillAllowed, random, limits }: StreamOptions): Streams {
  const streams = new Set<Stream>();
  /** They run while there is a stream. */
  let timers: readonly NodeJS.Timeout[] = [];
  const stopTimers = (): void => {
    for (const timer of timers) clearInterval(timer);
    timers = [];
  };
  const forget = (stream: Stream): void => {
    streams.delete(stream);
    if (streams.size === 0) stopTimers();
  };
  const drop = (stream: Stream): void => {
    forget(stream);
    stream.res.destroy();
  };
  const send = (stream: Stream, text: string): void => {
    stream.res.write(text);
    if (stream.res.writableLength > limits.streamBuffer) drop(stream);
  };
  const queue = createTeller(streams, { stillAllowed, send, drop });
  const tellHead = (to?: Stream): void => {
    // One that cannot be told now is told with the next heartbeat.
    void routes.prove().then(
      (proof) => queue({ kind: 'head', proof, to }),
      () => undefined,
    );
  };
  /** A stream on which nothing is told ends soon as well; if the store cannot say it now, the next event asks again. */
  const dropRevoked = async (): Promise<void> => {
    const allowed = await askWhoMay(streams, stillAllowed, true);
    for (const stream of streams) if (allowed.get(stream.key) === false) drop(stream);
  };

  const unsubscribe = routes.subscribe((change) => queue({ kind: 'change', change }));
  const beat = (): void => {
    tellHead();
    for (const stream of streams) if (!stream.live && ++stream.waits > MAX_WAITS) drop(stream);
  };
  const startTimers = (): void => {
    const heartbeat = setInterval(beat, limits.heartbeatMs);
    const keys = setInterval(() => void dropRevoked(), limits.keysMs);
    timers = [heartbeat.unref(), keys.unref()];
  };

  /** Sends what was missed, a page each time the reader has taken the one before; then the stream is live. */
  const resume = async (stream: Stream): Promise<void> => {
    for (;;) {
      // A client that has everything needs no read of the store.
      const isBehind = stream.seen !== routes.head().revision;
      const changes = isBehind ? await routes.changesAfter(stream.seen, PAGE) : [];
      if (!streams.has(stream)) return;
      const { revision } = routes.head();
      if (changes === 'too_old') {
        stream.seen = revision;
        send(stream, writeReset(revision));
        break;
      }
      // A change that is written and not in force here yet is told later.
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
    // A client that comes back is told at once whether it has everything.
    tellHead(stream);
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
      if (streams.size === 0) startTimers();
      streams.add(stream);
      res.once('close', () => forget(stream));
      res.once('error', () => forget(stream));
      // An id without data moves a client's last event id and is no event: it can resume from here.
      const start = lastSeen === undefined ? `id: ${routes.head().revision}\n` : '';
      res.write(`retry: ${drawRetryMs(random)}\n${start}\n`);
      if (lastSeen !== undefined) void resumeSafely(stream);
    },
    count: () => streams.size,
    close: () => {
      stopTimers();
      unsubscribe();
      for (const { res } of streams) res.end();
      streams.clear();
    },
  };
}

type TellerDeps = Pick<StreamOptions, 'stillAllowed'> & {
  readonly send: (stream: Stream, text: string) => void;
  readonly drop: (stream: Stream) => void;
};

/** Tells what it is given in order, all that waits at a time, each time after it was asked who still may listen. */
function createTeller(streams: ReadonlySet<Stream>, { stillAllowed, send, drop }: TellerDeps): (told: Told) => void {
  let waiting: Told[] = [];
  let telling = false;
  const tell = async (): Promise<void> => {
    while (waiting.length > 0) {
      const told = waiting.map((each) => ({ ...each, text: writeTold(each) }));
      waiting = [];
      // A store that cannot say so ends the stream.
      const allowed = await askWhoMay(streams, stillAllowed, false);
      for (const stream of streams) {
        // One that came meanwhile was let in just now.
        if (allowed.get(stream.key) === false) drop(stream);
        else if (stream.live) {
          const text = told.map((each) => (isFor(stream, each) ? each.text : '')).join('');
          if (text !== '') send(stream, text);
        }
      }
    }
    telling = false;
  };
  return (told) => {
    waiting.push(told);
    if (telling) return;
    telling = true;
    void tell();
  };
}

/** Asks once for each key, however many streams it has; `otherwise` if the store cannot say it. */
async function askWhoMay(
  streams: ReadonlySet<Stream>,
  stillAllowed: StreamOptions['stillAllowed'],
  otherwise: boolean,
): Promise<ReadonlyMap<string, boolean>> {
  const principals = new Map([...streams].map(({ key, principal }) => [key, principal]));
  const asked = [...principals].map(async ([key, principal]): Promise<[string, boolean]> => [
    key,
    await stillAllowed(principal).catch(() => otherwise),
  ]);
  return new Map(await Promise.all(asked));
}

function isFor(stream: Stream, told: Told): boolean {
  if (told.kind === 'head') return (told.to === undefined || told.to === stream) && told.proof.revision === stream.seen;
  const { change } = told;
  if (change.kind !== 'reset' && change.revision <= stream.seen) return false;
  stream.seen = change.revision;
  return true;
}

function drawRetryMs(random: Random): number {
  return RETRY_MS.least + (random(4).readUInt32BE(0) % (RETRY_MS.most - RETRY_MS.least + 1));
}

function writeTold(told: Told): string {
  return told.kind === 'change' ? writeChange(told.change) : writeHead(told.proof);
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

function writeHead({ revision, routes, digest }: SetProof): string {
  return `event: head\nid: ${revision}\ndata: ${JSON.stringify({ revision, routes, digest })}\n\n`;
}
