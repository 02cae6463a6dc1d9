// A paid answer that is a redirect: the page shows where the answer is and never follows it with the payment in its hand.
// Real program, real chain, real browser; what programs get stays the redirect itself.
import { describe, expect, test } from 'vitest';
import { click, createPageLab, title, words } from '../support/page-lab.ts';

const SIGNED = 'https://files.example.com/q3.pdf?signature=a%2Fb&expires=1';
/** What the upstream waits for before it answers /held. */
let held: Promise<unknown> = Promise.resolve();
const { paid, payFor } = createPageLab({
  routes: [
    'GET /away 0.10',
    'GET /near 0.10',
    'GET /next 0.10',
    'GET /odd 0.10',
    'GET /relative 0.10 upfront',
    'GET /held 0.10 upfront',
  ],
  handle: (req, res) => {
    req.resume();
    const [path] = (req.url ?? '').split('?');
    const places: Readonly<Record<string, string>> = {
      '/away': SIGNED,
      '/free': SIGNED,
      '/held': SIGNED,
      '/near': '/next',
      '/relative': 'part?of=it#there',
      '/odd': 'javascript:alert(1)',
    };
    const location = places[path ?? ''];
    if (location === undefined) {
      res.end('the next one');
      return;
    }
    void (path === '/held' ? held : Promise.resolve()).then(() => {
      res.writeHead(302, { location, 'content-type': 'text/html', 'x-own': 'kept', etag: '"1"' });
      res.end(req.method === 'HEAD' ? '' : '<a href="elsewhere">Found</a>');
    });
  },
});

const TYPE = 'application/vnd.tollgate.redirect+json';

describe('over HTTP', () => {
  const asked = async (
    target: string,
    headers: Readonly<Record<string, string>>,
    method = 'GET',
  ): Promise<{ readonly credential: string; readonly response: Response }> => {
    const { quote, sign, pay } = paid();
    const credential = await sign(await quote(target, method));
    return { credential, response: await pay(target, credential, { method, headers }) };
  };
  const PAGE = { 'tollgate-page': '1' };

  test('behaviour: a paid redirect asked for with Tollgate-Page is 200 with its place and receipt, charged as the redirect is', async () => {
    const before = await paid().earned();
    const { response } = await asked('/away', PAGE);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, TYPE]);
    expect(await response.json()).toEqual({ status: 302, location: SIGNED });
    expect(response.headers.get('location')).toBeNull();
    expect(response.headers.get('etag')).toBeNull();
    expect(response.headers.get('x-own')).toBe('kept');
    expect(response.headers.get('cache-control')).toBe('private, no-store');
    const receipt = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString();
    expect(JSON.parse(receipt)).toMatchObject({ success: true });
    expect(await paid().earned()).toBe(before + 100_000n);
    await expect.poll(async () => (await paid().charges())[0]?.status).toBe('delivered');
  });

  test('behaviour: the header Tollgate-Page goes to no upstream', async () => {
    await asked('/away', PAGE);
    expect(Object.keys(paid().upstream.seen.at(-1)?.headers ?? {})).not.toContain('tollgate-page');
  });

  test('behaviour: an answer sent again within 60 s is the redirect for a program and its place for the page', async () => {
    const { credential, response } = await asked('/away', {});
    expect([response.status, response.headers.get('location')]).toEqual([302, SIGNED]);
    const seen = paid().upstream.seen.length;
    const page = await paid().pay('/away', credential, { headers: PAGE });
    expect([page.status, await page.json()]).toEqual([200, { status: 302, location: SIGNED }]);
    expect(page.headers.get('payment-response')).not.toBeNull();
    const program = await paid().pay('/away', credential);
    expect([program.status, program.headers.get('location')]).toEqual([302, SIGNED]);
    expect(await program.text()).toContain('Found');
    expect(paid().upstream.seen.length).toBe(seen);
  });

  test('behaviour: an answer that was kept for a client that left is told to the page', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const { quote, sign, pay, upstream, charges } = paid();
    const credential = await sign(await quote('/held'));
    const seen = upstream.seen.length;
    const leaving = new AbortController();
    const left = pay('/held', credential, { signal: leaving.signal }).catch(() => 'left');
    await expect.poll(() => upstream.seen.length).toBe(seen + 1);
    leaving.abort();
    expect(await left).toBe('left');
    resolve();
    const again = async (): Promise<number> => {
      const response = await pay('/held', credential, { headers: PAGE });
      if (response.status === 200) expect(await response.json()).toEqual({ status: 302, location: SIGNED });
      return response.status;
    };
    await expect.poll(again).toBe(200);
    expect(upstream.seen.length).toBe(seen + 1);
    await expect.poll(async () => (await charges())[0]?.status).toBe('delivered');
  });

  test('behaviour: a redirect to a relative place is told whole', async () => {
    const { response } = await asked('/relative?a=1', PAGE);
    const location = new URL('/part?of=it#there', paid().url('/')).href;
    expect([response.status, await response.json()]).toEqual([200, { status: 302, location }]);
  });

  test('behaviour: a redirect within this API is not charged, and told as well', async () => {
    const before = await paid().earned();
    const { response } = await asked('/near', PAGE);
    expect(await response.json()).toEqual({ status: 302, location: paid().url('/next') });
    expect(response.headers.get('payment-response')).toBeNull();
    expect(await paid().earned()).toBe(before);
  });

  test('refuses: to change a redirect that is asked for without a payment', async () => {
    const response = await fetch(paid().url('/away'), { headers: PAGE, redirect: 'manual' });
    expect([response.status, response.headers.get('content-type')]).toEqual([402, 'application/json']);
    const free = await fetch(paid().url('/free'), { headers: PAGE, redirect: 'manual' });
    expect([free.status, free.headers.get('location')]).toEqual([302, SIGNED]);
  });
});

