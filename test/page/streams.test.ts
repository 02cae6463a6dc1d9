// Answers without an end, in a real browser over a real chain: shown as they come, stopped by a click, and never more of one in
// the tab than 5 MiB.
import { expect, test } from 'vitest';
import type { ServerResponse } from 'node:http';
import { click, createPageLab, title, words } from '../support/page-lab.ts';

const MIB = 1024 * 1024;
/** Responses that a test writes to, oldest first. */
const open: ServerResponse[] = [];
const { paid, payFor } = createPageLab({
  routes: ['GET /events 0.10', 'GET /bytes 0.10'],
  handle: (req, res) => {
    res.writeHead(200, { 'content-type': req.url === '/events' ? 'text/event-stream' : 'application/octet-stream' });
    res.flushHeaders();
    open.push(res);
  },
});

/** The response that the upstream is about to give, or gives. */
async function answering(before: number): Promise<ServerResponse> {
  await expect.poll(() => open.length).toBe(before + 1);
  const res = open.at(-1);
  if (res === undefined) throw new Error('nothing was asked');
  return res;
}

/** Resolves when it was taken by whoever reads. */
function write(res: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve) => {
    if (res.write(text)) resolve();
    else res.once('drain', resolve);
  });
}

test('behaviour: events are shown as they come, with the bytes so far, and stop by a click', async () => {
  const asked = open.length;
  const before = await paid().earned();
  const { page, barriers, wallet } = await payFor('/events');
  const res = await answering(asked);
  await write(res, 'data: one\n\n');
  await title(page, 'Paid: the answer comes').waitFor();
  const text = page.locator('.answer pre');
  await expect.poll(() => text.textContent()).toContain('data: one');
  await write(res, 'data: two\n\n');
  await expect.poll(() => text.textContent()).toContain('data: two');
  expect(await page.locator('.answer .note').textContent()).toBe('22 bytes so far.');
  expect(await barriers()).toEqual([]);
  await click(page, 'Stop');
  await title(page, 'Stopped').waitFor();
  await words(page, '0.10 USDC was taken').waitFor();
  expect(await text.textContent()).toContain('data: two');
  expect(await barriers()).toEqual([]);
  expect(await paid().earned()).toBe(before + 100_000n);

  await page.reload();
  await words(page, 'It is shown again without a new payment.').waitFor();
  expect(await text.textContent()).toContain('data: two');
  expect([wallet.signatures(), open.length]).toEqual([1, asked + 1]);
  res.end();
});

test('behaviour: events that end are an answer like any other', async () => {
  const asked = open.length;
  const { page } = await payFor('/events');
  (await answering(asked)).end('data: all\n\n');
  await title(page, 'Paid').waitFor();
  expect(await page.locator('.answer pre').textContent()).toBe('data: all\n\n');
});

test('behaviour: events that break off are shown as far as they came, and begin anew only on a click', async () => {
  const asked = open.length;
  const { page, wallet } = await payFor('/events');
  const res = await answering(asked);
  await write(res, 'data: one\n\n');
  await expect.poll(() => page.locator('.answer pre').textContent()).toContain('data: one');
  res.destroy();
  await title(page, 'The connection broke').waitFor();
  expect(open.length).toBe(asked + 1);
  await click(page, 'Ask again with the same payment');
  (await answering(asked + 1)).end('data: again\n\n');
  await title(page, 'Paid').waitFor();
  expect(await page.locator('.answer pre').textContent()).toBe('data: again\n\n');
  expect(wallet.signatures()).toBe(1);
});

test('attack: a stream of events without an end shows at most 1 MiB and holds 5 MiB', async () => {
  const asked = open.length;
  const { page } = await payFor('/events');
  const res = await answering(asked);
  const line = `data: ${'x'.repeat(1018)}\n`;
  for (let sent = 0; sent < 12 * MIB; sent += 64 * 1024) await write(res, line.repeat(64));
  await write(res, 'data: the last\n');
  const text = page.locator('.answer pre');
  await expect
    .poll(() => text.evaluate((pre: { textContent: string }) => pre.textContent.slice(-15)))
    .toContain('data: the last');
  expect(await text.evaluate((pre: { textContent: string }) => pre.textContent.length)).toBeLessThanOrEqual(MIB);
  await page.getByText('The beginning is not shown any more.').waitFor();
  await click(page, 'Stop');
  await title(page, 'Stopped').waitFor();
  await page.getByText('are kept').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Save' }).click(),
  ]);
  let saved = 0;
  for await (const chunk of await download.createReadStream()) saved += (chunk as Buffer).length;
  expect(saved).toBe(5 * MIB);
});

test('behaviour: a long download counts its bytes, and is saved whole', async () => {
  const asked = open.length;
  const { page } = await payFor('/bytes');
  const res = await answering(asked);
  for (let sent = 0; sent < 12; sent++) await write(res, 'x'.repeat(MIB));
  await page.getByText('12.6 MB so far.').waitFor();
  expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(1);
  res.end();
  await title(page, 'Paid').waitFor();
  await words(page, 'too large to be kept in this tab').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Save' }).click(),
  ]);
  let saved = 0;
  for await (const chunk of await download.createReadStream()) saved += (chunk as Buffer).length;
  expect(saved).toBe(12 * MIB);
});
