// The desk over a real registry on SQLite: routes, charges and sums as its endpoints answer them. Signing in is the stand-in's.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import { writePassInSale, type PassInSale } from '../../src/domain/selling/pass.ts';
import { claimOf, hash32, proofOf } from '../cases/claims.ts';
import { LEDGER_KEY, startRegistry, token, type Kit } from '../registry/kit.ts';
import { createDeskLab, settled } from './fixture/desk-lab.ts';

const ROUTES = '/v1/billing/protected-routes';

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry();
  for (const route of [
    { route_pattern: '/reports/*', method: 'GET', amount: '0.10', currency: 'USDC', name: 'Reports' },
    { route_pattern: '/translate', method: 'POST', amount: '0.02', currency: 'USDC' },
  ])
    await kit.dashboard('POST', ROUTES, { body: route });
  await pay(1);
});
afterAll(() => kit.close());

const { open } = createDeskLab(async () => ({ port: kit.port, token: await token({ ttlSeconds: 3_600 }) }));

async function pay(n: number, rest: Partial<Claim> = {}): Promise<string> {
  const claim = claimOf(n, { requestId: `request-${n}`, ...rest });
  await kit.ledger.claim(claim, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
  await kit.ledger.advance(claim.id, { kind: 'settle_started', via: 'v', leaseMs: 60_000 }, { owner: 'one' });
  const proof = proofOf(claim, { transaction: hash32(100 + n) });
  await kit.ledger.advance(claim.id, { kind: 'settled', proof, leaseMs: 60_000 }, { owner: 'one' });
  return claim.id;
}

const amounts = async (): Promise<Record<string, string>> =>
  Object.fromEntries((await kit.dashboard('GET', ROUTES)).json.data.map((each) => [each.route_pattern, each.amount]));

test('behaviour: a price is written with the tag of what was shown, and a change of somebody else in between is shown', async () => {
  const { page } = await open('/desk/routes');
  await page.getByLabel('Change the price of GET /reports/*').click();
  await page.getByLabel('New price of').fill('0.11');
  await page.keyboard.press('Enter');
  await page.getByText('GET /reports/* costs 0.11 USDC from now on.').waitFor();
  expect((await amounts())['/reports/*']).toBe('0.11');
  const route = (await kit.dashboard('GET', ROUTES)).json.data.find((each) => each.route_pattern === '/reports/*');
  await page.getByLabel('Change the price of GET /reports/*').click();
  await kit.dashboard('PATCH', `${ROUTES}/${route?.id}`, { body: { amount: '0.50' } });
  await page.getByLabel('New price of').fill('0.12');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Somebody changed this route' }).waitFor();
  expect((await amounts())['/reports/*']).toBe('0.50');
  await page.getByRole('button', { name: 'Keep mine' }).click();
  await page.getByText('GET /reports/* costs 0.12 USDC from now on.').waitFor();
  expect((await amounts())['/reports/*']).toBe('0.12');
});

test('behaviour: a route is made, paused and deleted; one that is there already leads to it', async () => {
  const { page } = await open('/desk/routes');
  await page.keyboard.press('n');
  await page.getByLabel('Pattern').fill('/maps/{id:int}');
  await page.getByLabel('Price of one request').fill('1');
  await page.getByRole('button', { name: 'Create route' }).click();
  await page.getByRole('switch', { name: 'GET /maps/{id:int} costs something' }).click();
  await page.getByText('GET /maps/{id:int} is paused').waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('Pattern').fill('/maps/:name');
  await page.getByLabel('Price of one request').fill('2');
  await page.getByRole('button', { name: 'Create route' }).click();
  await page.getByRole('link', { name: 'Open that route' }).click();
  const sheet = page.getByRole('dialog', { name: 'GET /maps/{id:int}' });
  await sheet.getByText('Made', { exact: true }).first().waitFor();
  await sheet.getByRole('button', { name: 'Delete route' }).click();
  await page.getByRole('dialog', { name: 'Delete this route?' }).getByRole('button', { name: 'Delete route' }).click();
  await page.getByText('GET /maps/{id:int} is deleted').waitFor();
  expect(Object.keys(await amounts())).not.toContain('/maps/{id:int}');
});

test('behaviour: a charge is found by its request id, told step by step, and the next one appears by itself', async () => {
  const { page } = await open('/desk/charges?q=request-1');
  await page.locator('[data-open]').click();
  await expect.poll(() => page.locator('.timeline li').count()).toBeGreaterThan(1);
  await page.getByRole('dialog').getByText('As JSON').click();
  await page.goto(page.url().replace(/\/charges.*/, '/charges'));
  await settled(page);
  const rows = page.locator('.charges tbody tr');
  await expect.poll(() => rows.count()).toBe(1);
  await expect.poll(() => page.getByRole('switch', { name: 'Live' }).getAttribute('data-state')).toBe('on');
  await pay(2);
  await expect.poll(() => rows.count()).toBe(2);
});

test('behaviour: a pass is shown and revoked as the registry keeps it, and its money is recorded as sent back', async () => {
  const terms = { planId: 'default', termsId: 'hundred', validMs: 86_400_000, scope: 'plan', first: '1' } as const;
  const sale: PassInSale = { ...terms, kind: 'uses', uses: 100 };
  const id = await pay(3, { settle: 'before_response', pass: writePassInSale(sale) });
  await kit.ledger.advance(id, { kind: 'delivered', partial: false }, { owner: 'one' });
  const { page } = await open('/desk/passes');
  await page.locator('[data-open]').click();
  const sheet = page.getByRole('dialog', { name: 'Pass' });
  await sheet.getByRole('button', { name: 'Revoke pass' }).click();
  await page.getByRole('dialog', { name: 'Revoke this pass?' }).getByRole('button', { name: 'Revoke pass' }).click();
  await sheet.getByText('It lets nobody pass any more.').waitFor();
  expect((await kit.ledger.passes.get(id.replace('chg_', 'pass_')))?.book.revokedAt).not.toBeNull();
  await sheet.getByRole('link', { name: 'what was paid for it' }).click();
  const charge = page.getByRole('dialog', { name: 'Charge' });
  await charge.getByRole('button', { name: 'Record a refund' }).click();
  const form = page.getByRole('dialog', { name: 'Record a refund' });
  await form.getByLabel('Transaction').fill(hash32(0xfeed));
  await form.getByRole('button', { name: 'Record refund' }).click();
  // No chain is read here.
  await form.getByText(/The refund is not proven/).waitFor();
  await form.getByLabel('Record it by my word alone').check();
  await form.getByRole('button', { name: 'Record refund' }).click();
  await charge.getByText('by word alone', { exact: true }).waitFor();
  expect((await kit.ledger.get(id))?.refundedAt).not.toBeNull();
  await page.goto(new URL('/desk/audit?kind=pass.revoked', page.url()).href);
  await page.locator('.audit a[href^="/desk/passes/pass_"]').waitFor();
});

test('behaviour: receivers are shown as they are configured, and checked once in a while', async () => {
  const { page, barriers } = await open('/desk/receivers');
  const card = page.getByRole('region', { name: 'Receiver default' });
  await card.getByText('base-sepolia').waitFor();
  await card.getByRole('button', { name: 'Check default' }).click();
  await card.getByText('It can be paid.').waitFor();
  await card.getByRole('button', { name: 'Check default' }).click();
  await card.getByText(/checked a moment ago\. Try again in \d+ s\./).waitFor();
  expect(await barriers()).toEqual([]);
});

test('behaviour: the overview lists sidecars with what each should be looked after for', async () => {
  const status = { name: 'edge-1', version: '1.2.3', since: new Date().toISOString(), revision: 0, ending: false };
  const body = {
    source: 'sidecar-1',
    seq: 1,
    rows: [],
    status: { ...status, ready: false, reasons: ['routes are old'] },
  };
  await kit.ask('POST', '/v1/ledger/totals', { auth: LEDGER_KEY, body });
  const { page } = await open('/desk/');
  const row = page.getByRole('row', { name: 'edge-1' });
  await row.getByText('routes are old').waitFor();
  expect(await row.innerText()).toMatch(/not ready[\s\S]*127\.0\.0\.1/);
});

test('behaviour: the overview shows what the registry counted, and views whose endpoints it lacks say so', async () => {
  const { page, barriers } = await open('/desk/');
  await page.locator('.figure').first().waitFor();
  expect(await page.locator('.figure .value').first().innerText()).toMatch(/\d\.\d\d/);
  expect(await barriers()).toEqual([]);
  for (const [address, title] of [
    ['/desk/api', 'API'],
    ['/desk/keys', 'Keys'],
    ['/desk/receivers', 'Receivers'],
    ['/desk/audit', 'Audit'],
  ] as const) {
    await page.goto(new URL(address, page.url()).href);
    await settled(page);
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    expect(await page.locator('[role=alert]').count()).toBe(0);
  }
});