describe('in a browser', () => {
  test('behaviour: the page says where a redirect leads and by whom, and keeps it over a reload', async () => {
    const before = await paid().earned();
    const { page, barriers, wallet } = await payFor('/away');
    await title(page, 'The answer is elsewhere').waitFor();
    await title(page, 'Paid').waitFor();
    const link = page.getByRole('link', { name: 'Open files.example.com' });
    expect(await link.getAttribute('href')).toBe(SIGNED);
    expect(await link.getAttribute('rel')).toBe('noreferrer noopener');
    expect(await page.locator('.answer code').textContent()).toBe(SIGNED);
    expect(await barriers()).toEqual([]);
    await page.reload();
    await words(page, 'It is shown again without a new payment.').waitFor();
    expect(await link.getAttribute('href')).toBe(SIGNED);
    expect([wallet.signatures(), await paid().earned()]).toEqual([1, before + 100_000n]);
  });

  test('refuses: to carry the payment to another path of this API', async () => {
    const before = await paid().earned();
    const { page } = await payFor('/near');
    await title(page, 'The service points elsewhere').waitFor();
    await words(page, 'Nothing was charged').waitFor();
    const link = page.getByRole('link', { name: 'Open it' });
    expect(await link.getAttribute('href')).toBe(paid().url('/next'));
    expect(paid().upstream.seen.filter(({ url }) => url === '/next')).toEqual([]);
    expect(await paid().earned()).toBe(before);
  });

  test('attack: a redirect to what is no web address is shown as text and is no link', async () => {
    const { page } = await payFor('/odd');
    await title(page, 'The answer is elsewhere').waitFor();
    expect(await page.locator('.answer code').textContent()).toBe('javascript:alert(1)');
    expect(await page.locator('.answer a').count()).toBe(0);
  });
});

test('behaviour: a redirect of a server that knows no Tollgate-Page is not followed either', async () => {
  const { page } = await payFor('/near');
  await title(page, 'The service points elsewhere').waitFor();
  await page.route('**/near', async (route) => {
    if (route.request().headers()['payment-signature'] === undefined) return route.continue();
    await route.fulfill({ status: 302, headers: { location: SIGNED } });
  });
  await click(page, 'Ask again with the same payment');
  await title(page, 'The service points elsewhere').waitFor();
});
