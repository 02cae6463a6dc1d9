// Several ways in one 402: which the header has room for, in which order they stand, and what version 1 is shown of them.
import { describe, expect, test } from 'vitest';
import type { Listing } from '../../src/domain/discovery/listing.ts';
import { makeOffer, type Offer, type Receiver } from '../../src/domain/payment/offer.ts';
import { createPaymentRequired, type PaymentRequiredOptions } from '../../src/domain/payment/payment-required.ts';
import type { Way } from '../../src/domain/payment/way.ts';
import type { Route } from '../../src/domain/routing/route.ts';
import { PLAIN, receiverOf, requirement, type PlainReceiver } from '../cases/receivers.ts';
import { route } from '../cases/routes.ts';

const CHARGE = `chg_${'x'.repeat(112)}`;
const LIMIT = 3072;

/** A receiver of these ways; each differs from USDC on Base Sepolia in what is said. */
function receiverWith(ways: readonly Partial<PlainReceiver>[], rest: Partial<Receiver> = {}): Receiver {
  return { ...receiverOf(), ways: ways.flatMap((changes) => receiverOf(changes).ways), ...rest };
}

const address = (n: number): string => `0x${String(n).padStart(40, '0')}`;
const wallets = (count: number): readonly Partial<PlainReceiver>[] =>
  Array.from({ length: count }, (_, n) => ({ payTo: address(n + 1) }));

function offerOf(receiver: Receiver, changes: Partial<Route> = {}): Offer {
  const made = makeOffer(route('GET /reports/* 0.10', changes), new Map([[receiver.id, receiver]]));
  if ('code' in made) throw new Error(made.detail);
  return made;
}

type Asked = {
  readonly listing?: Listing;
  readonly method?: string;
  readonly origin?: string;
  readonly path?: string;
  readonly reason?: string;
};

function show(offer: Offer, asked: Asked = {}, options: Partial<PaymentRequiredOptions> = {}) {
  const rendered = createPaymentRequired({ v1: true, requirement, ...options })({
    ...{ offer, method: 'GET', origin: 'https://api.example.com', path: '/reports/q3', reason: 'payment_required' },
    ...asked,
    chargeId: { signed: CHARGE.slice(0, -16), nonce: CHARGE.slice(-16) },
  });
  if (rendered === undefined) throw new Error('nothing can be offered');
  expect(rendered.header.length).toBeLessThanOrEqual(LIMIT);
  const header = JSON.parse(Buffer.from(rendered.header, 'base64').toString());
  expect(rendered.ways.map(({ way }) => way.payTo)).toEqual(
    header.accepts.map((each: { payTo: string }) => each.payTo),
  );
  return { body: JSON.parse(rendered.body), header, bytes: rendered.header.length };
}

/** A URL of exactly this many bytes. */
const pathFor = (bytes: number): string => `/${'p'.repeat(bytes - 'https://api.example.com/'.length)}`;

