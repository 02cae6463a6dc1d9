// An offer is a route's price in the terms of one receiver. It holds the ways to pay, the price in the smallest unit of
// each way's asset, and a hash of everything that a payer agrees to. A route that cannot be priced has a problem in
// place of an offer: its requests are refused, never free. Below stand the receivers, and the check of a route's price
// against them.
import { createHash, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { comparePrices, formatPrice, parsePrice, toAtomic, type Price } from './money.ts';
import { problem, type Problem, type FieldError } from '../problem.ts';
import { describeRoute, type Route } from '../routing/route.ts';
import type { PassTerms } from '../selling/pass.ts';
import type { Way } from './way.ts';

export type Offer = {
  readonly route: Route;
  readonly receiver: Receiver;
  readonly price: Price;
  /** The price as it is written for people: as the route writes it, if it is the route's. */
  readonly amount: string;
  /**
   * Everything that the price depends on, as one text, to which quotes are bound; empty in what offers of one price share.
   * Undefined: the price is the route's, whatever is asked.
   */
  readonly inputs?: string;
  /** Offer with which this one shares all but its inputs. */
  readonly shared?: Offer;
  /** Ways to pay in order of preference, at least one. */
  readonly ways: readonly OfferedWay[];
  readonly description: string;
  /** Hash of 8 bytes over every term of the receiver: a quote is void once they change. */
  readonly termsHash: Buffer;
  /** Passes that can be bought in its place; undefined: none. */
  readonly passes?: PassOffers | undefined;
  /** The pass that this is the price of; undefined: of a single request. */
  readonly pass?: { readonly planId: string; readonly terms: PassTerms } | undefined;
};

/** The passes of a plan in the terms of a receiver. */
export type PassOffers = {
  readonly planId: string;
  /** Whether a single request is offered as well, as the first price. */
  readonly single: boolean;
  /** Whether a wallet finds its pass by a signature. */
  readonly wallet: boolean;
  /** Browsers are given passes by seconds as a cookie. */
  readonly cookie: boolean;
  /** Whether requests take of a credit what their responses say: then they are paid from passes alone. */
  readonly isMetered: boolean;
  readonly offers: readonly Offer[];
};

/** Way to pay with its `amount`: the price in the smallest unit of the way's asset. */
export type OfferedWay = Pick<ReceiverWay, 'way' | 'networkName'> & { readonly amount: bigint };

export type Receivers = ReadonlyMap<string, Receiver>;

/** Takes the money of routes that name no receiver. */
export const DEFAULT_RECEIVER = 'default';

/** A price in place of the route's. `description`: words for payers in place of the route's. */
export type OfferedPrice = { readonly price: Price; readonly description?: string | undefined };

/** The offer for `route`, or `receiver_unknown` / `price_unpayable`. */
export function makeOffer(route: Route, receivers: Receivers, offered?: OfferedPrice): Offer | Problem {
  const id = route.receiverConfigId ?? DEFAULT_RECEIVER;
  const receiver = receivers.get(id);
  if (receiver === undefined) {
    return problem('receiver_unknown', `This route is paid to the receiver "${id}", which is not configured here.`);
  }
  if (!receiver.currencies.includes(route.currency)) {
    return problem('price_unpayable', `This route is priced in ${route.currency}, which its receiver does not take.`);
  }
  const own = parsePrice(route.amount);
  const price = offered?.price ?? own;
  if (price === undefined) return problem('price_unpayable', 'This route has an amount that is not a price.');
  const isOwn = own !== undefined && comparePrices(price, own) === 0;
  const amount = isOwn ? route.amount : formatPrice(price);
  const ways = offeredWays(receiver, price);
  if (ways.length === 0) {
    return problem(
      'price_unpayable',
      `This ${offered === undefined ? 'route' : 'request'} costs ${formatPrice(price)} ${route.currency}, more decimals than the ${mostDecimals(receiver)} of its asset.`,
    );
  }
  const description = offered?.description ?? describeRoute(route);
  return { route, receiver, price, amount, ways, description, termsHash: hashTerms(receiver) };
}

/** The ways whose asset has enough decimals for `price`. */
export function offeredWays({ ways }: Receiver, price: Price): readonly OfferedWay[] {
  return ways.flatMap(({ way, networkName }) => {
    const amount = toAtomic(price, way.decimals);
    return amount === undefined ? [] : [{ way, networkName, amount }];
  });
}

/** Decimals of the finest asset that a receiver takes. */
export function mostDecimals({ ways }: Pick<Receiver, 'ways'>): number {
  return Math.max(...ways.map(({ way }) => way.decimals));
}

const DESCRIPTION_BYTES = 256;

/** Shortens a description to what x402 shows: one line of at most 256 bytes. */
export function shortDescription(description: string): string {
  return clip(description.replace(/[\u0000-\u001f\u007f]+/g, ' '), DESCRIPTION_BYTES);
}

/** Cuts `text` to `bytes` bytes of UTF-8, at a character. */
export function clip(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const cut = Buffer.from(text).subarray(0, bytes).toString();
  return cut.replace(/\uFFFD+$/, '');
}

/** Offers that are not made again. */
const REMEMBERED = 4096;

/**
 * Remembers the offers of the routes that were asked for last. Not valid for another set of receivers. If each is made
 * anew, a 402 takes 2.6 times the CPU (`npm run bench -- --only payment-required --checkout ../without`).
 */
export function createOffers(
  receivers: Receivers,
  settleOf: (route: Route) => ReceiverSettle | undefined = () => undefined,
  complete: (offer: Offer) => Offer = (offer) => offer,
): (route: Route) => Offer | Problem {
  const offers = new LRUCache<Route, Offer | Problem>({ max: REMEMBERED });
  return (route) => {
    let offer = offers.get(route);
    if (offer === undefined) {
      offer = settledBy(makeOffer(route, receivers), settleOf(route));
      if (!('code' in offer)) offer = complete(offer);
      offers.set(route, offer);
    }
    return offer;
  };
}

/** The offer with the time of the settlement that its plan says, if it says one. */
export function settledBy(offer: Offer | Problem, settle: ReceiverSettle | undefined): Offer | Problem {
  if ('code' in offer || settle === undefined) return offer;
  return { ...offer, receiver: { ...offer.receiver, settle } };
}

/** Hashes who is paid, where and in which asset. The order in the configuration does not change the hash. */
function hashTerms({ id, ways }: Receiver): Buffer {
  const terms = ways.map(({ way: { network, scheme, asset, decimals, payTo, terms: own } }) =>
    JSON.stringify([
      network,
      scheme,
      asset,
      decimals,
      payTo,
      ...Object.keys(own)
        .toSorted()
        .map((name) => [name, own[name]]),
    ]),
  );
  return createHash('sha256')
    .update(JSON.stringify([id, ...terms.toSorted()]))
    .digest()
    .subarray(0, 8);
}

// Receivers: where money goes. They come only from the process's own configuration, never from the network: who can change a
// receiver can redirect every payment.

export type ReceiverSettle = 'auto' | 'before_response' | 'before_forward';

/** Credential that a facilitator is shown. Nothing of it but a key id may stand in a log, an error or a metric. */
export type FacilitatorAuth = { readonly kind: 'bearer'; readonly token: string } | SigningAuth;
/** A key of an account: EC P-256 or Ed25519. */
export type SigningAuth = { readonly kind: 'cdp' | 'payai'; readonly keyId: string; readonly key: KeyObject };

export type Facilitator = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeouts: { readonly verifyMs: number; readonly settleMs: number };
  /** Limits of each operation: calls at a time, and how many more may wait for one of them to end. */
  readonly limits: { readonly calls: number; readonly waiting: number };
  readonly auth: FacilitatorAuth | undefined;
  /** The account there: a key id, or for a bearer token the receiver. With the URL it says which facilitator this is. */
  readonly account: string | undefined;
};

