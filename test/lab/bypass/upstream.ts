// What the suite puts behind the proxy. An upstream counts by itself how often a protected handler ran: nothing is
// concluded from answers. One that needs a program that is not installed is skipped by name, with the command that brings it.
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ProfileName } from '../../../src/domain/routing/profile.ts';

export type Running = {
  readonly port: number;
  /** Executions of protected handlers since the start. */
  readonly executions: () => number;
  /** Requests that arrived; undefined where the upstream cannot tell. */
  readonly seen?: () => number;
  /** Open connections; undefined where the upstream cannot tell. */
  readonly connections?: () => Promise<number>;
  readonly close: () => Promise<void>;
};

export type UpstreamSpec = {
  readonly name: string;
  /** The profile that is promised for these settings; none for settings looser than the defaults. */
  readonly profile?: ProfileName;
  /** Where a program is missing: how to get it. Undefined: it can be started. */
  readonly missing?: () => string | undefined;
  readonly start: () => Promise<Running>;
};

/** The counters of an upstream that runs in this process. */
export type Hits = {
  executions: number;
  seen: number;
};

export function createHits(): Hits {
  return { executions: 0, seen: 0 };
}

/** Counts what arrives at `server` and binds it to a free port. */
export async function listening(hits: Hits, server: Server, stop?: () => Promise<unknown>): Promise<Running> {
  server.prependListener('request', () => void hits.seen++);
  if (!server.listening) await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    executions: () => hits.executions,
    seen: () => hits.seen,
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
    close: async () => {
      server.closeAllConnections();
      if (stop !== undefined) await stop();
      else await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

/** An upstream that is one request listener, as most frameworks can be had. */
export function fromListener(
  name: string,
  profile: ProfileName | undefined,
  make: (protectedHandler: () => string, hits: Hits) => RequestListener | Promise<RequestListener>,
): UpstreamSpec {
  return {
    name,
    ...(profile === undefined ? {} : { profile }),
    start: async () => {
      const hits = createHits();
      const ran = (): string => {
        hits.executions++;
        return 'paid for';
      };
      return listening(hits, createServer(await make(ran, hits)));
    },
  };
}
