// Limits how often the upstream is asked about credentials that it does not know: so many refusals of one client a minute. A
// place is taken before it is asked, so that no more are refused at once than may be, and given back as soon as it did not
// refuse. Who finds none waits while others of the client are not decided, because the upstream may know all of them. A
// credential that it knew a moment ago takes none: a customer may send as many requests at once as anybody.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../host/clock.ts';
import type { RateLimit } from '../../../host/rate-limit.ts';

/** Says, once, what the upstream made of a credential. `silent`: neither that it knows it, nor that it does not. */
export type DecideAsked = (verdict: 'known' | 'refused' | 'silent') => void;

/**
 * The upstream may be asked about a credential of a client; undefined: it may not, it refused too many. `credential`: its
 * name, and what it is shown for.
 */
export type MayAsk = (client: string, credential: string) => DecideAsked | undefined | Promise<DecideAsked | undefined>;

type AskedClientsDeps = {
  /** Refused credentials of each client in a minute. */
  readonly refusals: RateLimit;
  readonly clock: Pick<Clock, 'monotonic'>;
};

const KEPT = 10_000;
const KEPT_MS = 60_000;
/** Requests of one client that wait at once. */
const WAITING = 256;

type Undecided = { asked: number; readonly waiting: (() => void)[] };

export function createMayAsk({ refusals, clock }: AskedClientsDeps): MayAsk {
  const known = new LRUCache<string, number>({ max: KEPT });
  const undecided = new Map<string, Undecided>();

  const decided = (client: string): void => {
    const others = undecided.get(client);
    if (others === undefined) return;
    others.asked -= 1;
    if (others.asked === 0) undecided.delete(client);
    for (const wake of others.waiting.splice(0)) wake();
  };
  const ask = (client: string, credential: string, hasPlace: boolean): DecideAsked => {
    if (hasPlace) {
      const others = undecided.get(client) ?? { asked: 0, waiting: [] };
      others.asked += 1;
      undecided.set(client, others);
    }
    let isOpen = true;
    return (verdict) => {
      if (!isOpen) return;
      isOpen = false;
      if (verdict === 'known') known.set(credential, clock.monotonic() + KEPT_MS);
      if (verdict === 'refused') known.delete(credential);
      if (hasPlace && verdict !== 'refused') refusals.giveBack(client);
      if (!hasPlace && verdict === 'refused') refusals.takeMs(client);
      if (hasPlace) decided(client);
    };
  };
  const mayAsk: MayAsk = (client, credential) => {
    const isKnown = (known.get(credential) ?? 0) > clock.monotonic();
    if (isKnown || refusals.takeMs(client) === 0) return ask(client, credential, !isKnown);
    const others = undecided.get(client);
    if (others === undefined || others.waiting.length >= WAITING) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    others.waiting.push(resolve);
    return promise.then(() => mayAsk(client, credential));
  };
  return mayAsk;
}
