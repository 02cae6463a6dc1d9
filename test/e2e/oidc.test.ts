// Signing in to the desk through an OpenID provider as an operator sets it up and people use it: a process of the build with a
// file, an independent provider at another site, and a real browser that goes there and back.
import { renameSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { tollgate } from '../cli/support.ts';
import { startBrowser, type TestBrowser, type WatchedPage } from '../support/browser.ts';
import { keepSecret } from '../support/canaries.ts';
import { CLIENT_SECRET, startOpenId, type OpenIdProvider } from '../support/openid.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';

const TAKEN = 'configuration reloaded';
const files = temporaryFolder();
let running: TollgateProcess;
let provider: OpenIdProvider;
let browser: TestBrowser;
let origin: string;
beforeAll(async () => {
  files.write('tollgate.yaml', written('sign_in: [link]'));
  [running, browser] = await Promise.all([
    startProcess({ cwd: files.folder, args: ['serve'], listeners: ['registry', 'admin'] }),
    startBrowser(),
  ]);
  origin = running.url('registry');
  provider = await startOpenId({ redirectUris: [`${origin}/desk/oidc/callback`] });
  files.write('secret', `${CLIENT_SECRET}\n`);
  await reload(desk());
});
afterAll(async () => {
  await Promise.all([running.kill(), browser.close(), provider.close()]);
  files.remove();
});

function written(desk: string): string {
  return [
    'registry:',
    '  listen: 127.0.0.1:0',
    '  store: "sqlite:tollgate.db"',
    `  desk: { ${desk} }`,
    'admin: { listen: 127.0.0.1:0 }',
    '',
  ].join('\n');
}
function desk({ admins = '["ann@example.com"]', issuer = provider.issuer } = {}): string {
  const lists = `admins: ${admins}, viewers: ["*@example.com"]`;
  const oidc = `{ issuer: "${issuer}", client_id: tollgate, client_secret_file: secret, ${lists} }`;
  return `public_url: "${origin}", oidc: ${oidc}`;
}
async function reload(desk: string): Promise<void> {
  const before = new Set(running.lines);
  // Renamed over, so that the watch never sees a half.
  renameSync(files.write('next.yaml', written(desk)), path.join(files.folder, 'tollgate.yaml'));
  running.signal('SIGHUP');
  await running.line((line) => line.msg === TAKEN && !before.has(line));
}
async function open(at = '/desk/'): Promise<WatchedPage> {
  const watched = await browser.open({ locale: 'en-GB' }, async (context) => {
    // The provider's forms name a font of another site.
    await context.route('https://fonts.googleapis.com/**', (route) => route.abort());
  });
  onTestFinished(() => watched.context.close());
  await watched.page.goto(origin + at);
  return watched;
}
const begin = (page: Page): Promise<void> => page.getByRole('link', { name: 'Continue with single sign-on' }).click();
async function signIn(page: Page, login: string): Promise<void> {
  await begin(page);
  await finish(page, login);
}
async function finish(page: Page, login: string): Promise<void> {
  await page.getByPlaceholder('Enter any login').fill(login);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}
const key = (page: Page): Promise<string | null> => page.evaluate(() => localStorage.getItem('tollgate-desk-key'));

test('behaviour: somebody goes to the provider and comes back to the view and filters that he came from, signed in', async () => {
  const { page, complaints } = await open('/desk/routes?q=reports');
  await signIn(page, 'ann');
  await page.getByRole('heading', { name: 'Routes', level: 1 }).waitFor();
  expect(page.url()).toBe(`${origin}/desk/routes?q=reports`);
  keepSecret('desk key', (await key(page)) ?? '');
  const cookies = await page.context().cookies(origin);
  expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual(
    expect.arrayContaining([['tollgate_desk', true, 'Strict']]),
  );
  expect(cookies.map(({ name }) => name)).not.toContain('tollgate_flow');
  await page.reload();
  await page.getByText('ann@example.com').first().waitFor();
  expect(complaints).toEqual([]);

  const viewer = await open();
  await signIn(viewer.page, 'bob');
  await viewer.page.getByText('bob@example.com').first().waitFor();

  // Out of the lists: the next request ends it, and the page stays as it is.
  await page.goto(`${origin}/desk/keys`);
  await page.getByText('ann@example.com').first().waitFor();
  await reload(desk({ admins: '[]' }));
  await page.getByRole('link', { name: 'Charges' }).first().click();
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await viewer.page.getByRole('link', { name: 'Charges' }).first().click();
  await viewer.page.getByRole('heading', { name: 'Charges', level: 1 }).waitFor();
  expect(await viewer.page.getByRole('dialog').count()).toBe(0);
  await reload(desk());
  const { stdout: jwt } = await tollgate(['token'], { folder: files.folder });
  const audit = await fetch(`${origin}/v1/audit?kind=session.created`, {
    headers: { Authorization: `Bearer ${jwt.trim()}` },
  });
  expect(JSON.parse(await audit.text())).toMatchObject({
    data: [
      { actor: 'bob@example.com', via: 'oidc', to: { role: 'viewer' } },
      { actor: 'ann@example.com', via: 'oidc', to: { role: 'admin' } },
    ],
  });
  const metrics = await (await fetch(`${running.url('admin')}/metrics`)).text();
  expect(metrics).toContain('tollgate_desk_sign_ins_total{via="oidc",result="ok"} 2');
});

test('attack: somebody is led to a sign-in that should end elsewhere: it ends on the desk, and another site begins none', async () => {
  const { page } = await open();
  for (const to of ['https://evil.example/desk/', '/\\evil.example']) {
    await page.context().clearCookies();
    await page.goto(`${origin}/desk/oidc/start?to=${encodeURIComponent(to)}`);
    await finish(page, 'ann');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(page.url()).toBe(`${origin}/desk/`);
  }
  await page.goto(provider.issuer);
  const answer = page.waitForResponse((response) => response.url().startsWith(origin));
  await page.evaluate(`void (location.href = '${origin}/desk/oidc/start')`);
  expect((await answer).status()).toBe(403);
});

test('behaviour: the page says why a sign-in came to nothing: cancelled, on no list, not verified, the provider away', async () => {
  const { page, barriers } = await open();
  await begin(page);
  await page.getByRole('link', { name: 'Cancel' }).click();
  await page.getByText('The sign-in service refused.').waitFor();
  expect(await barriers()).toEqual([]);
  for (const login of ['mia', 'eve']) {
    const stranger = await open('/desk/charges');
    await signIn(stranger.page, login);
    await stranger.page.getByText('not on the list of people').waitFor();
    expect(new URL(stranger.page.url()).hash).toBe('');
    expect(await key(stranger.page)).toBeNull();
  }
  provider.mood.away = '/token';
  await signIn(page, 'ann');
  await page.getByText('The sign-in service does not answer').waitFor();
  provider.mood.away = undefined;
  await page.goto(`${origin}/desk/oidc/callback?code=a&state=b`);
  await page.getByText('took too long or was begun elsewhere').waitFor();
  const metrics = await (await fetch(`${running.url('admin')}/metrics`)).text();
  expect(metrics).toContain('tollgate_desk_sign_ins_total{via="oidc",result="refused"} 4');
  expect(metrics).toContain('tollgate_desk_sign_ins_total{via="oidc",result="unavailable"} 1');
});

test('behaviour: check --online asks the provider, and says what is wrong with it', async () => {
  const check = async (desk: string): Promise<{ code: number | null; stdout: string }> => {
    const file = files.write('check.yaml', written(desk));
    return tollgate(['check', '--online', '-c', file], { folder: files.folder });
  };
  const { issuer } = provider;
  const fine = await check(desk());
  expect([fine.code, fine.stdout]).toEqual([0, expect.stringContaining(`ok: sign-in: ${issuer} signs people in`)]);
  const other = await check(desk({ issuer: `${issuer}/other` }));
  expect([other.code, other.stdout]).toEqual([1, expect.stringContaining('its discovery document cannot be used')]);
  provider.mood.away = '/';
  const away = await check(desk());
  provider.mood.away = undefined;
  expect([away.code, away.stdout]).toEqual([69, expect.stringContaining(`away: sign-in: ${issuer}`)]);
  const wrong = await check(desk({ issuer: 'http://id.example.com' }));
  expect([wrong.code, wrong.stdout]).toEqual([64, expect.stringContaining('registry.desk.oidc.issuer')]);
  expect(fine.stdout + other.stdout + away.stdout + wrong.stdout).not.toContain(CLIENT_SECRET);
});
