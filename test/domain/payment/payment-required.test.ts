import { describe, expect, test } from 'vitest';
import { makeOffer, type Offer } from '../../../src/domain/payment/offer.ts';
import { createPaymentRequired } from '../../../src/domain/payment/payment-required.ts';
import { joinChargeId } from '../../../src/domain/payment/quote.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { receiverOf, RECEIVERS, requirement, WAY } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';

const CHARGE = `chg_${'x'.repeat(112)}`;
const plain = createPaymentRequired({ v1: false, requirement });
const withV1 = createPaymentRequired({ v1: true, requirement });

function offer(rest: Partial<Route> = {}): Offer {
  const made = makeOffer(route('GET /reports/* 0.10', rest), RECEIVERS);
  if ('code' in made) throw new Error(made.detail);
  return made;
}

function render(made: Offer, options: { v1?: boolean; path?: string; method?: string } = {}) {
  const demand = {
    offer: made,
    chargeId: { signed: CHARGE.slice(0, -16), nonce: CHARGE.slice(-16) },
    origin: 'https://api.example.com',
    method: options.method ?? 'GET',
    path: options.path ?? '/reports/q3',
    reason: 'payment_required',
  };
  const rendered = (options.v1 ? withV1 : plain)(demand);
  if (rendered === undefined) throw new Error('nothing can be offered');
  const { body, bodyBytes, header, accepts, ways } = rendered;
  expect(bodyBytes).toBe(Buffer.byteLength(body));
  // Whatever is remembered from here on changes nothing.
  expect((options.v1 ? withV1 : plain)(demand)).toEqual({ body, bodyBytes, header, accepts, ways });
  expect(JSON.stringify((JSON.parse(body) as { accepts?: unknown }).accepts)).toBe(accepts);
  expect(header).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
  expect(header.length).toBeLessThanOrEqual(3072);
  return { body: JSON.parse(body), header: JSON.parse(Buffer.from(header, 'base64').toString()), text: body };
}

describe('the body', () => {
  test('behaviour: the body of a 402 is exactly section 7.1 of the interface, members in its order', () => {
    const { body, text } = render(offer({ description: 'A report' }));
    expect(body).toEqual({
      error: 'Payment Required',
      charge_id: CHARGE,
      amount: '0.10',
      currency: 'USD',
      description: 'A report',
      x402_requirements: {
        rail_config: {
          scheme: 'exact',
          network: 'base-sepolia',
          asset: WAY.asset,
          pay_to_address: WAY.payTo,
          max_timeout_seconds: 300,
        },
        amount: '0.10',
        currency: 'USD',
        external_ref: CHARGE,
      },
    });
    expect(Object.keys(body)).toEqual(['error', 'charge_id', 'amount', 'currency', 'description', 'x402_requirements']);
    expect(text).not.toMatch(/x402Version|accepts/);
  });

  test('behaviour: the description in a 402 is the route’s, else its name, else METHOD pattern', () => {
    expect(render(offer({ description: 'D', name: 'N' })).body.description).toBe('D');
    expect(render(offer({ name: 'N' })).body.description).toBe('N');
    expect(render(offer({ description: '', name: '' })).body.description).toBe('GET /reports/*');
  });

  test('attack: a description cannot break out of its string, and the placeholder in it stays text', () => {
    for (const description of ['"},"amount":"0"', '\u0000', '\\u0000', '\u2028</script>', 'café 日本', '\\']) {
      const { body } = render(offer({ description }));
      expect(body).toMatchObject({ description, charge_id: CHARGE, x402_requirements: { external_ref: CHARGE } });
    }
  });

  test('behaviour: the body of a 402 with v1 has the members of x402 v1 after the interface’s', () => {
    const { body } = render(offer({ description: 'A report' }), { v1: true });
    expect(Object.keys(body).slice(-2)).toEqual(['x402Version', 'accepts']);
    expect(body.x402Version).toBe(1);
    expect(body.accepts).toEqual([
      {
        scheme: 'exact',
        network: 'base-sepolia',
        maxAmountRequired: '100000',
        description: 'A report',
        mimeType: 'application/json',
        payTo: WAY.payTo,
        maxTimeoutSeconds: 300,
        asset: WAY.asset,
        extra: { name: 'USDC', version: '2' },
        resource: 'https://api.example.com/reports/q3',
      },
    ]);
  });

  test('behaviour: a network without a v1 name leaves the v1 members out', () => {
    const made = makeOffer(
      route('GET /a'),
      new Map([['default', receiverOf({ network: 'eip155:42161', networkName: 'arbitrum' })]]),
    );
    if ('code' in made) throw new Error(made.detail);
    expect(render(made, { v1: true }).body).not.toHaveProperty('accepts');
  });
});

