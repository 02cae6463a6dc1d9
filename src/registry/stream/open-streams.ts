// Open event streams (Server-Sent Events). Every stream gets every change of the routes, after the last one that its
// client has seen. Each heartbeat carries the digest of the set, by which a client knows that it has missed nothing. A
// reader that does not keep up is dropped, not buffered for. A stream whose key was revoked ends before the next event,
// and within a second. Sidecars that are refused a stream poll instead.
import type { ServerResponse } from 'node:http';
import type { Random } from '../../host/clock.ts';
import { nameKey, type Principal } from '../auth/credentials.ts';
import { askWhoMay, type EventStream, type AccessCheck } from './event-stream.ts';
import { createResumeQueue } from './resume-queue.ts';
import type { RouteEvent } from '../routes/route-index.ts';
import type { Routes } from '../routes/registry-routes.ts';
import { createBroadcast } from './broadcast.ts';

export type Streams = {
  /** Whether one more stream may be opened, by anyone and by this one. */
  readonly hasRoom: (principal: Principal) => boolean;
  /** Opens a stream. `lastSeen` is the revision that the client names; undefined: only news are sent. */
  readonly open: (res: ServerResponse, principal: Principal, lastSeen: number | undefined) => void;
  readonly count: () => number;
  readonly close: () => void;
};

type StreamOptions = {
  readonly routes: Pick<Routes, 'head' | 'count' | 'subscribe' | 'prove'> & {
    readonly changesAfter: (revision: number, limit: number) => Promise<readonly RouteEvent[] | 'too_old'>;
  };
  readonly stillAllowed: AccessCheck;
  readonly random: Random;
  readonly limits: StreamLimits;
};

export type StreamLimits = {
  readonly streams: number;
  /** Limit of streams of one API key. */
  readonly streamsPerKey: number;
  /** Number of bytes that may wait for one slow reader. */
  readonly streamBuffer: number;
  readonly heartbeatMs: number;
  /** Milliseconds between two checks whether the keys of open streams still hold. */
  readonly keysMs: number;
};

/** Readers come back after a time that is drawn for each: after a restart not all at once. */
const RETRY_MS = { least: 1_000, most: 10_000 };
const MAX_WAITS = 4;

export function createStreams({ routes, stillAllowed, random, limits }: StreamOptions): Streams {
  const streams = new Set<EventStream>();
  /** Timers that run while there is a stream. */
  let timers: readonly NodeJS.Timeout[] = [];
  const stopTimers = (): void => {
    for (const timer of timers) clearInterval(timer);
    timers = [];
  };
  const forget = (stream: EventStream): void => {
    streams.delete(stream);
    resumes.remove(stream);
    if (streams.size === 0) stopTimers();
  };
  const drop = (stream: EventStream): void => {
    forget(stream);
    stream.res.destroy();
  };
  const send = (stream: EventStream, bytes: Buffer): void => {
    stream.res.write(bytes);
    if (stream.res.writableLength > limits.streamBuffer) drop(stream);
  };
  const broadcast = createBroadcast(streams, { stillAllowed, send, drop });
  const tellHead = (to?: EventStream): void => {
    // A proof that cannot be told now is told with the next heartbeat.
    void routes.prove().then(
      (proof) => broadcast({ kind: 'head', proof, to }),
      () => undefined,
    );
  };
  // A client that comes back is told at once whether it has everything.
  const resumes = createResumeQueue({ routes, stillAllowed, drop, onLive: tellHead });
  /** A stream on which nothing is told ends soon as well; if the store cannot say it now, the next event asks again. */
  const dropRevoked = async (): Promise<void> => {
    const allowed = await askWhoMay(streams, stillAllowed, true);
    for (const stream of streams) if (allowed.get(stream.key) === false) drop(stream);
  };

  const unsubscribe = routes.subscribe((change) => {
    if (change.kind === 'reset') {
      resumes.forget();
      for (const stream of streams) if (stream.state !== 'live') stream.isLost = true;
    }
    broadcast({ kind: 'change', change });
  });
  const beat = (): void => {
    tellHead();
    for (const stream of streams) if (stream.state === 'sending' && ++stream.waits > MAX_WAITS) drop(stream);
  };
  const startTimers = (): void => {
    const heartbeat = setInterval(beat, limits.heartbeatMs);
    const keys = setInterval(() => void dropRevoked(), limits.keysMs);
    timers = [heartbeat.unref(), keys.unref()];
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
      const stream: EventStream = {
        ...{ res, principal, key: nameKey(principal) },
        state: lastSeen === undefined ? 'live' : 'queued',
        seen: lastSeen ?? routes.head().revision,
        isLost: false,
        waits: 0,
      };
      if (streams.size === 0) startTimers();
      streams.add(stream);
      res.once('close', () => forget(stream));
      res.once('error', () => forget(stream));
      // An id without data moves a client's last event id and is no event: it can resume from here.
      const start = lastSeen === undefined ? `id: ${routes.head().revision}\n` : '';
      res.write(`retry: ${drawRetryMs(random)}\n${start}\n`);
      if (lastSeen !== undefined) resumes.add(stream);
    },
    count: () => streams.size,
    close: () => {
      stopTimers();
      unsubscribe();
      for (const stream of [...streams]) {
        forget(stream);
        stream.res.end();
      }
    },
  };
}

function drawRetryMs(random: Random): number {
  return RETRY_MS.least + (random(4).readUInt32BE(0) % (RETRY_MS.most - RETRY_MS.least + 1));
}
