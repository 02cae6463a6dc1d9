// Meters a request that a pass by credit pays: its price is reserved, and what its response says is taken. A header says it
// with the head; a trailer and the body say it when the response is whole, so the reservation lasts until then, and nothing
// is held back. A response that breaks off, or whose client leaves before its end, has not said it.
import type { Offer } from '../../domain/payment/offer.ts';
import {
  CHARGE_AMOUNT,
  meteredAmount,
  type Meter,
  type MeteredAmount,
  type MeterReading,
} from '../../domain/selling/meter/meter.ts';
import { readUsage, valuesOf, type UsageReader } from '../../domain/selling/meter/usage.ts';
import type { Log } from '../../host/log.ts';
import type { End, ResponseHearer, SeenResponseHead } from '../outcome.ts';

/** One metered request. Amounts are in the unit of the books of credit, 10^-18 of the currency. */
export type MeteredUse = {
  readonly hearer: ResponseHearer;
  /** Hears the head of a response that is charged for. What is to be taken now; undefined: the end says it. */
  readonly atHead: (head: SeenResponseHead) => bigint | undefined;
  /** What is to be taken at the end of a response whose head did not say it. */
  readonly atEnd: (end: End) => bigint;
};

export type MeterRequests = (
  meter: Meter,
  request: { readonly offer: Offer; readonly planId: string; readonly requestId: string },
) => MeteredUse;

type MeteringDeps = {
  readonly metrics: { readonly meter: (result: MeteredAmount['result']) => void };
  readonly log: Log;
};

/** Decimals of a currency in the books of credit. */
const CREDIT_SCALE = 18;

export function createMetering({ metrics, log }: MeteringDeps): MeterRequests {
  return (meter, { offer, planId, requestId }) => {
    const decimals = Math.min(CREDIT_SCALE, Math.max(...offer.ways.map(({ way }) => way.decimals)));
    const { units, scale } = offer.price;
    const most = units * 10n ** BigInt(decimals - Math.min(decimals, scale));
    const ear = hear(meter);
    const measure = (reading: Parameters<typeof meteredAmount>[1]): bigint => {
      const { result, amount, because } = meteredAmount(meter, reading, { most, decimals });
      metrics.meter(result);
      const about = { request_id: requestId, route_id: offer.route.id, plan: planId };
      if (result === 'over') log.warn('a response costs more than its price, which was taken', about);
      if (result === 'missing')
        log.warn('a response did not say what it costs', { ...about, because, taken: meter.missing });
      return amount * 10n ** BigInt(CREDIT_SCALE - decimals);
    };
    return {
      hearer: ear,
      atHead: (head) => {
        ear.head(head);
        return meter.source.kind === 'header' ? measure(ear.reading()) : undefined;
      },
      atEnd: (end) => measure(end.kind === 'client_gone' ? { kind: 'client_left' } : ear.reading()),
    };
  };
}

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