/** The services that are asked about payments of a way. */
export type WayServices = {
  readonly facilitators: readonly Facilitator[];
  /** Nodes that are asked about settlements of unknown end, in this order; none: no node is asked. */
  readonly rpcUrls: readonly string[];
  /** Whether all of these are public endpoints, whose word alone ends a payment later than that of a node of one's own. */
  readonly rpcPublic: boolean;
  readonly confirmations: number;
};

export type ReceiverWay = WayServices & {
  readonly way: Way;
  /** The network as configured: what the interface's `rail_config.network` answers. */
  readonly networkName: string;
  /** Says whether the network is a testnet; undefined if that is not known. */
  readonly testnet: boolean | undefined;
};

export type Receiver = {
  readonly id: string;
  /** Ways to pay in order of preference, at least one. */
  readonly ways: readonly ReceiverWay[];
  /** Route currencies this receiver takes, at par. */
  readonly currencies: readonly string[];
  readonly settle: ReceiverSettle;
};

/** Whether a request is settled before it is forwarded if nothing about it or its payer asks for that. */
export function settlesFirst(settle: ReceiverSettle, method: string): boolean {
  return settle === 'auto' ? method !== 'GET' && method !== 'HEAD' : settle === 'before_forward';
}

/** Finds the services of a way, else of another configured one on its network; undefined if none can be asked. */
export function findServices(receivers: ReadonlyMap<string, Receiver>, way: Way): WayServices | undefined {
  const ways = receivers.get(way.receiverId)?.ways.filter((each) => each.way.network === way.network);
  return ways?.find((each) => each.way.asset === way.asset && each.way.payTo === way.payTo) ?? ways?.[0];
}