describe('all ways, in their order', () => {
  const receiver = receiverWith([
    { network: 'eip155:43113', networkName: 'avalanche-fuji', decimals: 8 },
    {},
    { payTo: address(2), networkName: 'eip155:84532' },
  ]);

  test('behaviour: all ways are shown in their order, each with its own amount and the same reference', () => {
    const { header } = show(offerOf(receiver));
    expect(header.accepts).toMatchObject([
      { network: 'eip155:43113', amount: '10000000', payTo: PLAIN.payTo, extra: { external_ref: CHARGE } },
      { network: 'eip155:84532', amount: '100000', payTo: PLAIN.payTo, extra: { external_ref: CHARGE } },
      { network: 'eip155:84532', amount: '100000', payTo: address(2), extra: { external_ref: CHARGE } },
    ]);
  });

  test('behaviour: the body of a 402 names the first way', () => {
    expect(show(offerOf(receiver)).body.x402_requirements.rail_config).toMatchObject({
      network: 'avalanche-fuji',
      asset: PLAIN.asset,
    });
  });

  test('behaviour: version 1 is shown the first way of each network', () => {
    expect(show(offerOf(receiver)).body.accepts).toMatchObject([
      { network: 'avalanche-fuji', maxAmountRequired: '10000000' },
      { network: 'base-sepolia', maxAmountRequired: '100000', payTo: PLAIN.payTo },
    ]);
  });

  test('behaviour: version 1 is not shown a second way of a network whose first cannot hold the price', () => {
    const ways = [{ decimals: 0 }, { payTo: address(2) }];
    const { header, body } = show(offerOf(receiverWith(ways)));
    expect(header.accepts).toMatchObject([{ payTo: address(2) }]);
    expect(body).not.toHaveProperty('accepts');
  });

  test('behaviour: a way that cannot hold the price is left out', () => {
    const fine = offerOf(receiver, { amount: '0.00000001' });
    expect(show(fine).header.accepts).toMatchObject([{ network: 'eip155:43113', amount: '1' }]);
  });

  test('behaviour: a way that nobody may be asked about stands last, in the body too, and keeps its place in the limit', () => {
    const isCallable = ({ network }: Way): boolean => network !== 'eip155:43113';
    const { header, body } = show(offerOf(receiver), {}, { isCallable });
    expect(header.accepts.map(({ network }: Way) => network)).toEqual(['eip155:84532', 'eip155:84532', 'eip155:43113']);
    expect(body.accepts.map(({ network }: Way) => network)).toEqual(['base-sepolia', 'avalanche-fuji']);
    expect(body.x402_requirements.rail_config.network).toBe('base-sepolia');
    const many = offerOf(receiverWith(wallets(8)));
    const last = ({ payTo }: Way): boolean => payTo !== address(1);
    const shown = show(many).header.accepts.length;
    const payees = show(many, {}, { isCallable: last }).header.accepts.map(({ payTo }: Way) => payTo);
    expect(payees).toEqual([...Array.from({ length: shown - 1 }, (_, n) => address(n + 2)), address(1)]);
  });

  test('behaviour: an order of ways that changes is shown from then on', () => {
    let revision = 0;
    let closed = '';
    const render = createPaymentRequired({
      v1: false,
      requirement,
      isCallable: ({ network }) => network !== closed,
      revision: () => revision,
    });
    const offer = offerOf(receiver);
    const first = (): unknown => {
      const chargeId = { signed: CHARGE.slice(0, -16), nonce: CHARGE.slice(-16) };
      const origin = 'https://api.example.com';
      const rendered = render({ offer, method: 'GET', origin, path: '/reports/q3', reason: 'x', chargeId });
      return JSON.parse(rendered?.body ?? '').x402_requirements.rail_config.network;
    };
    expect(first()).toBe('avalanche-fuji');
    closed = 'eip155:43113';
    revision++;
    expect(first()).toBe('base-sepolia');
    closed = '';
    revision++;
    expect(first()).toBe('avalanche-fuji');
  });
});

