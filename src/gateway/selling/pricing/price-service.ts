// A price service of the owner's, asked for the price of a request. What it says counts within its bounds alone, and nothing
// that it says lets a request pass. Anybody may make it be asked, without paying: so equal questions share one call, answers
// are kept, and no more calls run or wait than these limits. A circuit breaker leaves it alone while it is away.
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { clip } from '../../../domain/payment/offer.ts';
import { comparePrices, parsePrice } from '../../../domain/payment/money.ts';
import type { OfferedPrice } from '../../../domain/payment/offer.ts';
import type { PriceService } from '../../../domain/selling/price.ts';
import type { Clock } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import { createSemaphore } from '../../rails/semaphore.ts';
import { callService, LATE, LOST, type Fetch, type JsonReply } from '../../rails/service-call.ts';
import { createBreaker, type Breaker } from '../../rails/x402/circuit-breaker.ts';

/** Why a price service said no price that counts. */
export type PriceFailure = 'late' | 'away' | 'out_of_bounds' | 'nonsense' | 'busy';

/** The price, or why there is none, and after how many milliseconds it is worth asking again. */
export type ServicePrice =
  | { readonly kind: 'price'; readonly offered: OfferedPrice }
  | { readonly kind: 'failed'; readonly why: PriceFailure; readonly retryAfterMs: number };

export type PriceServices = {
  /** Asks a service; `question` is the JSON that it is sent. A promise only if it has to be asked. */
  readonly ask: (service: PriceService, question: string) => ServicePrice | Promise<ServicePrice>;
};

type PriceServicesDeps = {
  readonly fetch: Fetch;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** Counts how an attempt to learn a price ended, and how many seconds it took. */
  readonly noteCall: (result: 'priced' | PriceFailure, seconds: number) => void;
};

const CALLS = 64;
const WAITING = 256;
const KEPT = 10_000;
const MAX_BYTES = 4096;
const LIMITS = { depth: 16, nodes: MAX_BYTES, string: MAX_BYTES };
const DESCRIPTION_BYTES = 256;
/** Services whose circuit breakers are remembered. */
const SERVICES = 256;
const RETRY_MS = 1000;

const answer = z.object({
  amount: z.string(),
  ttl: z.number().min(0).optional(),
  description: z.string().optional(),
});

export function createPriceServices({ fetch, clock, log, noteCall }: PriceServicesDeps): PriceServices {
  const kept = new LRUCache<string, { readonly offered: OfferedPrice; readonly until: number }>({ max: KEPT });
  const flights = new Map<string, Promise<ServicePrice>>();
  const breakers = new LRUCache<string, Breaker>({ max: SERVICES, memoMethod: () => createBreaker(clock) });
  const places = createSemaphore(CALLS, WAITING);

  const call = async (service: PriceService, question: string, name: string): Promise<ServicePrice> => {
    const since = clock.monotonic();
    const breaker = breakers.memo(service.url);
    const failed = (why: PriceFailure, detail: string): ServicePrice => {
      noteCall(why, (clock.monotonic() - since) / 1000);
      log.warn('a price service said no price', { url: new URL(service.url).origin, why, detail });
      return { kind: 'failed', why, retryAfterMs: Math.max(RETRY_MS, breaker.rest()) };
    };
    if (breaker.rest() > 0) return failed('away', 'it is left alone after calls that failed');
    const release = await places.wait(AbortSignal.timeout(service.timeoutMs));
    if (release === undefined) return failed('busy', 'too many questions wait for an answer');
    const ended = breaker.admit('verify');
    if (ended === undefined) {
      release();
      return failed('away', 'it is left alone after calls that failed');
    }
    const leftMs = service.timeoutMs - (clock.monotonic() - since);
    const reply = await callService(
      {
        ...{ method: 'POST', url: service.url, headers: service.headers, body: question },
        ...{ timeoutMs: Math.max(1, leftMs), maxBytes: MAX_BYTES, limits: LIMITS },
      },
      fetch,
    ).finally(release);
    ended(reply.slow || isAway(reply) ? 'slow' : 'answered');
    const read = readReply(service, reply);
    if (read.kind === 'failed') return failed(read.why, read.detail);
    noteCall('priced', (clock.monotonic() - since) / 1000);
    const keptMs = Math.min(service.cacheMs, read.ttlMs);
    if (keptMs > 0) kept.set(name, { offered: read.offered, until: clock.monotonic() + keptMs });
    return { kind: 'price', offered: read.offered };
  };

  return {
    ask: (service, question) => {
      const name = `${service.url} ${service.cacheMs} ${question}`;
      const known = kept.get(name);
      if (known !== undefined && known.until > clock.monotonic() && isWithin(service, known.offered))
        return { kind: 'price', offered: known.offered };
      const running = flights.get(name);
      if (running !== undefined) return running;
      const flight = call(service, question, name).finally(() => flights.delete(name));
      flights.set(name, flight);
      return flight;
    },
  };
}

function isAway(reply: JsonReply): boolean {
  return reply.kind === 'failed' ? reply.status === undefined && !reply.sent : reply.status >= 500;
}

function isWithin({ min, max }: PriceService, { price }: OfferedPrice): boolean {
  return comparePrices(price, min) >= 0 && comparePrices(price, max) <= 0;
}

type ReadReply =
  | { readonly kind: 'price'; readonly offered: OfferedPrice; readonly ttlMs: number }
  | { readonly kind: 'failed'; readonly why: PriceFailure; readonly detail: string };

function readReply(service: PriceService, reply: JsonReply): ReadReply {
  if (reply.kind === 'failed') return { kind: 'failed', why: whyFailed(reply), detail: reply.why };
  if (reply.status !== 200)
    return {
      kind: 'failed',
      why: reply.status >= 500 || reply.slow ? 'away' : 'nonsense',
      detail: `status ${reply.status}`,
    };
  const parsed = answer.safeParse(reply.body);
  const price = parsed.success ? parsePrice(parsed.data.amount) : undefined;
  if (!parsed.success || (price === undefined && !isNothing(parsed.data.amount)))
    return { kind: 'failed', why: 'nonsense', detail: 'its answer has not the form {"amount": "0.12"}' };
  if (price === undefined || !isWithin(service, { price }))
    return { kind: 'failed', why: 'out_of_bounds', detail: 'its amount is not within min and max' };
  const { ttl = Infinity, description } = parsed.data;
  const shown = description === undefined ? undefined : clip(description, DESCRIPTION_BYTES);
  return { kind: 'price', offered: { price, description: shown }, ttlMs: ttl * 1000 };
}

function whyFailed({ why, sent, slow, status = 0 }: Extract<JsonReply, { kind: 'failed' }>): PriceFailure {
  if (why === LATE) return 'late';
  return !sent || slow || why === LOST || status >= 500 ? 'away' : 'nonsense';
}

function isNothing(amount: string): boolean {
  return /^0(?:\.0{1,18})?$/.test(amount);
}
