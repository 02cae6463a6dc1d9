// Which sidecars are connected: those that hold an event stream or asked for the routes within the last minute. A sidecar
// says that it is one by its User-Agent, and which one by an id that it draws when it starts. Counted, never believed.
import type { IncomingHttpHeaders } from 'node:http';

export type Sidecars = {
  /** One of them asked for the routes. */
  readonly polled: (headers: IncomingHttpHeaders) => void;
  /** One of them holds a stream until what is returned is called. */
  readonly connected: (headers: IncomingHttpHeaders) => () => void;
  readonly count: () => number;
};

const RECENT_MS = 60_000;
/** Ids are free to make up: beyond so many the one that was seen first is forgotten. */
const MAX_IDS = 10_000;
const ID = /^[A-Za-z0-9_-]{8,64}$/;

export function createSidecars(monotonic: () => number): Sidecars {
  const seenAt = new Map<string, number>();
  const streams = new Map<string, number>();
  const isRecent = (id: string): boolean => monotonic() - (seenAt.get(id) ?? -Infinity) <= RECENT_MS;

  const polled = (headers: IncomingHttpHeaders): void => {
    const id = instanceOf(headers);
    if (id === undefined) return;
    seenAt.delete(id);
    seenAt.set(id, monotonic());
    const [oldest] = seenAt.keys();
    if (seenAt.size > MAX_IDS && oldest !== undefined) seenAt.delete(oldest);
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
    count: () => {
      for (const id of seenAt.keys()) if (!isRecent(id)) seenAt.delete(id);
      return new Set([...streams.keys(), ...seenAt.keys()]).size;
    },
  };
}

function instanceOf(headers: IncomingHttpHeaders): string | undefined {
  const id = headers['tollgate-instance'];
  const isOurs = headers['user-agent']?.startsWith('tollgate/') === true;
  return isOurs && typeof id === 'string' && ID.test(id) ? id : undefined;
}
