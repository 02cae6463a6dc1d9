// Every view of the desk, by every width and theme: nothing that axe finds, nothing that the policy refuses, nothing wider than
// the window. Pictures are kept under coverage/desk, to be looked at.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { createDeskLab, settled } from './fixture/desk-lab.ts';

const PICTURES = path.resolve(import.meta.dirname, '../../coverage/desk');
mkdirSync(PICTURES, { recursive: true });

const { desk, open } = createDeskLab();

const VIEWS: readonly (readonly [name: string, path: string, act?: (page: Page) => Promise<unknown>])[] = [
  ['overview', '/desk/'],
  ['routes', '/desk/routes'],
  ['new-route', '/desk/routes?new=1', (page) => page.getByLabel('Pattern').fill('/v1/reports/*')],
  ['try', '/desk/try?method=GET&path=/v1/reports/2026/q3'],
  ['charges', '/desk/charges'],
  ['charge', '/desk/charges', (page) => page.locator('[data-open]').nth(2).click()],
  ['refunds', '/desk/charges?status=delivered', (page) => page.locator('[data-open]').first().click()],
  ['plans', '/desk/plans'],
  ['passes', '/desk/passes?plan=default'],
  ['pass', '/desk/passes', (page) => page.locator('[data-open]').first().click()],
  ['keys', '/desk/keys'],
  ['webhook', '/desk/keys?webhook=crm'],
  ['receivers', '/desk/receivers', (page) => page.getByRole('button', { name: 'Check default' }).click()],
  ['audit', '/desk/audit'],
  ['api', '/desk/api', (page) => page.locator('summary').nth(1).click()],
];

describe('every view', () => {
  for (const width of [360, 768, 1440])
    test.each([
      ['light', 'overview and routes', VIEWS.slice(0, 4)],
      ['light', 'other views', VIEWS.slice(4)],
      ['dark', 'overview and routes', VIEWS.slice(0, 4)],
      ['dark', 'other views', VIEWS.slice(4)],
    ] as const)(`behaviour: the desk fits ${width} px and has no barrier, %s, %s`, async (colorScheme, _, views) => {
      const { page, barriers } = await open('/desk/', { viewport: { width, height: 900 }, colorScheme });
      const found: string[] = [];
      for (const [name, address, act] of views) {
        await page.goto(desk().origin + address);
        await settled(page);
        await act?.(page);
        await settled(page);
        await page.screenshot({ path: path.join(PICTURES, `${name}-${width}-${colorScheme}.png`) });
        const wider = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        if (wider > 0) found.push(`${name}: ${wider} px wider than the window`);
        found.push(...(await barriers()).map((barrier) => `${name}: ${barrier}`));
      }
      expect(found).toEqual([]);
    });
});

const STATES: readonly (readonly [name: string, address: string, mood: Record<string, unknown>, words: string])[] = [
  ['signed out', '/desk/', { isSignedIn: false }, 'Sign in to Tollgate'],
  ['empty overview', '/desk/', { isEmpty: true }, 'Nothing costs money yet'],
  ['empty routes', '/desk/routes', { isEmpty: true }, 'No routes yet'],
  ['empty charges', '/desk/charges', { isEmpty: true }, 'Nobody has paid yet'],
  ['empty plans', '/desk/plans', { isEmpty: true }, 'No plans'],
  ['plans of an old registry', '/desk/plans', { missing: ['/v1/'] }, 'Plans cannot be shown'],
  ['empty passes', '/desk/passes', { isEmpty: true }, 'No passes were sold yet'],
  ['passes of an old registry', '/desk/passes', { missing: ['/v1/'] }, 'Passes cannot be shown'],
  ['unknown pass', '/desk/passes/pass_none', {}, 'No such pass'],
  ['empty webhook', '/desk/keys?webhook=books', { isEmpty: true }, 'Nothing was sent yet'],
  ['unknown webhook', '/desk/keys?webhook=nobody', {}, 'No such webhook'],
  ['empty receivers', '/desk/receivers', { isEmpty: true }, 'No receivers'],
  ['empty audit', '/desk/audit', { isEmpty: true }, 'Nothing has been changed yet'],
  ['error', '/desk/routes', { broken: ['/v1/billing'] }, 'Something went wrong in the registry'],
  ['old registry', '/desk/', { missing: ['/v1/'] }, 'The overview cannot be shown'],
  ['old registry, receivers', '/desk/receivers', { missing: ['/v1/'] }, 'Receivers cannot be shown'],
];

test.each(['light', 'dark'] as const)(
  'behaviour: states without data say what is and what to do, and have no barrier, %s',
  async (colorScheme) => {
    const found: string[] = [];
    for (const [name, address, mood, words] of STATES) {
      Object.assign(desk().mood, { isSignedIn: true, isEmpty: false, broken: [], missing: [] }, mood);
      const { page, barriers, context } = await open(address, { colorScheme });
      await page.getByText(words).first().waitFor();
      await page.screenshot({ path: path.join(PICTURES, `state-${name.replaceAll(/\W+/g, '-')}-${colorScheme}.png`) });
      found.push(...(await barriers()).map((barrier) => `${name}: ${barrier}`));
      await context.close();
    }
    expect(found).toEqual([]);
  },
);

test('behaviour: a first load that takes longer than 150 ms shows where things will be', async () => {
  const { page } = await open('/desk/keys');
  const seen = Promise.withResolvers<void>();
  desk().mood.hold = seen.promise;
  await page.getByRole('link', { name: 'Audit' }).click();
  await page.locator('.skeleton').waitFor();
  seen.resolve();
  await page.locator('.audit').waitFor();
  expect(await page.locator('.skeleton').count()).toBe(0);
});
