// What a person does at the desk, in a real browser: prices changed in place, routes made and paused, charges found, keys made and
// revoked, sessions that end in the middle, all of it by keys as well.
import { describe, expect, test } from 'vitest';
import { createDeskLab, settled } from './fixture/desk-lab.ts';
import { MOST_CHARGES } from './fixture/server.ts';

const { desk, open } = createDeskLab();

describe('routes', () => {
  test('behaviour: a price is changed in place by keys alone', async () => {
    const { page } = await open('/desk/routes');
    for (const key of ['j', 'j', 'e']) await page.keyboard.press(key);
    await page.getByLabel('New price of').waitFor();
    await page.keyboard.type('0.03');
    await page.keyboard.press('Enter');
    await page.getByText('POST /v1/translate costs 0.03 USDC from now on.').waitFor();
    expect(desk().routes[1]?.amount).toBe('0.03');
    await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toContain('0.03');
  });

  test('refuses: a price that is none, and says why beside the field', async () => {
    const { page } = await open('/desk/routes');
    await page.locator('[data-edit]').first().click();
    await page.getByLabel('New price of').fill('0,10');
    await page.keyboard.press('Enter');
    await page.getByText('Use a point for decimals').waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('New price of').waitFor({ state: 'detached' });
    expect(desk().writes).toEqual([]);
  });

  test('behaviour: a price that somebody else changed meanwhile shows theirs and mine, and either can be taken', async () => {
    const { page } = await open('/desk/routes');
    const route = desk().routes[0];
    if (route === undefined) throw new Error('there are no routes');
    const edit = async (theirs: string, mine: string): Promise<void> => {
      await page.locator('[data-edit]').first().click();
      Object.assign(route, { amount: theirs, updated_at: new Date(Date.now() + Number(mine) * 1_000).toISOString() });
      await page.getByLabel('New price of').fill(mine);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Somebody changed this route' }).waitFor();
      expect(await page.locator('.conflict tbody td').allInnerTexts()).toEqual([theirs, mine]);
    };
    await edit('0.12', '0.15');
    expect(desk().writes).toEqual([]);
    await page.getByRole('button', { name: 'Keep mine' }).click();
    await page.getByText('costs 0.15 USDC from now on').waitFor();
    expect(route.amount).toBe('0.15');
    await edit('0.20', '0.25');
    await page.getByRole('button', { name: 'Take theirs' }).click();
    await page.getByLabel('Change the price of GET /v1/reports/*: 0.20 USDC').waitFor();
    expect(route.amount).toBe('0.20');
  });

  test('behaviour: a route is made, and the pattern says while it is typed what it matches', async () => {
    const { page } = await open('/desk/routes');
    await page.keyboard.press('n');
    await page.getByLabel('Pattern').fill('/v1/maps/*');
    await page.locator('.pattern-help').getByText('/v1/maps/2026/q3').waitFor();
    await page.getByRole('button', { name: 'Create route' }).click();
    await page.getByText('A price is a number such as 0.10.').waitFor();
    await page.getByLabel('Price of one request').fill('0.40');
    await page.getByRole('button', { name: 'Create route' }).click();
    await page.getByRole('link', { name: '/v1/maps/*' }).waitFor();
    expect(desk().routes[0]).toMatchObject({ route_pattern: '/v1/maps/*', method: 'GET', amount: '0.40', name: null });
  });

  test('behaviour: a route is paused, which says that it costs nothing, and taken back', async () => {
    const { page } = await open('/desk/routes');
    await page.getByRole('switch', { name: 'GET /v1/reports/* costs something' }).click();
    await page.getByText('GET /v1/reports/* is paused: it costs nothing now.').waitFor();
    expect(desk().routes[0]?.status).toBe('paused');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('is active: it costs again').waitFor();
    expect(desk().routes[0]?.status).toBe('active');
  });

  test('behaviour: a route that earned something is deleted only after its pattern was typed', async () => {
    const { page } = await open('/desk/routes');
    const before = desk().routes.length;
    await page.locator('[data-open]').first().click();
    await page.getByRole('button', { name: 'Delete route' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete this route?' });
    await dialog.getByLabel('Type /v1/reports/* to delete it').fill('/v1/report');
    await dialog.getByRole('button', { name: 'Delete route' }).click();
    await dialog.getByText('This is not its pattern.').waitFor();
    expect(desk().routes).toHaveLength(before);
    await dialog.getByLabel('Type /v1/reports/* to delete it').fill('/v1/reports/*');
    await dialog.getByRole('button', { name: 'Delete route' }).click();
    await page.getByText('GET /v1/reports/* is deleted').waitFor();
    expect(desk().routes).toHaveLength(before - 1);
  });

  test('behaviour: the filter stands in the address, so that a link shows what its sender saw', async () => {
    const { page } = await open('/desk/routes');
    await page.keyboard.press('/');
    await page.keyboard.type('status:paused');
    await expect.poll(() => page.locator('.routes tbody tr').count()).toBe(1);
    const other = await open(page.url().slice(desk().origin.length));
    expect(await other.page.locator('.routes tbody tr').count()).toBe(1);
    expect(await other.page.getByLabel('Filter routes').inputValue()).toBe('status:paused');
  });

  test('attack: markup in the name of a route is shown as text', async () => {
    Object.assign(desk().routes[0] ?? {}, { name: '<img src=x onerror="complainToTest(1)">' });
    const { page } = await open('/desk/routes');
    await page.getByText('<img src=x onerror="complainToTest(1)">').waitFor();
    expect(await page.locator('main img').count()).toBe(0);
  });
});

describe('charges', () => {
  test.each(['id', 'request_id', 'payer', 'transaction'] as const)(
    'behaviour: a charge is found by its %s',
    async (member) => {
      const charge = desk().charges.find((each) => typeof each['transaction'] === 'string');
      const { page } = await open('/desk/charges');
      await page.keyboard.press('/');
      await page.keyboard.insertText(String(charge?.[member]));
      await page.keyboard.press('Enter');
      await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe(charge?.[member]);
      await settled(page);
      await page.locator(`a[href*="${charge?.id}"]`).click();
      await page.getByRole('heading', { name: 'Timeline' }).waitFor();
      await page.getByText('settle sent').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    },
  );

  test('behaviour: a payment appears by itself while the list is live, and not when that is switched off', async () => {
    const { page } = await open('/desk/charges');
    await expect.poll(() => desk().streams()).toBe(1);
    desk().tell(desk().newCharge(1));
    await expect.poll(() => page.locator('.charges tbody tr').count()).toBe(MOST_CHARGES + 1);
    await page.getByRole('switch', { name: 'Live' }).click();
    await expect.poll(() => desk().streams()).toBe(0);
  });

  test('behaviour: older charges are a page further, and the way back is kept in the history', async () => {
    const { page } = await open('/desk/charges?status=delivered');
    const first = await page.locator('[data-open]').first().getAttribute('href');
    await page.getByRole('button', { name: 'Older' }).click();
    await page.getByText('Page 2').waitFor();
    await settled(page);
    expect(await page.locator('[data-open]').first().getAttribute('href')).not.toBe(first);
    await page.getByRole('button', { name: 'Newer' }).click();
    await page.getByText('Page 1').waitFor();
    await expect.poll(() => page.locator('[data-open]').first().getAttribute('href')).toBe(first);
  });

  test('refuses: a file of charges without days, in a sentence', async () => {
    const { page } = await open('/desk/charges');
    await page.getByRole('button', { name: 'CSV' }).click();
    await page.getByText('Choose the days from and to first.').waitFor();
    expect(desk().writes).toEqual([]);
  });
});

describe('refunds', () => {
  test('behaviour: a charge shows what was sent back, by which transaction, when and by whom', async () => {
    const { page } = await open('/desk/charges?status=delivered');
    await page.locator('[data-open]').first().click();
    const items = page.getByRole('dialog').locator('section', { hasText: 'Refunds' }).locator('li');
    await expect.poll(() => items.count()).toBe(2);
    await items.first().getByText('by ben@example.com').waitFor();
    expect((await items.allInnerTexts()).map((text) => /shown by the chain|by word alone/.exec(text)?.[0])).toEqual([
      ...['shown by the chain', 'by word alone'],
    ]);
  });

  test('behaviour: a refund that the chain does not show is refused in words, and stands by word alone once somebody says so', async () => {
    const owed = desk().charges.find((charge) => charge['owed'] !== null);
    const { page, barriers } = await open(`/desk/charges/${owed?.id}`);
    const sheet = page.getByRole('dialog', { name: 'Charge' });
    await sheet.getByText('tollgate charges refund', { exact: true }).waitFor();
    await sheet.getByRole('button', { name: 'Record a refund' }).click();
    const form = page.getByRole('dialog', { name: 'Record a refund' });
    const record = form.getByRole('button', { name: 'Record refund' });
    await record.click();
    await form.getByText('Say by which transaction it was sent.').waitFor();
    await form.getByLabel('Transaction').fill('a letter');
    await form.getByLabel('Amount').fill('0,01');
    await record.click();
    await form.getByText('Use a point for decimals').waitFor();
    await form.getByLabel('Amount').fill('');
    await record.click();
    await form.getByText('is no transaction of eip155:84532').waitFor();
    expect(await form.getByRole('checkbox').count()).toBe(0);
    await form.getByLabel('Transaction').fill(`0xaa${'1'.repeat(62)}`);
    await record.click();
    await form.getByText('no node answered').waitFor();
    await form.getByLabel('Transaction').fill(`0xbad${'1'.repeat(61)}`);
    await record.click();
    await form.getByText('the transaction holds no transfer to the payer').waitFor();
    expect(await barriers()).toEqual([]);
    expect(owed?.['refunds']).toEqual([]);
    await form.getByLabel('Record it by my word alone').check();
    await record.click();
    await page.getByText('Recorded by your word alone').waitFor();
    await form.waitFor({ state: 'detached' });
    await sheet.getByText('by word alone', { exact: true }).waitFor();
    expect(owed?.['refunds']).toMatchObject([{ transaction: `0xbad${'1'.repeat(61)}`, proven: false }]);
    // All of it is recorded: there is nothing more to say.
    await sheet.getByRole('button', { name: 'Record a refund' }).waitFor({ state: 'detached' });
  });

  test('behaviour: a refund that the chain shows says so, and a viewer has no button for one', async () => {
    const charge = desk().charges.find((each) => each.status === 'settled');
    const address = `/desk/charges/${charge?.id}`;
    const { page } = await open(address);
    await page.getByRole('button', { name: 'Record a refund' }).click();
    const form = page.getByRole('dialog', { name: 'Record a refund' });
    await form.getByLabel('Transaction').fill(`0xcc${'1'.repeat(62)}`);
    await form.getByLabel('Reason').fill('it was late');
    await form.getByRole('button', { name: 'Record refund' }).click();
    await page.getByText(/^The chain shows the transfer: /).waitFor();
    await page.getByRole('dialog', { name: 'Charge' }).getByText('it was late', { exact: true }).waitFor();
    desk().mood.role = 'viewer';
    const unpaid = desk().charges.find((each) => each.status === 'delivered');
    for (const id of [charge?.id, unpaid?.id]) {
      const viewer = await open(`/desk/charges/${id}`);
      await viewer.page.getByRole('heading', { name: 'Refunds' }).waitFor();
      expect(await viewer.page.getByRole('button', { name: 'Record a refund' }).count()).toBe(0);
    }
    expect(desk().writes).toEqual([`POST /v1/billing/charges/${charge?.id}/refunds`]);
  });
});

describe('passes', () => {
  test('behaviour: passes are found by payer, plan and life, which stand in the address, and one by the id of its charge', async () => {
    const { page } = await open('/desk/');
    for (const key of ['g', 's']) await page.keyboard.press(key);
    await page.getByRole('heading', { name: 'Passes', level: 1 }).waitFor();
    const rows = page.locator('.rows tbody tr');
    await expect.poll(() => rows.count()).toBe(desk().passes.length);
    await page.getByRole('button', { name: 'over' }).click();
    await expect.poll(() => rows.count()).toBe(4);
    expect(new URL(page.url()).search).toBe('?live=false');
    await page.getByRole('button', { name: 'over' }).click();
    const [first] = desk().passes;
    await page.keyboard.press('Escape');
    await page.getByLabel('Search passes').fill(first?.payer ?? '');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows.count()).toBe(3);
    await page.getByLabel('Search passes').fill('');
    await expect.poll(() => rows.count()).toBe(desk().passes.length);
    await page.getByLabel('Search passes').fill(String(first?.['charge_id']));
    await page.keyboard.press('Enter');
    const sheet = page.getByRole('dialog', { name: 'Pass' });
    expect((await sheet.getByLabel('What it holds').innerText()).replaceAll(/\s+/g, ' ')).toBe(
      'sold 100 left 87 drawn 12 reserved 1 lapsed 0',
    );
    await sheet.getByRole('link', { name: 'hundred of the plan default' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('?plan=default&pass=hundred');
    await expect.poll(() => rows.count()).toBe(3);
    await page.getByRole('button', { name: 'Show all again, not only plan default' }).click();
    await expect.poll(() => rows.count()).toBe(4);
  });

  test('behaviour: an admin revokes a pass after he was asked, and a viewer cannot', async () => {
    const { page, barriers } = await open('/desk/passes');
    await page.locator('[data-open]').first().click();
    const sheet = page.getByRole('dialog', { name: 'Pass' });
    await sheet.getByRole('button', { name: 'Revoke pass' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke this pass?' });
    await dialog.getByText('87 of 100 is left and lapses').waitFor();
    expect(await barriers()).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(desk().writes).toEqual([]);
    await sheet.getByRole('button', { name: 'Revoke pass' }).click();
    await dialog.getByRole('button', { name: 'Revoke pass' }).click();
    await page.getByText('The pass hundred is revoked: its holder pays again.').waitFor();
    await sheet.getByText('It lets nobody pass any more.').waitFor();
    expect(await sheet.getByRole('button', { name: 'Revoke pass' }).count()).toBe(0);
    await expect.poll(() => page.locator('.rows tbody tr').first().innerText()).toContain('revoked');
    expect(desk().writes).toEqual([`POST /v1/billing/passes/${desk().passes[0]?.id}/revoke`]);
    desk().mood.role = 'viewer';
    const viewer = await open(`/desk/passes/${desk().passes[1]?.id}`);
    await viewer.page.getByText('They are not counted.').waitFor();
    expect(await viewer.page.getByRole('button', { name: 'Revoke pass' }).count()).toBe(0);
  });
});

describe('keys', () => {
  test('behaviour: a key is shown once and goes from the page when somebody has it', async () => {
    const { page } = await open('/desk/keys');
    await page.keyboard.press('n');
    await page.getByRole('textbox', { name: 'Name' }).fill('mobile');
    await page.getByRole('button', { name: 'Make key' }).click();
    const key = await page.getByRole('region', { name: 'Key', exact: true }).innerText();
    expect(key).toMatch(/^tg_\w+/);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByRole('row', { name: /mobile/ }).waitFor();
    expect(await page.content()).not.toContain(key);
  });

  test('behaviour: a webhook gets a test event, and one that is disabled is enabled', async () => {
    const { page } = await open('/desk/keys');
    await page.getByRole('row', { name: /crm.*disabled.*it answered 410.*41 since/ }).waitFor();
    await page.getByRole('button', { name: 'Send a test event to books' }).click();
    await page.getByText('A test event goes to books.').waitFor();
    await page.getByRole('button', { name: 'Enable crm' }).click();
    await page.getByText('crm is enabled; all that waits is sent.').waitFor();
    expect(desk().writes).toEqual(['POST /v1/webhooks/books/test', 'POST /v1/webhooks/crm/enable']);
  });

  test('behaviour: the events of a webhook show every attempt and what came back, and one is sent again', async () => {
    const { page } = await open('/desk/keys');
    await page.getByRole('link', { name: 'crm and its events' }).click();
    const sheet = page.getByRole('dialog', { name: 'Events for crm' });
    await sheet.getByText('<h1>Gone</h1>').waitFor();
    expect(await sheet.getByText(/^(?:no answer|answered \d+)$/).allInnerTexts()).toEqual([
      ...['answered 204', 'answered 410', 'no answer', 'answered 500'],
    ]);
    await sheet.getByText('after an earlier event').waitFor();
    await sheet.getByRole('button', { name: 'Given up' }).click();
    await sheet.getByText('charge.settled').waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?webhook=crm&deliveries=given_up');
    await sheet.getByRole('button', { name: /^Send again: attention.raised evt_\w+$/ }).click();
    await page.getByText('The event is sent to crm once more.').waitFor();
    expect(desk().writes).toEqual([expect.stringMatching(/^POST \/v1\/webhooks\/crm\/deliveries\/evt_\w+\/retry$/)]);
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('');
  });

  test('refuses: a viewer who would send an event again', async () => {
    desk().mood.role = 'viewer';
    const { page } = await open('/desk/keys?webhook=crm');
    const sheet = page.getByRole('dialog', { name: 'Events for crm' });
    await sheet.getByText('charge.settled').waitFor();
    expect(await sheet.getByRole('button', { name: /^Send again/ }).count()).toBe(0);
  });

  test('behaviour: a key is revoked after its name was typed', async () => {
    const { page } = await open('/desk/keys');
    await page.getByRole('button', { name: 'Revoke ci' }).click();
    await page.getByLabel('Type ci to revoke it').fill('cj');
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('This is not its name.').waitFor();
    await page.getByLabel('Type ci to revoke it').fill('ci');
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('The key ci is revoked.').waitFor();
    await page.getByRole('button', { name: 'Revoke ci' }).waitFor({ state: 'detached' });
  });
});

describe('sessions', () => {
  test('behaviour: the code of a link signs in and is gone from the address and the history', async () => {
    desk().mood.isSignedIn = false;
    const { page } = await open('/desk/routes?filter=q#code=good');
    await page.getByRole('heading', { name: 'Routes' }).waitFor();
    expect(page.url()).toBe(`${desk().origin}/desk/routes?filter=q`);
    expect(await page.evaluate<string>("localStorage.getItem('tollgate-desk-key')")).toBe('a-key');
  });

  test('refuses: a wrong link, in a sentence, and takes a token then', async () => {
    desk().mood.isSignedIn = false;
    const { page } = await open('/desk/#code=bad');
    await page.getByText('This link or token is wrong, used or expired.').waitFor();
    await page.getByLabel('Token').fill('good');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  test('behaviour: a session that ends in the middle leaves what was written, and it is saved after signing in again', async () => {
    const { page, barriers } = await open('/desk/routes');
    await page.locator('[data-open]').first().click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Quarterly reports');
    desk().mood.isSignedIn = false;
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByLabel('Token').fill('good');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Quarterly reports');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('GET /v1/reports/* is saved.').waitFor();
    expect(desk().routes[0]?.name).toBe('Quarterly reports');
  });

  test('behaviour: a viewer meets no control that would be refused', async () => {
    desk().mood.role = 'viewer';
    const { page } = await open('/desk/routes');
    expect(await page.locator('main button, main [role=switch]').count()).toBe(0);
    await page.locator('[data-open]').first().click();
    await page.getByText('Without a customer id').waitFor();
    expect(await page.getByRole('dialog').getByRole('button').allInnerTexts()).toEqual(['', '']);
    for (const address of ['/desk/keys', '/desk/receivers']) {
      await page.goto(desk().origin + address);
      await settled(page);
      expect(await page.getByRole('button', { name: /New|Revoke|Check/ }).count()).toBe(0);
    }
    expect(desk().writes).toEqual([]);
  });
});

describe('the registry is away', () => {
  test('behaviour: figures stay with the time that they are of, and go on when it is back', async () => {
    const { page, barriers } = await open('/desk/');
    desk().mood.isAway = true;
    await page.getByRole('button', { name: 'refresh' }).click();
    await page
      .getByText(/As of \d\d:\d\d:\d\d\. The registry does not answer\./)
      .first()
      .waitFor();
    expect(await page.locator('.figure').count()).toBe(4);
    expect(await barriers()).toEqual([]);
    desk().mood.isAway = false;
    const asked = ['overview', 'series', 'top-routes', 'attention'].map((name) =>
      page.waitForRequest((request) => request.url().includes(`/v1/billing/${name}`), { timeout: 10_000 }),
    );
    await page.getByRole('button', { name: 'refresh' }).click();
    // Also those whose range is of the same minute.
    await Promise.all(asked);
    await expect.poll(() => page.locator('.stale-note').count()).toBe(0);
    expect(await page.locator('.figure').count()).toBe(4);
  });

  test('behaviour: a browser without a network says so and keeps what it knew', async () => {
    const { page, context } = await open('/desk/routes');
    await context.setOffline(true);
    await page.getByText('You are offline.').waitFor();
    expect(await page.locator('.routes tbody tr').count()).toBe(desk().routes.length);
    await context.setOffline(false);
    await page.getByText('You are offline.').waitFor({ state: 'detached' });
  });
});

describe('keys of the keyboard', () => {
  test('behaviour: g and a letter goes, ? shows the keys, and all can be switched off', async () => {
    const { page } = await open('/desk/');
    for (const [letter, title] of [
      ['r', 'Routes'],
      ['t', 'Try it'],
      ['c', 'Charges'],
      ['k', 'Keys'],
      ['e', 'Receivers'],
      ['o', 'Overview'],
    ] as const) {
      await page.keyboard.press('g');
      await page.keyboard.press(letter);
      await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
    }
    await page.keyboard.press('?');
    await page.getByLabel('Single keys do something').uncheck();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.keyboard.press('?');
    expect(new URL(page.url()).pathname).toBe('/desk/');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('behaviour: letters written into a field are letters', async () => {
    const { page } = await open('/desk/routes');
    await page.keyboard.press('/');
    await page.keyboard.type('gr?n');
    expect(await page.getByLabel('Filter routes').inputValue()).toBe('gr?n');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });
});

describe('charts and themes', () => {
  test('behaviour: a chart has its figures in a table, and arrow keys read single moments', async () => {
    const { page } = await open('/desk/');
    const chart = page.locator('.chart').first();
    await chart.locator('.drawing').focus();
    await page.keyboard.press('ArrowLeft');
    await chart.locator('.tip').waitFor();
    const said = await chart.locator('.tip b').innerText();
    await chart.getByRole('button', { name: 'Table' }).click();
    const rows = chart.getByRole('row');
    expect(await rows.count()).toBeGreaterThan(22);
    expect(await rows.last().getByRole('cell').innerText()).toBe(said);
  });

  test('behaviour: a theme that was chosen stays after a reload, whatever the system says', async () => {
    const { page } = await open('/desk/', { colorScheme: 'light' });
    await page.getByRole('button', { name: 'Dark' }).click();
    await page.reload();
    await settled(page);
    expect(await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')).toBe(
      'rgb(14, 16, 20)',
    );
  });
});

test('behaviour: the reference is searched by words that stand in its address, and shows how a shell and a program call', async () => {
  const { page } = await open('/desk/api?q=charges+events');
  await expect.poll(() => page.locator('.operation').count()).toBe(1);
  await page.locator('.operation summary').click();
  const text = (): Promise<string> => page.locator('.operation-in').innerText();
  await expect.poll(text).toContain(`curl -N '${desk().origin}/v1/billing/charges/events'`);
  expect(await text()).toContain("for await (const event of tollgate.events('/v1/billing/charges/events'))");
  expect(await text()).toMatch(/event: charge\nid: 42\ndata: \{/);
  await page.getByLabel('Filter endpoints').fill('make an api key');
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('make an api key');
  await page.locator('.operation', { hasText: '/v1/api-keys' }).waitFor();
  await page.getByLabel('Filter endpoints').fill('nothing is like this');
  await page.getByText('No endpoint is like that').waitFor();
});

test('behaviour: what plans let pass without a payment stands beside what was paid, and in the chart with a colour of its own', async () => {
  desk().mood.sellsByPlans = true;
  const { page } = await open('/desk/');
  expect(await page.locator('.figure .also').allInnerTexts()).toEqual(
    // Whole hours of the last day: 23 or 24.
    expect.arrayContaining(
      ['of customers', 'free by plan', 'by pass', 'in a dry run'].map((words) =>
        expect.stringMatching(`^\\d{3} ${words}$`),
      ),
    ),
  );
  await page.getByText('Requests', { exact: true }).click();
  const legend = page.locator('.card', { hasText: 'Requests by hour' });
  await legend.waitFor();
  const fills = new Set<string>();
  for (const [name, tone] of [
    ['Customers', 6],
    ['Free by plan', 7],
    ['By pass', 8],
    ['Dry run', 9],
  ] as const) {
    expect((await legend.innerText()).includes(name)).toBe(true);
    const fill = await page.evaluate<string>(
      `getComputedStyle(document.querySelector('path.column.tone-${tone}')).fill`,
    );
    fills.add(fill);
  }
  // A tone that the style does not know is black.
  expect([fills.size, fills.has('rgb(0, 0, 0)')]).toEqual([4, false]);
});

test('behaviour: the plans say what they decide, earned and gave away, and who need not pay, for the range in the address', async () => {
  const { page } = await open('/desk/');
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  const plan = page.getByRole('region', { name: 'Plan new-api' });
  await plan.locator('.plan-words', { hasText: 'a dry run' }).waitFor();
  expect(await page.getByRole('region').count()).toBe(6);
  expect((await plan.locator('.counts').innerText()).replaceAll(/\s+/g, ' ')).toContain(
    'would have been earned 294.00 USDC',
  );
  const partners = page.getByRole('region', { name: 'Customers partners' });
  expect((await partners.innerText()).replaceAll(/\s+/g, ' ')).toContain('by key · 10,000 a month');
  // A customer's name is text, whatever it holds.
  await partners.getByText('<b>initech</b>').waitFor();
  await page.getByRole('button', { name: '30d' }).click();
  await expect.poll(() => page.url()).toContain('range=30d');
  expect(desk().writes).toEqual([]);
});
