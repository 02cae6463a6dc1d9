// What the page says and does when the answer does not come: words follow the charge, the pauses of the server are kept, and no
// button pays again beside words that say not to. Problems are those of the contract's rule "Said".
import type { RequestListener } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Page, Route } from 'playwright-core';
import { connect, createPageLab, click, shownCard, title, words } from '../support/page-lab.ts';

/** What the upstream does with the next requests; else it answers. */
const conducts: RequestListener[] = [];
const { paid, visit, funded, payFor } = createPageLab({
  routes: ['GET /reports/* 0.10', 'GET /upfront 0.10 upfront'],
  handle: (req, res) => {
    const conduct = conducts.shift();
    if (conduct !== undefined) conduct(req, res);
    else res.writeHead(200, { 'content-type': 'application/json' }).end('{"rain":1}');
  },
  more: 'page: { support: "mailto:help@example.com" }',
});
const TRANSACTION = `0x${'ab'.repeat(32)}`;
const RECEIPT = Buffer.from(
  JSON.stringify({ success: true, transaction: TRANSACTION, network: 'eip155:84532' }),
).toString('base64');
type Told = {
  readonly status: number;
  readonly code: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
};

/** The page pays, and is told `problems`, one after the other; then the service answers. Counts the requests that pay. */
async function told(...problems: readonly Told[]): Promise<{
  readonly page: Page;
  readonly asked: () => number;
  readonly barriers: () => Promise<readonly string[]>;
}> {
  const wallet = await funded();
  const { page, barriers } = await visit('/reports/q3', [wallet]);
  await connect(page);
  let asked = 0;
  await page.route('**/reports/q3', async (route: Route) => {
    if (route.request().headers()['payment-signature'] === undefined) return route.continue();
    const problem = problems[Math.min(asked++, problems.length - 1)];
    if (problem === undefined || asked > problems.length) return route.continue();
    const { status, code, members, headers = {} } = problem;
    const body = { type: `/problems/${code}`, title: code, status, code, detail: 'As the server says it.', ...members };
    await route.fulfill({
      status,
      contentType: 'application/problem+json',
      headers: { ...headers },
      body: JSON.stringify(body),
    });
  });
  await click(page, 'Pay 0.10 USDC');
  return { page, barriers, asked: () => asked };
}

const buttons = (page: Page): Promise<readonly string[]> => page.locator('.panel button').allInnerTexts();
const soon = (): string => new Date(Date.now() + 3_600_000).toISOString();

describe('a real upstream', () => {
  test('behaviour: if the upstream dies over a charged request the page says so, asks again by itself and shows the answer', async () => {
    // A connection that was kept is replaced once.
    const dies: RequestListener = (req) => void req.socket.destroy();
    conducts.push(dies, dies);
    const before = await paid().earned();
    const { page, wallet, barriers } = await payFor('/upfront');
    const card = await shownCard(page, 'Paid, and the answer is not here yet');
    expect(card.text).toContain('0.10 USDC was taken. The service behind this page gave no answer.');
    expect(card.buttons).toEqual(['Copy the charge id']);
    expect(await barriers()).toEqual([]);
    await title(page, 'Paid').waitFor();
    expect([wallet.signatures(), await paid().earned()]).toEqual([1, before + 100_000n]);
    conducts.length = 0;
  });

  test('behaviour: if the upstream is away nothing is taken, the page says so, and pays once it is back', async () => {
    const { server, port } = paid().upstream;
    const before = await paid().earned();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    const { page, wallet } = await payFor('/upfront');
    expect((await shownCard(page, 'No answer, and nothing was taken')).text).toContain('Nothing was charged.');
    expect(await paid().earned()).toBe(before);
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
    await title(page, 'Paid').waitFor();
    expect([wallet.signatures(), await paid().earned()]).toEqual([1, before + 100_000n]);
  });
});

describe('502 behind the charge', () => {
  const LATE: Told = {
    ...{ status: 502, code: 'upstream_unreachable' },
    members: { charged: true, charge_id: 'chg_of_the_server', retry_until: soon() },
    headers: { 'payment-response': RECEIPT, 'retry-after': '2' },
  };

  test('behaviour: a 502 behind the charge says what was taken and until when it can be had, is asked again and answered', async () => {
    const { page, asked } = await told(LATE);
    const card = await shownCard(page, 'Paid, and the answer is not here yet');
    for (const said of [
      '0.10 USDC was taken. The service behind this page gave no answer.',
      'the very same request brings the answer without another charge. Do not pay again',
      'It is asked again in 2 seconds.',
      'chg_of_the_server',
    ])
      expect(card.text).toContain(said);
    expect([card.buttons, card.state]).toEqual([['Copy the charge id'], 'Paid']);
    expect(await page.locator('.price').isVisible()).toBe(false);
    await title(page, 'Paid').waitFor();
    expect(asked()).toBe(2);
    expect(await page.locator('.panel dd code.long').innerText()).toBe('chg_of_the_server');
  });

  test('behaviour: a 502 with a long pause is left alone for it, and asked once more only behind a reload', async () => {
    const { page, asked, barriers } = await told({
      ...LATE,
      headers: { 'retry-after': '1800', 'payment-response': RECEIPT },
    });
    await words(page, 'It is asked again in 30 minutes.').waitFor();
    expect(await barriers()).toEqual([]);
    expect(asked()).toBe(1);
    await page.reload();
    await title(page, 'Paid').waitFor();
    expect(asked()).toBe(2);
  });
});