describe('the header has 3,072 bytes', () => {
  test('behaviour: eight ways are shown as far as they fit, from the first on, and the limit is used', () => {
    const { header, bytes } = show(offerOf(receiverWith(wallets(8))), { path: pathFor(256) });
    const shown = header.accepts.map(({ payTo }: Way) => payTo);
    expect(shown).toEqual(wallets(shown.length).map(({ payTo }) => payTo));
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.length).toBeLessThan(8);
    // One more would not have fitted.
    const entry = JSON.stringify(header.accepts[0]).length;
    expect(Math.ceil((bytes + (entry * 4) / 3) / 4) * 4).toBeGreaterThan(LIMIT);
  });

  test('behaviour: the description is cut to 64 bytes before a way is left out', () => {
    const count = show(offerOf(receiverWith(wallets(8)), { description: 'd' })).header.accepts.length;
    const receiver = receiverWith(wallets(count));
    const described = (bytes: number): string => show(offerOf(receiver, { description: 'd'.repeat(bytes) })).header;
    expect(described(64)).toMatchObject({ resource: { description: 'd'.repeat(64) } });
    expect(described(1000)).toMatchObject({ resource: { description: 'd'.repeat(64) } });
    expect(show(offerOf(receiver, { description: 'd'.repeat(1000) })).header.accepts).toHaveLength(count);
    const few = show(offerOf(receiverWith(wallets(count - 1)), { description: 'd'.repeat(1000) })).header;
    expect(few.resource.description).toBe('d'.repeat(256));
  });

  test('attack: the header at its limit is whole, and one byte past it the description is cut', () => {
    // What is left of a URL of 256 bytes and a code of 24 is filled up by the description of a route.
    const receiver = receiverWith(wallets(5));
    const lengths = Array.from({ length: 256 }, (_, n) => n + 1);
    const shown = lengths.map((length) => show(offerOf(receiver, { description: 'd'.repeat(length) })).header);
    const whole = shown.filter(({ resource }, n) => resource.description.length === n + 1).length;
    expect(whole).toBeGreaterThan(64);
    expect(shown.every(({ accepts }) => accepts.length === 5)).toBe(true);
    for (const [n, { resource }] of shown.entries()) expect(resource.description).toHaveLength(n < whole ? n + 1 : 64);
    // With the longest URL that is shown whole and the longest code the last one that was whole fills the limit.
    const { header, bytes } = show(offerOf(receiver, { description: 'd'.repeat(whole) }), {
      path: pathFor(256),
      reason: 'x402_version_unsupported',
    });
    expect([bytes, JSON.stringify(header).length]).toEqual([LIMIT, (LIMIT / 4) * 3]);
  });

  test('behaviour: a listing is left out of the header before the description is cut: its example first, then all of it', () => {
    const offer = offerOf(receiverWith(wallets(2)), { description: 'd'.repeat(256) });
    const listing = (whole: number, part: number): Asked => {
      const bazaar = (bytes: number): string => JSON.stringify({ info: 'b'.repeat(bytes) });
      return { listing: { bazaar: [bazaar(whole), bazaar(part)], service: {} } };
    };
    const shownOf = (asked: Asked): number[] => {
      const { extensions, resource } = show(offer, asked).header;
      return [extensions?.bazaar.info.length ?? 0, resource.description.length];
    };
    const sizes = Array.from({ length: 1500 }, (_, n) => n + 1);
    const most = sizes.findLast((size) => shownOf(listing(size, 0))[0] === size) ?? 0;
    expect(most).toBeGreaterThan(100);
    expect(shownOf(listing(most + 1, most))).toEqual([most, 256]);
    expect(shownOf(listing(most + 2, most + 1))).toEqual([0, 256]);
    expect(show(offer, listing(most + 2, most + 1)).header).not.toHaveProperty('extensions');
  });

  test('behaviour: version 1 loses nothing by the header’s limit', () => {
    const networks = ['base', 'base-sepolia', 'polygon', 'polygon-amoy', 'avalanche', 'avalanche-fuji', 'sei', 'iotex'];
    const ids = [8453, 84532, 137, 80002, 43114, 43113, 1329, 4689];
    const ways = networks.map((networkName, n) => ({ networkName, network: `eip155:${ids[n]}` }));
    const { body, header } = show(offerOf(receiverWith(ways), { description: 'd'.repeat(256) }), {
      path: pathFor(1000),
    });
    expect(header.accepts.length).toBeLessThan(8);
    expect(body.accepts.map(({ network }: Way) => network)).toEqual(networks);
    expect(body.accepts[0]).toMatchObject({
      description: 'd'.repeat(256),
      resource: `https://api.example.com${pathFor(1000)}`,
    });
  });

  test('behaviour: the URL in the header is cut to the room that is left, to 256 bytes at least and never inside an escape', () => {
    const one = offerOf(receiverWith(wallets(1)));
    const full = offerOf(receiverWith(wallets(8)));
    const urlOf = (offer: Offer, path: string): string => show(offer, { path }).header.resource.url;
    expect(urlOf(full, pathFor(256))).toBe(`https://api.example.com${pathFor(256)}`);
    expect(urlOf(full, pathFor(1024)).length).toBeGreaterThanOrEqual(256);
    expect(urlOf(full, pathFor(1024)).length).toBeLessThan(1024);
    expect(urlOf(one, pathFor(1024))).toHaveLength(1024);
    expect(urlOf(one, pathFor(1025))).toHaveLength(1024);
    const cut = show(full, { path: pathFor(1024) }).header;
    // Not a byte is left unused.
    expect(Math.ceil((JSON.stringify(cut).length * 4) / 3)).toBeGreaterThan(LIMIT - 4);
    for (let shift = 0; shift < 3; shift++) {
      const url = urlOf(full, `/${'p'.repeat(shift)}${'%20'.repeat(400)}`);
      expect(() => decodeURI(url)).not.toThrow();
      expect(url.length).toBeGreaterThanOrEqual(254);
    }
  });

  test('behaviour: every method of a route is shown the same ways', () => {
    // One more would fit where none is told of its flow.
    const few = wallets(8).map((way) => ({ ...way, assetName: 'n'.repeat(10) }));
    for (const settle of ['auto', 'before_forward', 'before_response'] as const) {
      const offer = offerOf(receiverWith(few, { settle }), { method: '*' });
      const counts = ['GET', 'POST', 'HEAD'].map((method) => show(offer, { method }).header.accepts.length);
      expect(new Set(counts).size).toBe(1);
    }
  });

  test('behaviour: the word behind a code falls away if the header has no room for it, never the code', () => {
    const word = 'w'.repeat(100);
    const reason = `payment_refused: ${word}`;
    expect(show(offerOf(receiverWith(wallets(1))), { reason }).header.error).toBe(reason);
    const receiver = receiverWith(wallets(5));
    const errors = Array.from({ length: 256 }, (_, n) => {
      const offer = offerOf(receiver, { description: 'd'.repeat(n + 1) });
      return show(offer, { reason, path: pathFor(256) }).header.error;
    });
    expect(new Set(errors)).toEqual(new Set([reason, 'payment_refused']));
  });

  test('attack: the header stays within its limit and has its first way, whatever a route, a receiver or a request says', () => {
    const long = { assetName: 'é'.repeat(64), assetVersion: '"'.repeat(32), decimals: 36 };
    for (const count of [1, 2, 8])
      for (const unit of ['"', '\\', '\u0001', 'é', '日', '😀', 'x'])
        for (const path of ['/', pathFor(300), `/${'%C3%A9'.repeat(1300)}`])
          for (const reason of ['payment_required', `payment_refused: ${'w'.repeat(100)}`]) {
            const ways = wallets(count).map((way) => ({ ...way, ...long }));
            const offer = offerOf(receiverWith(ways), { description: unit.repeat(500), amount: '999999999999' });
            const { header } = show(offer, { path, reason });
            expect(header.accepts[0].payTo).toBe(address(1));
            expect(header.resource.description).not.toContain('\uFFFD');
          }
  });
});

