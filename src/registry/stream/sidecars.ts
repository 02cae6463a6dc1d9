// Knows the connected sidecars: those that hold an event stream or asked for the routes within the last minute. A
// sidecar says by its User-Agent that it is one. An id that it draws at its start says which one. Counted, never
// believed.
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';

/** A sidecar as its last request shows it. */
export type SidecarContact = {
  readonly version: string | null;
  readonly address: string | null;
  /** Milliseconds since it was here; 0 while it holds a stream. */
  readonly agoMs: number;
};

type SidecarRequest = { readonly headers: IncomingHttpHeaders; readonly peer: { readonly address: string } };

export type Sidecars = {
  /** Counts a sidecar that asked for the routes. */
  readonly polled: (request: SidecarRequest) => void;
  /** Counts a sidecar that holds a stream until what is returned is called. */
  readonly connected: (request: SidecarRequest) => () => void;
  readonly count: () => number;
  /** Sidecars by the ids that they drew at their starts. */
  readonly contacts: () => ReadonlyMap<string, SidecarContact>;
};

type Seen = Pick<SidecarContact, 'version' | 'address'> & { readonly at: number };

const RECENT_MS = 60_000;
/** Ids are free to make up: beyond so many the one that was seen least recently is forgotten. */
const MAX_IDS = 10_000;
const ID = /^[A-Za-z0-9_-]{8,64}$/;
const AGENT = /^tollgate\/([\x21-\x7e]{0,64})/;

export function createSidecars(monotonic: () => number): Sidecars {
  const seen = new LRUCache<string, Seen>({
    // With `max` it would take the memory of all ids at once.
    ...{ maxSize: MAX_IDS, sizeCalculation: () => 1 },
    ...{ ttl: RECENT_MS, ttlResolution: 0, perf: { now: monotonic } },
  });
  const streams = new Map<string, { count: number; readonly by: Seen }>();

  const read = ({ headers, peer }: SidecarRequest): { readonly id: string; readonly by: Seen } | undefined => {
    const id = headers['tollgate-instance'];
    const agent = AGENT.exec(headers['user-agent'] ?? '');
    if (agent === null || typeof id !== 'string' || !ID.test(id)) return undefined;
    return { id, by: { version: agent[1] || null, address: plainAddress(peer.address), at: monotonic() } };
  };
  const polled = (request: SidecarRequest): void => {
    const sidecar = read(request);
    if (sidecar !== undefined) seen.set(sidecar.id, sidecar.by);
  };
  const contacts = (): ReadonlyMap<string, SidecarContact> => {
    seen.purgeStale();
    const now = monotonic();
    const polls = [...seen.entries()].map(([id, { at, ...by }]) => [id, { ...by, agoMs: now - at }] as const);
    const held = [...streams].map(([id, { by }]) => {
      return [id, { version: by.version, address: by.address, agoMs: 0 }] as const;
    });
    return new Map([...polls, ...held]);
  };
  return {
    polled,
    connected: (request) => {
      const sidecar = read(request);
      if (sidecar === undefined) return () => undefined;
      const { id, by } = sidecar;
      const held = streams.get(id);
      if (held === undefined) streams.set(id, { count: 1, by });
      else held.count += 1;
      return () => {
        const stream = streams.get(id);
        if (stream !== undefined && --stream.count === 0) streams.delete(id);
        seen.set(id, { ...by, at: monotonic() });
      };
    },
    count: () => contacts().size,
    contacts,
  };
}

/** The address of a peer without the form that an IPv6 socket gives to IPv4; null if it has none. */
export function plainAddress(address: string): string | null {
  return address.replace(/^::ffff:(?=\d+\.)/i, '') || null;
}
