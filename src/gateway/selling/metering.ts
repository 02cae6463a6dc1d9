// Meters a request that a pass by credit pays: its price is reserved, and what its response says is taken. A header says it
// with the head; a trailer and the body say it when the response is whole, so the reservation lasts until then, and nothing
// is held back. A response that breaks off, or whose client leaves before its end, has not said it.
import type { Price } from '../../domain/payment/money.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import {
  CHARGE_AMOUNT,
  meteredAmount,
  type Meter,
  type MeteredAmount,
  type MeterReading,
} from '../../domain/selling/meter/meter.ts';
import { readUsage, valuesOf, type UsageReader } from '../../domain/selling/meter/usage.ts';
import { CREDIT_SCALE } from '../../domain/selling/pass-book.ts';
import type { Log } from '../../host/log.ts';
import type { End, ResponseHearer, SeenResponseHead } from '../outcome.ts';

/** One metered request. Amounts are in the unit of the books of credit, 10^-18 of the currency. */
export type MeteredUse = {
  readonly hearer: ResponseHearer;
  /** Hears the head of a response that is charged for. True: it says what is taken, else the end does. */
  readonly head: (head: SeenResponseHead) => boolean;
  /** What is to be taken. `end`: the response's; left out if its head says it. */
  readonly amount: (limit: PriceLimit, end?: End) => bigint;
};

/** The most that a request takes, and the decimals of the asset, to which what it takes is rounded down. */
export type PriceLimit = { readonly price: Price; readonly decimals: number };

/** The limit of a request that is offered at a price: the finest asset that it may be paid in says what is rounded. */
export function limitOf({ price, ways }: Offer): PriceLimit {
  return { price, decimals: Math.max(...ways.map(({ way }) => way.decimals)) };
}

/** A request as the log names it. */
type MeteredRequest = { readonly routeId: string; readonly planId: string; readonly requestId: string };

export type MeterRequests = (meter: Meter, request: MeteredRequest) => MeteredUse;

type MeteringDeps = {
  readonly metrics: { readonly meter: (result: MeteredAmount['result']) => void };
  readonly log: Log;
};

export function createMetering({ metrics, log }: MeteringDeps): MeterRequests {
  return (meter, { routeId, planId, requestId }) => {
    const ear = hear(meter);
    const about = { request_id: requestId, route_id: routeId, plan: planId };
    return {
      hearer: ear,
      head: (head) => {
        ear.head(head);
        return meter.source.kind === 'header';
      },
      amount: ({ price: { units, scale }, decimals: given }, end) => {
        // A price is never finer than its asset, nor than the books.
        const decimals = Math.min(CREDIT_SCALE, Math.max(given, scale));
        const most = units * 10n ** BigInt(decimals - scale);
        const said = ear.reading();
        // What was said before the client left stands.
        const isUnheard = said.kind === 'absent' && end?.kind === 'client_gone' && meter.source.kind !== 'header';
        const reading = isUnheard ? CLIENT_LEFT : said;
        const { result, amount, because } = meteredAmount(meter, reading, { most, decimals });
        metrics.meter(result);
        if (result === 'over') log.warn('a response costs more than its price, which was taken', about);
        if (result === 'missing')
          log.warn('a response did not say what it costs', { ...about, because, taken: meter.missing });
        return amount * 10n ** BigInt(CREDIT_SCALE - decimals);
      },
    };
  };
}

const CLIENT_LEFT = { kind: 'client_left' } as const;

type Ear = ResponseHearer & {
  /** Hears the head of the response, before its body. */
  readonly head: (head: SeenResponseHead) => void;
  /** What the response said: nothing before it is whole, but in its head. */
  readonly reading: () => MeterReading;
};

const ABSENT: MeterReading = { kind: 'absent' };
const nothing = (): void => undefined;

function hear({ source }: Meter): Ear {
  let said: MeterReading = ABSENT;
  const reading = (): MeterReading => said;
  switch (source.kind) {
    case 'header':
      return {
        ...{ needs: 'nothing', data: nothing, end: nothing, reading },
        head: ({ headers }) => void (said = amountIn(headers)),
      };
    case 'trailer':
      return {
        ...{ needs: 'trailers', head: nothing, data: nothing, reading },
        end: (trailers) => void (said = amountIn(trailers)),
      };
    case 'usage': {
      let reader: UsageReader | undefined;
      return {
        ...{ needs: 'whole body', reading },
        head: ({ headers }) => void (reader = readUsage(source, headers)),
        data: (chunk) => reader?.push(chunk),
        end: () => void (said = reader?.end() ?? ABSENT),
      };
    }
    default:
      return source satisfies never;
  }
}

/** The one amount that headers or trailers name. */
function amountIn(fields: readonly string[]): MeterReading {
  const [text, ...others] = valuesOf(fields, CHARGE_AMOUNT);
  if (text === undefined) return ABSENT;
  return others.length > 0 ? { kind: 'twice' } : { kind: 'read', text };
}