describe('the header', () => {
  test('behaviour: the header of a 402 is x402 v2, with the atomic amount, the CAIP-2 network and the charge id', () => {
    expect(render(offer({ description: 'A report' })).header).toEqual({
      x402Version: 2,
      error: 'payment_required',
      resource: { url: 'https://api.example.com/reports/q3', description: 'A report', mimeType: 'application/json' },
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:84532',
          amount: '100000',
          asset: WAY.asset,
          payTo: WAY.payTo,
          maxTimeoutSeconds: 300,
          extra: { name: 'USDC', version: '2', external_ref: CHARGE },
        },
      ],
    });
  });

  test('behaviour: the header of a 402 stays within 3 KiB, its URL within 1,024 bytes and its description within 256, whatever the route says', () => {
    for (const unit of ['"', '\\', '\u0001', '\u007f', 'é', '日', '😀', 'x']) {
      const { header } = render(offer({ description: unit.repeat(1000 / unit.length) }), {
        path: `/${'%C3%A9'.repeat(1300)}`,
      });
      expect(Buffer.byteLength(header.resource.description)).toBeLessThanOrEqual(256);
      expect(header.resource.description).not.toContain('\uFFFD');
      expect(header.resource.url.length).toBeLessThanOrEqual(1024);
      expect(() => decodeURI(header.resource.url.replace(/%C3$/, ''))).not.toThrow();
      expect(header.accepts[0].extra.external_ref).toBe(CHARGE);
    }
  });
});

describe('what is remembered of an answer', () => {
  test('attack: nothing of one 402 gets into another, whatever they differ in', () => {
    const offers = [offer(), offer({ id: '00000000-0000-4000-8000-00000000000b', description: 'café' })];
    const demands = offers.flatMap((made) =>
      ['x', 'y'].flatMap((steady) =>
        ['1', '2'].flatMap((varying) =>
          ['http://a', 'http://b:8402'].flatMap((origin) =>
            ['/reports/1', '/reports/2'].flatMap((path) =>
              ['payment_required', 'quote_mismatch'].map((reason) => ({
                ...{ offer: made, method: 'GET', origin, path, reason },
                chargeId: { signed: `chg_${steady.repeat(96)}`, nonce: varying.repeat(16) },
              })),
            ),
          ),
        ),
      ),
    );
    for (const demand of [...demands, ...demands.toReversed(), ...demands]) {
      const fresh = createPaymentRequired({ v1: true, requirement })(demand);
      expect(withV1(demand)).toEqual(fresh);
      const body = JSON.parse(fresh?.body ?? '');
      const header = JSON.parse(Buffer.from(fresh?.header ?? '', 'base64').toString());
      const url = demand.origin + demand.path;
      const id = joinChargeId(demand.chargeId);
      expect([body.charge_id, body.x402_requirements.external_ref]).toEqual([id, id]);
      expect(body.accepts[0].resource).toBe(url);
      expect([header.resource.url, header.error]).toEqual([url, demand.reason]);
      expect(header.accepts[0].extra.external_ref).toBe(id);
    }
  });
});

describe('an offer', () => {
  test.each([
    ['receiver_unknown', { receiverConfigId: 'nobody' }],
    ['price_unpayable', { currency: 'EUR' }],
    ['price_unpayable', { amount: '0.0000001' }],
  ] as const)('refuses: with %s an offer for a route with %j, never free', (code, rest) => {
    expect(makeOffer(route('GET /a', rest), RECEIVERS)).toMatchObject({ code });
  });
});

test('behaviour: the ways that can be offered now change the 402, and none is given if nothing can be offered', () => {
  let revision = 0;
  let feePayer: string | undefined;
  const render = createPaymentRequired({
    v1: true,
    revision: () => revision,
    requirement: (terms, quote, version) => {
      const entry = requirement(terms, quote, version);
      return feePayer === undefined || entry === undefined || version === 1 ? undefined : { ...entry, feePayer };
    },
  });
  const chargeId = { signed: CHARGE.slice(0, -16), nonce: CHARGE.slice(-16) };
  const demand = {
    offer: offer(),
    chargeId,
    method: 'GET',
    origin: 'https://api.example.com',
    path: '/reports/q3',
    reason: 'x',
  };
  expect(render(demand)).toBeUndefined();
  for (feePayer of ['one', 'another']) {
    revision++;
    const { body = '', header = '' } = render(demand) ?? {};
    expect(JSON.parse(Buffer.from(header, 'base64').toString()).accepts).toEqual([
      expect.objectContaining({ feePayer }) as object,
    ]);
    // No way has a name in version 1.
    expect(JSON.parse(body)).not.toHaveProperty('accepts');
  }
});
