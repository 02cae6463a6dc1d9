// Streams of charges (Server-Sent Events): each change of state as it happens, whichever process on this store made it.
// The store numbers changes while somebody watches; they are read here a few times a second, once for all streams, and told
// to each by its filter, no more than 50 of one second. A client that comes back is told what it missed.
import type { ServerResponse } from 'node:http';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import { describePrincipal, type Principal } from '../auth/credentials.ts';
import type { AccessCheck } from '../stream/event-stream.ts';
import { createChangeOrder } from './change-order.ts';
import { createChargeTeller, SECOND_MS, writeEvent, type AskedStream, type OpenChargeStream } from './charge-teller.ts';
import type { NamedNetworks } from './charge-view.ts';

export type ChargeStreams = {
  /** Whether one more stream may be opened, by anyone and by this one. */
  readonly hasRoom: (principal: Principal) => boolean;
  /** Has the store tell its changes; rejects if it cannot. To be awaited before `open`. */
  readonly watch: () => Promise<void>;
  readonly open: (res: ServerResponse, asked: AskedStream) => void;
  readonly count: () => number;
  readonly close: () => void;
};

type ChargeStreamOptions = {
  readonly ledger: (Pick<ChargeReports, 'watchChanges' | 'changesAfter' | 'get'> & { now: () => number }) | undefined;
  readonly networks: NamedNetworks;
  readonly stillAllowed: AccessCheck;
  readonly limits?: Partial<ChargeStreamLimits>;
};

export type ChargeStreamLimits = {
  readonly streams: number;
  readonly streamsPerSubject: number;
  /** Changes of one second that one stream is told. */
  readonly perSecond: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly keysMs: number;
  /** Pause between two calls that keep the store telling. */
  readonly watchMs: number;
  /** Longest wait for a number that is missing. */
  readonly missingMs: number;
  /** Bytes that may wait for one slow reader. */
  readonly buffer: number;
};

const LIMITS: ChargeStreamLimits = {
  ...{ streams: 100, streamsPerSubject: 10, perSecond: 50, buffer: 1024 * 1024 },
  ...{ heartbeatMs: 15_000, pollMs: 200, keysMs: 1_000, watchMs: 60_000, missingMs: 2_000 },
};
const PAGE = 500;
const RETRY_MS = 2_000;

export function createChargeStreams(options: ChargeStreamOptions): ChargeStreams {
  const { ledger, networks, stillAllowed } = options;
  const limits = { ...LIMITS, ...options.limits };
  const streams = new Set<OpenChargeStream>();
  let log = { after: 0, last: 0 };
  let timers: readonly NodeJS.Timeout[] = [];
  let reading = false;
  const inOrder = createChangeOrder(limits.missingMs);

  const forget = (stream: OpenChargeStream): void => {
    streams.delete(stream);
    if (streams.size > 0) return;
    for (const timer of timers) clearInterval(timer);
    timers = [];
  };
  const send = (stream: OpenChargeStream, text: string): void => {
    stream.res.write(text);
    if (stream.res.writableLength <= limits.buffer) return;
    forget(stream);
    stream.res.destroy();
  };
  const { tell, tellSkipped } = createChargeTeller({ streams, networks, perSecond: limits.perSecond, send });
  const watch = async (): Promise<void> => {
    if (ledger !== undefined) log = await ledger.watchChanges();
  };
  const dropOthers = async (): Promise<void> => {
    for (const stream of streams) {
      if (await stillAllowed(stream.principal).catch(() => true)) continue;
      forget(stream);
      stream.res.end();
    }
  };

  const read = async (): Promise<void> => {
    for (;;) {
      const first = Math.min(...[...streams].map(({ seen }) => seen));
      if (ledger === undefined || streams.size === 0) return;
      const page = inOrder(await ledger.changesAfter(first, PAGE), first);
      if (page.length > 0) await dropOthers();
      await tell(page, ledger);
      const at = Math.floor(ledger.now() / SECOND_MS);
      for (const stream of streams) if (stream.second < at) tellSkipped(stream);
      if (page.length < PAGE) return;
    }
  };
  const poll = (): void => {
    if (reading) return;
    reading = true;
    // A store that is away is told of by what needs it; the next look finds what was missed.
    void read()
      .catch(() => undefined)
      .finally(() => (reading = false));
  };
  const startTimers = (): void => {
    timers = [
      setInterval(poll, limits.pollMs),
      setInterval(() => void watch().catch(() => undefined), limits.watchMs),
      setInterval(() => void dropOthers(), limits.keysMs),
      setInterval(() => {
        for (const stream of streams) send(stream, ': heartbeat\n\n');
      }, limits.heartbeatMs),
    ];
    for (const timer of timers) timer.unref();
  };

  return {
    hasRoom: (principal) => {
      const key = describePrincipal(principal);
      const own = [...streams].filter((stream) => stream.key === key).length;
      return streams.size < limits.streams && own < limits.streamsPerSubject;
    },
    watch,
    open: (res, asked) => {
      const { lastSeen } = asked;
      const resumes = lastSeen !== undefined && lastSeen >= log.after && lastSeen <= log.last;
      const stream: OpenChargeStream = {
        ...{ ...asked, res, key: describePrincipal(asked.principal), seen: resumes ? lastSeen : log.last },
        ...{ second: 0, told: 0, skipped: 0 },
      };
      if (streams.size === 0) startTimers();
      streams.add(stream);
      res.once('close', () => forget(stream));
      res.once('error', () => forget(stream));
      // An id without data moves a client's last event id and is no event: it can resume from here.
      res.write(`retry: ${RETRY_MS}\nid: ${stream.seen}\n\n`);
      if (lastSeen !== undefined && !resumes) res.write(writeEvent('reset', stream.seen, {}));
      poll();
    },
    count: () => streams.size,
    close: () => {
      for (const stream of [...streams]) {
        forget(stream);
        stream.res.end();
      }
    },
  };
}
