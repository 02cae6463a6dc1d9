// Tells open streams of charges what has changed: each what fits its filter, as the charge stood then, and of one second no
// more than so many; the others are counted.
import type { ServerResponse } from 'node:http';
import type { ChargeState } from '../../domain/payment/charge.ts';
import type { ChargeChange, ChargeReports, ListedCharge } from '../../domain/payment/reports.ts';
import type { Principal } from '../auth/credentials.ts';
import { viewCharge, type NamedNetworks } from './charge-view.ts';

export type AskedStream = {
  readonly principal: Principal;
  readonly states: readonly ChargeState[] | undefined;
  readonly routeId: string | undefined;
  /** The number of the last change that the client has seen; undefined: it wants news alone. */
  readonly lastSeen: number | undefined;
};

export type OpenChargeStream = AskedStream & {
  readonly res: ServerResponse;
  readonly key: string;
  /** The number of the last change that was told or skipped. */
  seen: number;
  /** The second whose changes are counted. */
  second: number;
  told: number;
  skipped: number;
};

type TellerOptions = {
  readonly streams: ReadonlySet<OpenChargeStream>;
  readonly networks: NamedNetworks;
  /** Changes of one second that one stream is told. */
  readonly perSecond: number;
  readonly send: (stream: OpenChargeStream, text: string) => void;
};

type ChargeTeller = {
  /** Tells changes in order; a stream gets those behind what it has seen. */
  readonly tell: (changes: readonly ChargeChange[], from: Pick<ChargeReports, 'get'>) => Promise<void>;
  /** Tells how many changes of a second that is over were not told. */
  readonly tellSkipped: (stream: OpenChargeStream) => void;
};

export const SECOND_MS = 1000;

export function createChargeTeller({ streams, networks, perSecond, send }: TellerOptions): ChargeTeller {
  const tellSkipped = (stream: OpenChargeStream): void => {
    if (stream.skipped > 0) send(stream, writeEvent('skipped', stream.seen, { count: stream.skipped }));
    stream.skipped = 0;
  };
  /** Whether a change is one too many of its second; a new second tells first how many of the last were. */
  const isOver = (stream: OpenChargeStream, at: number): boolean => {
    const second = Math.floor(at / SECOND_MS);
    if (second !== stream.second) {
      tellSkipped(stream);
      [stream.second, stream.told] = [second, 0];
    }
    stream.told += 1;
    return stream.told > perSecond;
  };
  const tell: ChargeTeller['tell'] = async (changes, from) => {
    const charges = new Map<string, ListedCharge | undefined>();
    for (const change of changes) {
      const { n, id, state, at } = change;
      for (const stream of streams) {
        if (n <= stream.seen) continue;
        if (!takes(stream, change)) stream.seen = n;
        else if (isOver(stream, at)) [stream.seen, stream.skipped] = [n, stream.skipped + 1];
        else {
          if (!charges.has(id)) charges.set(id, await from.get(id));
          const charge = charges.get(id);
          stream.seen = n;
          if (charge !== undefined && streams.has(stream))
            send(stream, writeEvent('charge', n, viewCharge(asOf(charge, state, at), networks)));
        }
      }
    }
  };
  return { tell, tellSkipped };
}

function takes({ states, routeId }: AskedStream, change: ChargeChange): boolean {
  return (routeId === undefined || routeId === change.routeId) && states?.includes(change.state) !== false;
}

/** A charge as it stood when it came into this state: what followed since is not told yet. */
function asOf(charge: ListedCharge, state: ChargeState, at: number): ListedCharge {
  if (charge.state === state) return charge;
  const isPaid = state === 'settled' || state === 'delivered';
  return {
    ...{ ...charge, state, updatedAt: at, owed: null, retryUntil: null },
    ...(isPaid ? {} : { proof: null, settledAt: null }),
    ...(state === 'delivered' ? {} : { deliveredAt: null, partial: false }),
    failedBy: null,
  };
}

export function writeEvent(event: string, id: number, data: object): string {
  return `event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}
