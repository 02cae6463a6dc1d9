// The document of the page for people: one of at most 64 KiB, whose policy lets nothing in but what is in it, and which says
// what the 402 says and nothing else.
import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { PageData } from '../../../src/domain/payment/page-data.ts';
import { makeOffer, type Offer, type Receiver } from '../../../src/domain/payment/offer.ts';
import { readPageAssets } from '../../../src/gateway/page/assets.ts';
import { createPage, type PageSection } from '../../../src/gateway/page/document.ts';
import { isPaidInBrowser, NETWORKS } from '../../../src/gateway/rails/rails.ts';
import { receiverOf } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';

const ASSETS = readPageAssets();
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const SECTION: PageSection = {
  ...{
    name: undefined,
    logo: undefined,
    accent: '#1652f0',
    support: undefined,
    termsUrl: undefined,
    privacyUrl: undefined,
  },
};
const OPTIONS = {
  ...{ section: SECTION, networks: { find: NETWORKS.find, isPaidInBrowser }, quoteTtlMs: 300_000 },
  assets: () => ASSETS,
};
const HEADER = Buffer.from('{"x402Version":2}').toString('base64');
const BASE_SEPOLIA = receiverOf();
const SOLANA = receiverOf({
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  networkName: 'solana',
  testnet: false,
  asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  payTo: '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM',
});

function offerOf(receiver: Receiver, rest: Parameters<typeof route>[1] = {}): Offer {
  const offer = makeOffer(route('GET /reports/* 0.10', rest), new Map([['default', receiver]]));
  if ('code' in offer) throw new Error(offer.detail);
  return offer;
}

function show(
  offer: Offer,
  section: Partial<PageSection> = {},
  request: { readonly publicOrigin?: string; readonly path?: string; readonly required?: string } = {},
): { readonly body: string; readonly header: (name: string) => string | undefined } {
  const page = createPage({ ...OPTIONS, section: { ...SECTION, ...section } });
  const facts = {
    publicOrigin: 'https://api.example.com',
    path: '/reports/q3',
    required: HEADER,
    reason: 'payment_required',
  };
  const { body, bodyBytes, headers, status } = page({ offer, ways: offer.ways, ...facts, ...request }, []);
  expect(status).toBe(402);
  expect(Buffer.byteLength(body)).toBe(bodyBytes ?? -1);
  return {
    body: String(body),
    header: (name) => {
      const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
      return at < 0 ? undefined : headers[at + 1];
    },
  };
}

function dataOf(body: string): PageData {
  const [, text = ''] = /<script type="application\/json" id="data">(.*?)<\/script>/.exec(body) ?? [];
  return JSON.parse(text) as PageData;
}

const sha256 = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