test('behaviour: a 502 that took nothing says so, and is asked again after the pause', async () => {
  const { page, asked } = await told({
    ...{ status: 502, code: 'upstream_unreachable', members: { charged: false, charge_id: 'chg_x' } },
    headers: { 'retry-after': '2' },
  });
  const card = await shownCard(page, 'No answer, and nothing was taken');
  expect(card.text).toContain('Nothing was charged.');
  expect(card.state).toBe('Payment required');
  await title(page, 'Paid').waitFor();
  expect(asked()).toBe(2);
});

test('behaviour: an unknown end says by when it is known, and not to pay again', async () => {
  const { page } = await told({
    ...{ status: 503, code: 'settlement_unknown' },
    members: { charged: 'unknown', charge_id: 'chg_x', retry_until: soon() },
    headers: { 'retry-after': '1' },
  });
  const card = await shownCard(page, 'Your payment is on its way');
  expect(card.text).toContain('Do not pay again.');
  expect(card.buttons).toEqual(['Ask again now']);
  await title(page, 'Paid').waitFor();
});

describe('an owed charge', () => {
  const OWED: Told = {
    ...{ status: 409, code: 'already_paid' },
    members: { charged: true, owed: true, charge_id: 'chg_owed', support: 'mailto:help@example.com' },
    headers: { 'payment-response': RECEIPT },
  };

  test('behaviour: an owed charge says what is owed, the charge, whom to write to, and offers nothing that pays again', async () => {
    const { page, barriers } = await told(OWED, OWED);
    await title(page, 'Paid, and the answer cannot be had').waitFor();
    await words(page, '0.10 USDC was taken, and the service never gave the answer. It is owed to you.').waitFor();
    await words(page, 'Do not pay again.').waitFor();
    expect(await barriers()).toEqual([]);
    expect(await page.locator('.panel dd code.long').innerText()).toBe('chg_owed');
    expect(await page.locator('.panel dl a').getAttribute('href')).toBe(
      `https://sepolia.basescan.org/tx/${TRANSACTION}`,
    );
    expect(await page.getByRole('link', { name: 'Write to help@example.com' }).getAttribute('href')).toBe(
      'mailto:help@example.com?subject=Charge%20chg_owed',
    );
    expect(await buttons(page)).toEqual(['Copy the charge id']);
    await page.reload();
    await title(page, 'Paid, and the answer cannot be had').waitFor();
    expect(await buttons(page)).toEqual(['Copy the charge id']);
  });

  test('attack: support that is no address of a person or a page becomes no link', async () => {
    const { page } = await told({ ...OWED, members: { ...OWED.members, support: 'javascript:alert(1)' } });
    await title(page, 'Paid, and the answer cannot be had').waitFor();
    expect(await page.locator('.panel a').count()).toBe(1);
  });
});

test('behaviour: an answer that was sent before and cannot be sent again offers nothing that pays again', async () => {
  const { page } = await told({
    ...{ status: 409, code: 'already_paid', members: { charged: true, charge_id: 'chg_x' } },
    headers: { 'payment-response': RECEIPT },
  });
  await title(page, 'This was paid already').waitFor();
  expect(await buttons(page)).toEqual(['Copy the charge id']);
  await page.reload();
  await title(page, 'Pay with your wallet').waitFor();
});

describe('on a narrow screen', () => {
  const NARROW = { viewport: { width: 320, height: 700 } };
  const top = async (page: Page, selector: string): Promise<number> =>
    (await page.locator(selector).boundingBox())?.y ?? NaN;

  test('behaviour: the card to pay stands right under the price on a narrow screen, above ways and words', async () => {
    const { page } = await visit('/reports/q3', [await funded()], NARROW);
    await title(page, 'Pay with your wallet').waitFor();
    const [price, pay, ways, more] = await Promise.all(
      ['.price', '.pay', '.offer', '.more'].map((at) => top(page, at)),
    );
    expect(price).toBeLessThan(pay ?? 0);
    expect(pay).toBeLessThan(ways ?? 0);
    expect(ways).toBeLessThan(more ?? 0);
    const button = await page.getByRole('button', { name: 'Connect Test Wallet' }).boundingBox();
    expect((button?.y ?? NaN) + (button?.height ?? NaN)).toBeLessThan(700);
  });

  test('behaviour: a paid answer comes first on a narrow screen, and price and ways are gone', async () => {
    const { page } = await payFor('/reports/q3', NARROW);
    await title(page, 'Paid').waitFor();
    expect(await top(page, '.answer')).toBeLessThan(await top(page, '.what'));
    expect(await top(page, '.what')).toBeLessThan(await top(page, '.pay'));
    for (const gone of ['.price', '.offer', '.steps']) expect(await page.locator(gone).isVisible()).toBe(false);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  });

  test('behaviour: the lines for programs are within a narrow page, and each is copied by its button', async () => {
    const { page, context } = await visit('/reports/q3?a=%27b', [], NARROW);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByText('For programs').click();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    for (const [before, name] of ['JavaScript', 'Commands'].entries()) {
      await page.getByRole('button', { name: `Copy: ${name}` }).click();
      await page.getByText('Copied').nth(before).waitFor();
      const copied = await page.evaluate<string>('navigator.clipboard.readText()');
      expect(copied).toBe(await page.getByRole('region', { name }).innerText());
      expect(copied).toContain(paid().url('/reports/q3?a=%27b'));
    }
  });
});