/** Answers by the receivers that are configured when it is asked, also for claims under earlier ones. */
export function servicesInForce(settings: {
  readonly config: { readonly receivers: readonly Receiver[] };
}): (way: Way) => WayServices | undefined {
  let known: { readonly receivers: readonly Receiver[]; readonly byId: Receivers } | undefined;
  return (way) => {
    const { receivers } = settings.config;
    if (known?.receivers !== receivers) known = { receivers, byId: new Map(receivers.map((each) => [each.id, each])) };
    return findServices(known.byId, way);
  };
}

// Checks that a configured receiver of this process could take a route's price. If the proxy that serves the route is in
// the same process, an unknown receiver is an error too. A registry for other processes' proxies cannot judge it and stores
// the route: a proxy that cannot price it answers 503, never free.

export function findUnpayable(
  route: Pick<Route, 'amount' | 'currency' | 'receiverConfigId'>,
  receivers: ReadonlyMap<string, Receiver>,
  unknownReceiver: 'refuse' | 'store' = 'store',
): readonly FieldError[] {
  const id = route.receiverConfigId ?? DEFAULT_RECEIVER;
  const receiver = receivers.get(id);
  if (!receiver) {
    if (unknownReceiver === 'store') return [];
    const known = [...receivers.keys()].join(', ');
    const detail = `There is no receiver ${id} here, so that nobody could pay. ${known === '' ? 'None is configured.' : `Configured are ${known}.`}`;
    return [{ pointer: '/receiver_config_id', detail }];
  }
  const errors: FieldError[] = [];
  if (!receiver.currencies.includes(route.currency)) {
    errors.push({
      pointer: '/currency',
      detail: `The receiver ${receiver.id} takes ${receiver.currencies.join(', ')}, not ${route.currency}.`,
    });
  }
  const price = parsePrice(route.amount);
  if (price && offeredWays(receiver, price).length === 0) {
    const most = mostDecimals(receiver);
    const has =
      receiver.ways.length > 1
        ? `No asset of the receiver ${receiver.id} has more than ${most} decimals`
        : `The asset of the receiver ${receiver.id} has ${most} decimals`;
    errors.push({ pointer: '/amount', detail: `${has}; write at most that many digits after the point.` });
  }
  return errors;
}
