// Counts the connected sidecars: those that hold an event stream or asked for the routes within the last minute. A
// sidecar says by its User-Agent that it is one. An id that it draws at its start says which one. Counted, never
// believed.
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';

export type Sidecars = {
  /** Counts a sidecar that asked for the routes. */
  readonly polled: (headers: IncomingHttpHeaders) => void;
  /** Counts a sidecar that holds a stream until what is returned is called. */
  readonly connected: (headers: IncomingHttpHeaders) => () => void;
  readonly count: () => number;
  /** Ids that they drew at their starts. */
  readonly ids: () => ReadonlySet<string>;
};

const RECENT_MS = 60_000;
/** Ids are free to make up: beyond so many the one that was seen least recently is forgotten. */
const MAX_IDS = 10_000;
const ID = /^[A-Za-z0-9_-]{8,64}$/;

export function createSidecars(monotonic: () => number): Sidecars {
  const seen = new LRUCache<string, true>({ max: MAX_IDS, ttl: RECENT_MS, ttlResolution: 0, perf: { now: monotonic } });
  const streams = new Map<string, number>();

  const polled = (headers: IncomingHttpHeaders): void => {
    const id = instanceOf(headers);
    if (id !== undefined) seen.set(id, true);
  };
  const ids = (): ReadonlySet<string> => {
    seen.purgeStale();
    return new Set([...streams.keys(), ...seen.keys()]);
  };
  return {
    polled,
    connected: (headers) => {
      const id = instanceOf(headers);
      if (id === undefined) return () => undefined;
      streams.set(id, (streams.get(id) ?? 0) + 1);
      return () => {
        const left = (streams.get(id) ?? 1) - 1;
        if (left > 0) streams.set(id, left);
        else streams.delete(id);
        polled(headers);
      };
    },
    count: () => ids().size,
    ids,
  };
}

function instanceOf(headers: IncomingHttpHeaders): string | undefined {
  const id = headers['tollgate-instance'];
  const isOurs = headers['user-agent']?.startsWith('tollgate/') === true;
  return isOurs && typeof id === 'string' && ID.test(id) ? id : undefined;
}
