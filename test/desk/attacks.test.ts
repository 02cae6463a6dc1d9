// Attacks on the desk's sessions in a real browser, over a real registry: what a page of another site, or of another port of
// this host, can make the browser of somebody signed in do, and what a thief does with half of what a session is. What headers
// alone show is in test/registry/desk/attacks; here the browser writes them.
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { makeDeskLink } from '../../src/registry/desk/desk-links.ts';
import { startBrowser, type TestBrowser, type WatchedPage } from '../support/browser.ts';
import { LIST, startRegistry, type Kit } from '../registry/kit.ts';

let kit: Kit;
let browser: TestBrowser;
let other: Server;
/** What reached the other port: its path and what the browser sent with it. */
const seen: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
/** The page that the other port serves. */
let page = '';
const opened: WatchedPage[] = [];

beforeAll(async () => {
  const session = { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 };
  const desk = {
    ...{ publicUrl: undefined, signIn: ['link', 'token'] as const, oidc: undefined },
    session,
    testnet: true,
  };
  other = createServer((req, res) => {
    seen.push({ url: req.url ?? '', headers: req.headers });
    res.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>other</title>${page}`);
  });
  [kit, browser] = await Promise.all([
    startRegistry({ settings: { desk } }),
    startBrowser(),
    new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve)),
  ]);
  const body = { route_pattern: '/reports/*', method: 'GET', amount: '1', currency: 'USDC' };
  expect((await kit.dashboard('POST', LIST, { body })).status).toBe(201);
});
afterEach(async () => {
  const complaints = opened.flatMap((each) => each.complaints);
  await Promise.all(opened.map(({ context }) => context.close()));
  opened.length = 0;
  seen.length = 0;
  page = '';
  expect(complaints).toEqual([]);
});
afterAll(async () => {
  await Promise.all([browser.close(), kit.close(), new Promise((resolve) => other.close(resolve))]);
});

const home = (): string => `http://127.0.0.1:${kit.port}`;
const port = (): number => (other.address() as AddressInfo).port;
/** Another port of the host, which is the same site to a browser; and another site. */
const OTHERS = [
  ['another port of the host', () => `http://127.0.0.1:${port()}`, 'same-site'],
  ['another site', () => `http://localhost:${port()}`, 'cross-site'],
] as const;

async function link(role: 'admin' | 'viewer' = 'admin'): Promise<string> {
  const deps = { store: kit.store.desk, random: createRandom(), now: kit.clock.now };
  const made = await makeDeskLink(deps, home(), { subject: role, role });
  return made === 'full' ? '' : made.url;
}
async function open(url: string): Promise<WatchedPage> {
  const watched = await browser.open({ locale: 'en-GB', reducedMotion: 'reduce' });
  opened.push(watched);
  await watched.page.goto(url);
  return watched;
}
async function signedIn(role?: 'admin' | 'viewer'): Promise<WatchedPage> {
  const watched = await open(await link(role));
  await watched.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  return watched;
}
/** A page of somebody else in a browser that is signed in; what it complains of is its own business. */
async function lure(context: BrowserContext, origin: string, html = ''): Promise<Page> {
  page = html;
  const lured = await context.newPage();
  await lured.goto(origin);
  return lured;
}
/** The session that the page has: the call that it makes of its own. */
const call = (at: Page, method: string, path: string, body?: unknown): Promise<number> =>
  at.evaluate(
    async ([method, path, body]) => {
      const headers = {
        'Tollgate-Desk': localStorage.getItem('tollgate-desk-key') ?? '',
        'Content-Type': 'application/json',
      };
      return (await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }))
        .status;
    },
    [method, path, body] as const,
  );
const stillIn = async (at: Page): Promise<void> => {
  expect(await call(at, 'GET', '/desk/session')).toBe(200);
  const { data } = (await kit.dashboard('GET', LIST)).json;
  expect(data.map(({ route_pattern: pattern, amount }) => [pattern, amount])).toEqual([['/reports/*', '1']]);
};
const refusals = (): string[] => kit.logs.filter((line) => line.includes('sign-in to the desk was refused'));

test('attack: a one-time link is opened again, and looked for in the address, the history and what other sites are told', async () => {
  const url = await link();
  const [, code = ''] = url.split('#code=');
  const { page: first } = await open(url);
  await first.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(first.url()).toBe(`${home()}/desk/`);
  const left = await first.evaluate<string>(
    'JSON.stringify([history.state, document.referrer, { ...localStorage }, { ...sessionStorage }])',
  );
  expect(left).not.toContain(code);
  for (const [, origin] of OTHERS) {
    await first.goto(`${home()}/desk/`);
    await first.evaluate(`void (location.href = '${origin()}/told')`);
    await first.waitForURL(`${origin()}/told`);
  }
  const told = seen.filter(({ url }) => url === '/told');
  expect(told.map(({ headers }) => headers.referer)).toEqual([undefined, undefined]);
  expect(JSON.stringify(seen)).not.toContain(code);
  const { page: second } = await open(url);
  await second.getByText('This does not open the desk').waitFor();
  expect(second.url()).toBe(`${home()}/desk/`);
});

test('attack: a form of another site or port changes a price, makes a key, signs somebody in as the attacker or out', async () => {
  const { page: own, context } = await signedIn();
  const [, code = ''] = (await link('viewer')).split('#code=');
  const before = refusals().length;
  for (const [, origin, site] of OTHERS) {
    for (const [action, type, name, value] of [
      [LIST, 'text/plain', '{"route_pattern":"/stolen","method":"GET","amount":"1","x":"', '"}'],
      ['/v1/api-keys', 'text/plain', '{"name":"mine","scopes":["sdk"],"x":"', '"}'],
      ['/desk/session', 'text/plain', `{"code":"${code}","x":"`, '"}'],
      ['/desk/session', 'application/x-www-form-urlencoded', 'code', code],
      ['/desk/session?_method=DELETE', 'application/x-www-form-urlencoded', '_method', 'DELETE'],
    ] as const) {
      const lured = await lure(
        context,
        origin(),
        `<form method="post" action="${home()}${action}" enctype="${type}"><input name='${name}' value='${value}'><button>Win</button></form>`,
      );
      const answer = lured.waitForResponse((response) => response.url().startsWith(home()));
      await lured.getByRole('button').click();
      const response = await answer;
      // The strict cookie comes along from another port alone, and is refused for where it comes from.
      const expected = action.startsWith('/v1') && site === 'cross-site' ? 401 : 403;
      expect([site, action, response.request().method(), response.status()]).toEqual([site, action, 'POST', expected]);
      // Chromium forgets to close a page whose next document it has just begun to show.
      await lured.waitForURL(({ href }) => href === home() + action);
      await lured.close();
    }
  }
  expect(refusals().length).toBe(before);
  await stillIn(own);
  expect((await kit.dashboard('GET', '/v1/api-keys')).body.toString()).not.toContain('mine');
});

test('attack: a script of another site or port calls with the cookie, reads what comes back, and tries the key’s header', async () => {
  const { page: own, context } = await signedIn();
  for (const [, origin, site] of OTHERS) {
    const lured = await lure(context, origin());
    const outcomes = await lured.evaluate(
      async ([home, list]) => {
        const tried = async (how: RequestInit, path: string = list): Promise<string> => {
          try {
            const response = await fetch(home + path, { credentials: 'include', ...how });
            return `${response.type} ${response.status}`;
          } catch {
            return 'refused';
          }
        };
        const stream = await new Promise((resolve) => {
          const source = new EventSource(`${home}/v1/billing/charges/events`, { withCredentials: true });
          source.addEventListener('open', () => resolve('open'));
          source.addEventListener('error', () => resolve('refused'));
        });
        return [
          await tried({ mode: 'no-cors' }),
          await tried({ mode: 'no-cors', method: 'POST', body: '{}' }),
          await tried({ mode: 'cors' }),
          await tried({ mode: 'cors', headers: { 'Tollgate-Desk': 'a' } }),
          await tried({ mode: 'cors', method: 'DELETE' }, '/desk/session'),
          stream,
        ];
      },
      [home(), LIST] as const,
    );
    // Opaque: sent, and nothing of the answer can be read.
    expect([site, outcomes]).toEqual([site, ['opaque 0', 'opaque 0', 'refused', 'refused', 'refused', 'refused']]);
    await lured.close();
  }
  await stillIn(own);
});

test('attack: the other port of the host gets the cookie itself and shows it: without the key it opens nothing', async () => {
  const { page: own, context } = await signedIn();
  await lure(context, OTHERS[0][1]());
  const cookie = seen.map(({ headers }) => headers.cookie ?? '').find((each) => each.includes('tollgate_desk='));
  expect(cookie).toMatch(/tollgate_desk=[\w-]{43}/);
  const headers = { Host: `127.0.0.1:${kit.port}`, Cookie: cookie ?? '', 'Sec-Fetch-Site': 'same-origin' };
  expect((await kit.ask('GET', LIST, { headers })).status).toBe(401);
  expect((await kit.ask('GET', '/desk/session', { headers })).status).toBe(401);
  // The browser itself, where somebody types the address of an endpoint: the cookie comes along, the key does not.
  const typed = await context.newPage();
  expect((await typed.goto(home() + LIST))?.status()).toBe(403);
  await stillIn(own);
});

test('attack: the key is stolen from the page and used in another browser, which has no cookie', async () => {
  const { page: own } = await signedIn();
  const key = await own.evaluate(() => localStorage.getItem('tollgate-desk-key') ?? '');
  expect(key).toMatch(/^[\w-]{43}$/);
  expect(await own.evaluate('document.cookie')).toBe('');
  const { page: thief } = await open(`${home()}/desk/#key=${key}`);
  await thief.getByRole('heading', { name: 'Sign in to Tollgate' }).waitFor();
  expect(await call(thief, 'GET', LIST)).toBe(401);
  expect(thief.url()).toBe(`${home()}/desk/`);
  await stillIn(own);
});

test('attack: somebody is led to the desk with a made-up key or error: the session that was open goes on', async () => {
  const { page: own, context } = await signedIn();
  const before = await own.evaluate(() => localStorage.getItem('tollgate-desk-key'));
  for (const fragment of [`key=${'A'.repeat(43)}`, 'key=', 'error=refused', 'error=<b>x</b>', 'code=wrong']) {
    const led = await lure(context, OTHERS[1][1](), `<a href="${home()}/desk/#${fragment}">Look</a>`);
    await led.getByRole('link').click();
    await led.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await led.getByText('admin', { exact: true }).first().waitFor();
    expect(await led.evaluate(() => localStorage.getItem('tollgate-desk-key'))).toBe(before);
    await led.close();
  }
  await stillIn(own);
});

test('attack: the desk is framed, opened and looked into by another page', async () => {
  const { page: own, context } = await signedIn();
  for (const [, origin] of OTHERS) {
    const lured = await lure(context, origin(), `<iframe src="${home()}/desk/keys"></iframe><button>Open</button>`);
    await expect.poll(() => lured.frames().map((frame) => frame.url())).toContain('chrome-error://chromewebdata/');
    await lured.evaluate(
      `document.querySelector('button').onclick = () => (globalThis.held = open('${home()}/desk/keys'))`,
    );
    const popup = context.waitForEvent('page');
    await lured.getByRole('button').click();
    const desk = await popup;
    await desk.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    // Each has a browsing group of its own: neither can move, watch or speak to the other.
    await expect.poll(() => lured.evaluate('held.closed')).toBe(true);
    expect(await desk.evaluate('window.opener')).toBeNull();
    await desk.close();
    await lured.close();
  }
  await stillIn(own);
});

test('attack: a name is turned to this address (DNS rebinding): neither the page nor an endpoint answers to it', async () => {
  const { page: own, context } = await signedIn();
  const rebound = await context.newPage();
  for (const path of ['/desk/', '/desk/session', '/desk/oidc/start', '/desk/assets/desk.js']) {
    const response = await rebound.goto(`http://evil.localhost:${kit.port}${path}`);
    expect([path, response?.status(), (await response?.text())?.includes('host_refused')]).toEqual([path, 403, true]);
  }
  const status = await rebound.evaluate(
    async (list) => (await fetch(list, { headers: { 'Tollgate-Desk': 'a'.repeat(43) } })).status,
    LIST,
  );
  expect(status).toBe(403);
  await stillIn(own);
});

test('attack: a viewer sends what the page does not offer', async () => {
  const { page: own } = await signedIn('viewer');
  const [route] = (await kit.dashboard('GET', LIST)).json.data;
  for (const [method, path, body] of [
    ['POST', LIST, { route_pattern: '/mine', method: 'GET', amount: '1' }],
    ['PATCH', `${LIST}/${route?.id}`, { amount: '0.01' }],
    ['DELETE', `${LIST}/${route?.id}`, undefined],
    ['POST', '/v1/api-keys', { name: 'mine', scopes: ['sdk'] }],
    ['POST', '/v1/desk-links', { role: 'admin' }],
  ] as const)
    expect([method, path, await call(own, method, path, body)]).toEqual([method, path, 403]);
  await own.goto(`${home()}/desk/routes`);
  await own.getByText('/reports/*').first().waitFor();
  expect(await own.getByRole('button', { name: /New route|Change the price/ }).count()).toBe(0);
  await stillIn(own);
});

test('attack: the link of a download is opened again, in another browser, and by a link of another site', async () => {
  const { page: own, context } = await signedIn();
  const allow = (): Promise<string> =>
    own.evaluate(async () => {
      const headers = {
        'Tollgate-Desk': localStorage.getItem('tollgate-desk-key') ?? '',
        'Content-Type': 'application/json',
      };
      const path = '/v1/billing/charges.csv?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z';
      const reply = await fetch('/desk/downloads', { method: 'POST', headers, body: JSON.stringify({ path }) });
      return ((await reply.json()) as { url: string }).url;
    });
  const url = await allow();
  const { page: thief } = await open(`${home()}/desk/`);
  expect(await thief.evaluate(async (at) => (await fetch(at)).status, url)).toBe(401);
  const lured = await lure(context, OTHERS[1][1](), `<a href="${home()}${url}">Look</a>`);
  const answer = lured.waitForResponse((response) => response.url() === home() + url);
  await lured.getByRole('link').click();
  expect([401, 403]).toContain((await answer).status());
  // It is still good, once, where it was made.
  const [download] = await Promise.all([
    own.waitForEvent('download'),
    own.evaluate(`Object.assign(document.createElement('a'), { href: '${url}', download: '' }).click()`),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.csv$/);
  const again = await own.evaluate(async (url) => (await fetch(url)).status, url);
  expect(again).toBe(401);
  await stillIn(own);
});