describe('its head', () => {
  test('behaviour: the headers of the page keep it out of every cache, frame and referrer', () => {
    const { header } = show(offerOf(BASE_SEPOLIA));
    expect(header('content-type')).toBe('text/html; charset=utf-8');
    expect(header('cache-control')).toBe('no-store');
    expect(header('vary')).toBeUndefined();
    expect(header('x-content-type-options')).toBe('nosniff');
    expect(header('referrer-policy')).toBe('no-referrer');
    expect(header('x-frame-options')).toBe('DENY');
    expect(header('payment-required')).toBe(HEADER);
    expect(header('tollgate-reason')).toBe('payment_required');
  });

  test('behaviour: the policy of the page lets its own scripts and styles run, by hash, and nothing else', () => {
    const { body, header } = show(offerOf(BASE_SEPOLIA), { accent: '#00aa55' });
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(body) ?? [];
    const scripts = [...body.matchAll(/<script>(.*?)<\/script>/gs)].map((match) => match[1] ?? '');
    expect(scripts).toHaveLength(1);
    expect(header('content-security-policy')).toBe(
      `default-src 'none'; script-src ${sha256(scripts[0] ?? '')}; style-src ${sha256(style)}; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(body).not.toMatch(/ style=| on[a-z]+=|javascript:/);
  });

  test.each([
    ['#1652f0', '#fff'],
    ['#ffe100', '#000'],
    ['#ffffff', '#000'],
    ['#000000', '#fff'],
    ['#757575', '#fff'],
    ['#767676', '#000'],
  ])('behaviour: text on the accent %s is %s', (accent, text) => {
    expect(show(offerOf(BASE_SEPOLIA), { accent }).body).toContain(`--accent:${accent};--on-accent:${text}`);
  });
});

describe('what it says', () => {
  test('behaviour: the page says what is asked for, the price, each way with its network, and who is paid', () => {
    const offer = offerOf(BASE_SEPOLIA, { description: 'The report of a quarter' });
    const { body } = show(offer);
    expect(body).toContain('<html lang="en">');
    expect(body).toContain('<h1>The report of a quarter</h1>');
    expect(body).toContain('<code>GET /reports/q3</code>');
    expect(body).toContain('<span class="amount">0.10</span> <span class="currency">USD</span>');
    expect(body).toContain('<strong>0.10 USDC</strong> on Base Sepolia <span class="tag">test network</span>');
    expect(body).toContain('<code>0x1111111111111111111111111111111111111111</code>');
    expect(body).toContain('test network: no real money');
    expect(body).toContain('<noscript>');
    expect(body).toContain('api.example.com');
    expect(body).toContain(`URL=<span data-url="sh">'https://api.example.com/reports/q3'</span>\ncurl -i "$URL"`);
  });

  test('behaviour: a way that no wallet of a browser pays has words on the page, and no chain for a wallet', () => {
    const offer = offerOf(SOLANA);
    const { body } = show(offer);
    expect(body).toContain('<strong>0.10 USDC</strong> on Solana</p>');
    expect(body).toContain('a program pays this');
    expect(body).not.toContain('<span class="tag">');
    expect(dataOf(body).ways).toEqual([]);
  });

  test('behaviour: several ways stand on the page in the order of the 402', () => {
    const ways = [...SOLANA.ways, ...BASE_SEPOLIA.ways];
    const { body } = show(offerOf({ ...BASE_SEPOLIA, ways }));
    expect(dataOf(body).ways.map(({ chainName }) => chainName)).toEqual(['Base Sepolia']);
    expect(body.indexOf('on Solana')).toBeLessThan(body.indexOf('on Base Sepolia'));
    expect(body).toContain('<h2>Ways to pay</h2>');
    expect(body).not.toContain('no real money');
  });

  test('behaviour: an unknown network and token are named on the page as they are written', () => {
    const asset = '0x2222222222222222222222222222222222222222';
    const { body } = show(offerOf(receiverOf({ network: 'eip155:31337', networkName: 'eip155:31337', asset })));
    expect(dataOf(body).ways[0]).toMatchObject({ chainName: 'eip155:31337', symbol: '0x2222...2222', testnet: false });
    expect(dataOf(body).ways[0]?.explorer).toBeUndefined();
  });

  test('behaviour: the page says when money is charged, as the receiver settles', () => {
    expect(show(offerOf(BASE_SEPOLIA)).body).toContain('when the service begins to answer with success');
    expect(show(offerOf(receiverOf({ settle: 'before_forward' }))).body).toContain('The money moves first');
  });

  test('behaviour: the page shows the name, logo and links of the configuration', () => {
    const links = {
      support: 'mailto:help@example.com',
      termsUrl: 'https://e.com/t?a=1&b=2',
      privacyUrl: 'https://e.com/p',
    };
    const { body } = show(offerOf(BASE_SEPOLIA), {
      name: 'Example & Söhne',
      logo: 'data:image/png;base64,AAAA',
      ...links,
    });
    expect(body).toContain('<title>0.10 USD - Example &#38; Söhne</title>');
    expect(body).toContain('<img src="data:image/png;base64,AAAA" alt=""');
    expect(body).toContain('<a href="mailto:help@example.com" rel="noreferrer">Support</a>');
    expect(body).toContain('<a href="https://e.com/t?a=1&#38;b=2" rel="noreferrer">Terms</a>');
  });

  test('refuses: to say on the page more than the 402 says', () => {
    const secret = {
      facilitators: [
        {
          ...{
            url: 'https://facilitator.secret.example',
            headers: { 'x-key': 'key-of-the-owner' },
            account: 'cdp-account',
          },
          ...{ timeouts: { verifyMs: 1, settleMs: 1 }, limits: { calls: 1, waiting: 1 }, auth: undefined },
        },
      ],
      rpcUrls: ['https://node.secret.example/key'],
    };
    const { body } = show(offerOf(receiverOf(secret)));
    expect(body).not.toMatch(/secret\.example|key-of-the-owner|cdp-account/);
    // The public node of the known network, for a wallet that does not know it.
    expect(dataOf(body).ways[0]?.chain?.rpcUrls).toEqual(['https://sepolia.base.org']);
  });
});

describe('hostile text', () => {
  const EVIL = `</script><script>alert(1)</script><!-- " ' & \u2028\u0000 é`;

  test('refuses: markup in the texts of a route and of the configuration', () => {
    const { body } = show(offerOf(BASE_SEPOLIA, { description: EVIL }), { name: EVIL, support: `mailto:${EVIL}` });
    expect(body.match(/<script/g)).toHaveLength(2);
    expect(body).not.toContain('<!--');
  });

  test('refuses: markup and ends of a shell word in a path and a host', () => {
    const { body } = show(offerOf(BASE_SEPOLIA), {}, { path: `/a'b<script>$(x)`, publicOrigin: `http://h"<b>` });
    expect(body).not.toContain('<b>');
    expect(body.match(/<script/g)).toHaveLength(2);
    expect(body).toContain(`'http://h&#34;&#60;b&#62;/a'\\''b&#60;script&#62;$(x)'`);
  });
});

/** A document as large as `rest` of its texts makes it, with a logo of 16 KiB. */
function showLarge(
  count: number,
  rest: { readonly text: string; readonly name: string; readonly link: string },
): string {
  const ways = Array.from({ length: count }, (_, index) => (index % 2 === 0 ? SOLANA : BASE_SEPOLIA).ways[0]).filter(
    (way) => way !== undefined,
  );
  const { text, name, link } = rest;
  const times = text === 'usual' ? 10 : 8000;
  const { body } = show(
    offerOf({ ...BASE_SEPOLIA, ways }, { description: text.repeat(times) }),
    {
      ...{ name, support: link, termsUrl: link, privacyUrl: link },
      logo: `data:image/svg+xml;base64,${Buffer.alloc(16_384).toString('base64')}`,
    },
    {
      publicOrigin: `https://${text.repeat(Math.min(times, 255))}:65535`,
      path: `/${text.repeat(times)}`,
      required: 'A'.repeat(3072),
    },
  );
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(65_536);
  return body;
}

test('behaviour: a large page, of 5 ways, is one document of at most 64 KiB, with a logo of 16 KiB', () => {
  // More have no room in a PAYMENT-REQUIRED.
  const usual = { text: 'usual', name: 'Example Weather Service', link: 'https://api.example.com/terms' };
  expect(showLarge(5, usual).includes('<img')).toBe(true);
});

test('behaviour: the largest page is one document of at most 64 KiB, and goes without its logo first', () => {
  const large = { text: '&', name: '\u20ac'.repeat(80), link: `https://example.com/${'x'.repeat(180)}` };
  expect(showLarge(12, large).includes('<img')).toBe(false);
});

test('behaviour: 2,500 routes shown as pages keep at most 5 MB, in letters that double a string too', async () => {
  const page = createPage(OPTIONS);
  const offers = Array.from({ length: 2500 }, (_, index) =>
    offerOf(BASE_SEPOLIA, { description: `${'\u20ac'.repeat(200)} ${index}` }),
  );
  const show = ({ offer, at }: { readonly offer: Offer; readonly at: number }): number => {
    const facts = { publicOrigin: 'https://api.example.com', path: `/reports/${at}`, required: HEADER, reason: 'x' };
    return Buffer.byteLength(page({ offer, ways: offer.ways, ...facts }, []).body);
  };
  const held = async (): Promise<number> => {
    // Memory outside of the heap is given back a turn after its owner was collected.
    for (let turn = 0; turn < 3; turn++) {
      collectGarbage();
      await new Promise(setImmediate);
    }
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const [first] = offers;
  if (first === undefined) throw new Error('no offer');
  show({ offer: first, at: 0 });
  const before = await held();
  for (const [at, offer] of offers.entries()) expect(show({ offer, at })).toBeGreaterThan(20_000);
  expect(((await held()) - before) / 1e6).toBeLessThan(5);
  expect(offers).toHaveLength(2500);
});