describe('paymentFlow', () => {
  const flows = (settle: Receiver['settle'], method: string) => {
    const { header, body } = show(offerOf(receiverWith(wallets(2), { settle })), { method });
    expect(JSON.stringify(body)).not.toContain('paymentFlow');
    return header.accepts.map(({ extra }: { extra: Record<string, unknown> }) =>
      'paymentFlow' in extra ? extra['paymentFlow'] : 'no such member',
    );
  };

  test.each([
    ['auto', 'GET', 'no such member'],
    ['auto', 'HEAD', 'no such member'],
    ['auto', 'POST', 'upfront'],
    ['auto', 'DELETE', 'upfront'],
    ['before_forward', 'GET', 'upfront'],
    ['before_forward', 'POST', 'upfront'],
    ['before_response', 'POST', 'no such member'],
    ['before_response', 'GET', 'no such member'],
  ] as const)(
    'behaviour: the paymentFlow under settle %s for %s is: %s, in version 2 alone',
    (settle, method, flow) => {
      expect(flows(settle, method)).toEqual([flow, flow]);
    },
  );

  test('attack: one method’s paymentFlow is never another’s', () => {
    const render = createPaymentRequired({ v1: false, requirement });
    const offer = offerOf(receiverWith(wallets(1)));
    const chargeId = { signed: CHARGE.slice(0, -16), nonce: CHARGE.slice(-16) };
    const ask = { offer, origin: 'https://a', path: '/reports/1', reason: 'payment_required', chargeId };
    for (const method of ['GET', 'POST', 'GET', 'PUT', 'HEAD', 'POST']) {
      const header = Buffer.from(render({ ...ask, method })?.header ?? '', 'base64').toString();
      expect([method, header.includes('"paymentFlow":"upfront"')]).toEqual([
        method,
        method !== 'GET' && method !== 'HEAD',
      ]);
    }
  });
});
