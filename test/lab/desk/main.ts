// How fast the desk is with many routes, in a real browser on this machine: `node test/lab/desk/main.ts [ROUTES]`. Prints the
// time to the first paint, to the first row, and from a letter in the filter to the answer in the table, best and middle of ten.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startRegistry, token } from '../../registry/kit.ts';
import { startBrowser } from '../../support/browser.ts';
import { startFixture } from '../../desk/fixture/server.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const count = process.argv[2] ?? '100000';
const TIMES = 10;

/** Notes when the first row of the table stands there. */
const WATCH = `new MutationObserver((_, observer) => {
  if (document.querySelector('tbody [data-row]') === null) return;
  observer.disconnect();
  requestAnimationFrame(() => (globalThis.firstRow = performance.now()));
}).observe(document, { childList: true, subtree: true })`;

/** Writes into the filter as a person does, and says how long it took until the table stood as the registry answered. */
const FILTER = `new Promise((resolve) => {
  const field = document.querySelector('[data-search]');
  const table = () => document.querySelector('tbody')?.textContent ?? '';
  const before = table();
  const start = performance.now();
  const look = () => table() === before ? requestAnimationFrame(look) : resolve(performance.now() - start);
  field.value = field.value === '' ? 'a1' : '';
  field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  look();
})`;

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-desk-'));
const file = path.join(folder, 'tollgate.db');
execFileSync(process.execPath, [path.join(ROOT, 'bench/seed.ts'), ROOT, file, count]);
const kit = await startRegistry({ file });
const desk = await startFixture({ behind: { port: kit.port, token: await token({ ttlSeconds: 3_600 }) } });
const browser = await startBrowser();
const paints: number[] = [];
const rows: number[] = [];
for (let time = 0; time < TIMES; time += 1) {
  const { page, context } = await browser.open({}, async (opened) => {
    await opened.addInitScript({ content: WATCH });
  });
  await page.goto(`${desk.origin}/desk/routes`);
  await page.locator('tbody [data-row]').first().waitFor();
  paints.push(await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
  rows.push(await page.evaluate<number>('firstRow'));
  await context.close();
}
const { page } = await browser.open();
await page.goto(`${desk.origin}/desk/routes`);
await page.locator('tbody [data-row]').first().waitFor();
const answers: number[] = [];
for (let time = 0; time < TIMES; time += 1) answers.push(await page.evaluate<number>(FILTER));
await browser.close();
await desk.close();
await kit.close();
rmSync(folder, { recursive: true });
for (const [name, times] of Object.entries({ 'first paint': paints, 'first row': rows, 'filter answered': answers })) {
  const sorted = times.map((each) => Math.round(each)).toSorted((a, b) => a - b);
  console.log(`${name}: best ${sorted[0]} ms, middle ${sorted[Math.floor(sorted.length / 2)]} ms (${count} routes)`);
}
