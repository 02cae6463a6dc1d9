// The first hour of a new owner with the desk: a process of the build on SQLite with real payments behind it, and a real browser
// in front. Nothing stands in for the registry here. After each step axe looks at the page; what it throws, complains of or what
// its policy refuses fails the test.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { settled } from '../desk/fixture/desk-lab.ts';
import { startBrowser, type TestBrowser, type WatchedPage } from '../support/browser.ts';
import { keepSecret } from '../support/canaries.ts';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';

const FORMULA = '=HYPERLINK("https://evil.example","Refund")';

let paid: PaidTollgate;
let browser: TestBrowser;
beforeAll(async () => {
  [paid, browser] = await Promise.all([startPaidTollgate({ routes: ['GET /reports/* 0.10'] }), startBrowser()]);
});
afterAll(() => Promise.all([paid.stop(), browser.close()]));

const origin = (): string => paid.tollgate().url('registry');
/** What `tollgate desk` prints. The system chose the port, so the registry itself is asked for the link. */
async function link(...args: string[]): Promise<string> {
  return paid.cli('desk', '--url', origin(), '--token', await paid.cli('token'), ...args);
}
async function open(...args: string[]): Promise<WatchedPage> {
  const watched = await browser.open({
    ...{ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC' },
  });
  onTestFinished(() => watched.context.close());
  await watched.page.goto(await link(...args));
  await settled(watched.page);
  keepSecret('desk key', await watched.page.evaluate<string>("localStorage.getItem('tollgate-desk-key')"));
  return watched;
}
async function go(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).first().click();
  await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
  await settled(page);
}
const statusFor = async (key: string): Promise<number> => {
  const reply = await fetch(`${origin()}/v1/protected-routes/routes`, { headers: { authorization: `Bearer ${key}` } });
  await reply.body?.cancel();
  return reply.status;
};

test('behaviour: an owner signs in by a link, changes a price, finds the payment, keeps books, makes and revokes a key, and goes on after the session ends', async () => {
  const { page, context, complaints, barriers } = await open();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(page.url()).toBe(`${origin()}/desk/`);
  expect(await barriers()).toEqual([]);

  // A price changed in place is what the next request is asked for.
  await go(page, 'Routes');
  await page.getByLabel('Change the price of GET /reports/*').click();
  await page.getByLabel('New price of').fill('0.25');
  await page.keyboard.press('Enter');
  await page.getByText('GET /reports/* costs 0.25 USD from now on.').waitFor();
  expect(await barriers()).toEqual([]);
  const quote = await paid.quote('/reports/q3');
  expect(quote.amount).toBe('250000');

  // The payment comes in while the list of charges is open, and is found again by its id.
  await go(page, 'Charges');
  await page.getByText('Live', { exact: true }).waitFor();
  await expect.poll(() => page.getByRole('switch', { name: 'Live' }).getAttribute('data-state')).toBe('on');
  const headers = { 'x-customer-id': FORMULA };
  const answer = await paid.pay('/reports/q3', await paid.sign(quote), { headers });
  expect([answer.status, await paid.earned()]).toEqual([200, 250_000n]);
  const [charge] = await paid.charges();
  const id = charge?.id ?? '';
  await page.locator(`.charges a[href*="${id}"]`).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type(id.slice(0, 20));
  await page.keyboard.press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe(id.slice(0, 20));
  await settled(page);
  await page.locator(`.charges a[href*="${id}"]`).click();
  const panel = page.getByRole('dialog');
  await panel.getByRole('heading', { name: 'Timeline' }).waitFor();
  await panel.getByText('delivered').first().waitFor();
  await panel.getByText(FORMULA).first().waitFor();
  expect(await barriers()).toEqual([]);
  await page.keyboard.press('Escape');

  // The file for the books: what the payer wrote stays text in a spreadsheet.
  const day = String(charge?.['created_at']).slice(0, 10);
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  await page.getByLabel('From').fill(day);
  await page.getByLabel('To').fill(next);
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
  const [head = '', row = '', ...rest] = readFileSync(await file.path(), 'utf8').split('\r\n');
  expect([head.split(',').slice(0, 1), rest]).toEqual([['id'], ['']]);
  expect(row.startsWith(id)).toBe(true);
  expect(row).toContain(`"'${FORMULA.replaceAll('"', '""')}"`);
  expect(row.split(',').filter((cell) => /^"?[=+\-@\t\r]/.test(cell))).toEqual([]);

  // A key is good from the moment that it is shown until it is revoked.
  await go(page, 'Keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('mobile');
  await page.getByRole('button', { name: 'Make key' }).click();
  const key = (await page.getByRole('region', { name: 'Key', exact: true }).innerText()).trim();
  keepSecret('API key', key);
  expect(await statusFor(key)).toBe(200);
  await page.getByRole('button', { name: 'I have it' }).click();
  await page.getByRole('row', { name: /mobile/ }).waitFor();
  expect(await barriers()).toEqual([]);
  await page.getByRole('button', { name: 'Revoke mobile' }).click();
  await page.getByLabel('Type mobile to revoke it').fill('mobile');
  await page.getByRole('button', { name: 'Revoke key' }).click();
  await page.getByText('The key mobile is revoked.').waitFor();
  expect(await statusFor(key)).toBe(401);

  // What was earned stands on the first page.
  await go(page, 'Overview');
  await expect.poll(() => page.locator('.figure').first().innerText()).toContain('0.25');

  // Somebody ends the session from a terminal: what was written stays, and is saved after signing in elsewhere.
  await go(page, 'Routes');
  await page.locator('[data-open]').first().click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Quarterly reports');
  await paid.cli('desk', 'revoke', '--all');
  await page.getByRole('button', { name: 'Save changes' }).click();
  const ended = page.getByRole('heading', { name: 'Your session has ended' });
  await ended.waitFor();
  await page.getByText('tollgate desk --open').waitFor();
  expect(await barriers()).toEqual([]);
  const second = await context.newPage();
  await second.goto(await link());
  await second.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await ended.waitFor({ state: 'detached' });
  expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Quarterly reports');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByText('GET /reports/* is saved.').waitFor();
  expect(complaints).toEqual([]);
});

test('behaviour: a viewer sees all of it and is offered nothing that would be refused', async () => {
  const { page, complaints, barriers } = await open('--role', 'viewer', '--as', 'accounting');
  await page.getByText('accounting').first().waitFor();
  await go(page, 'Routes');
  await page.getByText('/reports/*').first().waitFor();
  expect(await page.locator('main button, main [role=switch]').count()).toBe(0);
  expect(await barriers()).toEqual([]);
  await go(page, 'Charges');
  await page.locator('.charges [data-open]').first().waitFor();
  for (const name of ['Keys', 'Receivers', 'Audit', 'API', 'Try it']) {
    await go(page, name);
    expect([name, await page.getByRole('button', { name: /New|Revoke|Check/ }).count()]).toEqual([name, 0]);
    expect([name, await page.locator('[role=alert]').count()]).toEqual([name, 0]);
  }
  expect(complaints).toEqual([]);
});
