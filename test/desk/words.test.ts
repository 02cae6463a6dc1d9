// Amounts, counts, times and ids as the desk writes them, addresses as it reads them, and what its charts draw: without a browser.
import { describe, expect, test } from 'vitest';
import { areaPath, labelIndexes, linePath, pointsOf, valueTicks } from '../../src/desk/charts/scale.ts';
import { axisAmount, groupAmount, moneyText, priceFault } from '../../src/desk/format/money.ts';
import { agoText, createTimeWords, hourAgoText } from '../../src/desk/format/moments.ts';
import { changeOf, countText, millisecondsText, shareText, shortCount } from '../../src/desk/format/numbers.ts';
import { shortened } from '../../src/desk/format/shortened.ts';
import { createEventParser, type ServerEvent } from '../../src/desk/net/event-reader.ts';
import { hrefOf, readPlace, VIEWS } from '../../src/desk/router/view-addresses.ts';
import { AUDIT_KINDS, AUDIT_WAYS } from '../../src/domain/audit.ts';
import { KINDS, placeOf, WAYS } from '../../src/desk/views/audit/audit-words.ts';
import { leftText, partText, readPassSearch } from '../../src/desk/views/passes/pass-words.ts';
import { canRefund, recordedText, recorderOf } from '../../src/desk/views/charges/refund-words.ts';
import { csvFault, questionOf, readChargeFilter } from '../../src/desk/views/charges/charge-filter.ts';
import { mergeCharges } from '../../src/desk/views/charges/charge-merge.ts';
import { API } from '../../src/registry/api.ts';
import { describeApi } from '../../src/registry/http/openapi-document.ts';
import { callOf, curlOf, exampleOf, operationsOf, shownExample } from '../../src/desk/views/reference/api-document.ts';
import { readRouteFilter } from '../../src/desk/views/routes/route-filter.ts';
import { boundsOf } from '../../src/desk/views/overview/range.ts';
import { readHeader } from '../../src/desk/views/try/decoded-header.ts';
import type { ChargeRecord, RefundRecord } from '../../src/desk/wire/billing.ts';
import type { AuditLine } from '../../src/desk/wire/house.ts';

describe('money', () => {
  test.each([
    ['0.1', '0.10'],
    ['0.000400', '0.0004'],
    ['1234567.5', '1,234,567.50'],
    ['12345678901234567890.123456789012345678', '12,345,678,901,234,567,890.123456789012345678'],
    ['-3', '-3.00'],
    ['not money', 'not money'],
  ])('behaviour: an amount of %s is written %s, to the last unit', (amount, text) => {
    expect(groupAmount(amount)).toBe(text);
  });

  test.each(['0', '0.00', '', '-1', '1e3', '0,10', '.5', '01', '1234567890123', '0.1234567890123456789'])(
    'refuses: %s as a price',
    (text) => {
      expect(priceFault(text)).toMatch(/\.$/);
    },
  );

  test('behaviour: a price, an amount with its currency and the marks of an axis are short', () => {
    expect([priceFault('0.0001'), moneyText('5', 'USDC')]).toEqual([null, '5.00 USDC']);
    expect([0, 0.0025, 0.5, 12, 12_500, 2_000_000].map(axisAmount)).toEqual([
      '0',
      '0.0025',
      '0.5',
      '12',
      '12.5k',
      '2M',
    ]);
  });
});

describe('numbers and times', () => {
  test('behaviour: counts, shares and changes', () => {
    expect([countText(1_234_567), shortCount(999), shortCount(12_400), shortCount(999_600)]).toEqual([
      ...['1,234,567', '999', '12.4k', '1M'],
    ]);
    expect([shareText(0), shareText(0.0001), shareText(0.051), shareText(0.639), shareText(1)]).toEqual([
      ...['0 %', 'under 0.1 %', '5.1 %', '63.9 %', '100 %'],
    ]);
    expect([changeOf(5, 0), changeOf(0, 0)?.text, changeOf(110, 100), changeOf(50, 100)?.direction]).toEqual([
      ...[null, 'no change', { direction: 'up', text: '10.0 %' }, 'down'],
    ]);
    expect([0.34, 12.345, 1_400, 25_000].map(millisecondsText)).toEqual(['0.34 ms', '12.3 ms', '1400 ms', '25.0 s']);
  });

  test('behaviour: times, also where a browser names a language that is none', () => {
    const at = Date.UTC(2026, 10, 25, 12, 3, 9);
    for (const language of ['en-GB', 'en-US@posix', undefined]) {
      const words = createTimeWords(language, 'UTC');
      expect(words.clock(at)).toBe('12:03:09');
      expect(words.moment(at, at)).toMatch(/25/);
    }
    expect(createTimeWords('en-GB', 'UTC').moment(at, Date.UTC(2028, 0, 1))).toContain('2026');
    expect([3, 40, 200, 7_300, 400_000].map((seconds) => agoText(at - seconds * 1_000, at))).toEqual([
      ...['just now', '40 s ago', '3 min ago', '2 h ago', '5 days ago'],
    ]);
  });

  test('behaviour: when a key was last used is told by the hour, as it is known, and not as if to the minute', () => {
    const [hour, minute] = [3_600_000, 60_000];
    expect([0, 59 * minute].map((passed) => hourAgoText(10 * hour, 10 * hour + passed))).toEqual(
      Array(2).fill('within the hour'),
    );
    expect(hourAgoText(10 * hour, 12 * hour)).toBe('2 h ago');
  });

  test('behaviour: ids keep their beginning and end', () => {
    expect([shortened('0x1234567890abcdef1234'), shortened('short')]).toEqual(['0x123456…1234', 'short']);
  });
});

describe('addresses', () => {
  test('behaviour: every view has one address, and it leads back to the view', () => {
    expect(VIEWS.map((view) => readPlace(hrefOf(view))?.view)).toEqual(VIEWS);
    expect(readPlace(hrefOf('charges', 'chg_a/b?c'))).toEqual({ view: 'charges', id: 'chg_a/b?c' });
    expect(readPlace(hrefOf('passes', 'pass_a'))).toEqual({ view: 'passes', id: 'pass_a' });
  });

  test.each([
    '/',
    '/desk',
    '/desk/none',
    '/desk/keys/1',
    '/desk/routes/1/2',
    '/desk/overview',
    '/other/routes',
    '/desk/routes/%',
  ])('behaviour: %s is no view, or the overview', (path) => {
    expect(readPlace(path) ?? 'none').toEqual(path === '/desk' ? { view: 'overview', id: null } : 'none');
  });

  test('behaviour: a filter of routes is words and members; a pattern with a colon is a word, an unfinished member nothing', () => {
    expect(readRouteFilter('status:Paused method:get source:sdk  reports /:id status:')).toEqual({
      ...{ status: 'paused', method: 'GET', source: 'sdk', q: 'reports /:id' },
    });
  });

  test('behaviour: filters of charges become a question, whose last day counts whole', () => {
    const filter = readChargeFilter(new URLSearchParams('q=%20chg_1%20&status=failed,settled&to=2026-01-31&x=1'));
    expect(questionOf(filter)).toMatchObject({ q: 'chg_1', status: 'failed,settled', to: '2026-02-01', network: null });
    expect(csvFault(filter)).toMatch(/Choose/);
    expect(csvFault({ ...filter, from: '2026-01-01' })).toBeNull();
    expect(csvFault({ ...filter, from: '2025-10-31' })).toMatch(/At most 92/);
    expect(csvFault({ ...filter, from: '2026-02-02' })).toMatch(/after/);
  });
});

describe('charts', () => {
  test.each([
    [0, [0, 1]],
    [1, [0, 0.25, 0.5, 0.75, 1]],
    [17, [0, 5, 10, 15, 20]],
    [1_234, [0, 500, 1_000, 1_500]],
    [0.003, [0, 0.001, 0.002, 0.003]],
  ])('behaviour: an axis for %d has round steps', (highest, ticks) => {
    expect(valueTicks(highest)).toEqual(ticks);
  });

  test('behaviour: labels are as far apart as there is room', () => {
    expect(labelIndexes(24, 6)).toEqual([1, 5, 9, 13, 17, 21]);
    expect([labelIndexes(3, 9), labelIndexes(0, 9), labelIndexes(5, 0)]).toEqual([[0, 1, 2], [], []]);
  });

  test('behaviour: values become points, lines and areas in pixels', () => {
    const points = pointsOf([0, 5, 10], { left: 10, width: 20, bottom: 100, height: 50 }, 10);
    expect(points).toEqual([
      [10, 100],
      [20, 75],
      [30, 50],
    ]);
    expect(linePath(points)).toBe('M10 100L20 75L30 50');
    expect(areaPath(points, 100)).toBe('M10 100L20 75L30 50L30 100L10 100Z');
    expect([areaPath([], 100), linePath([])]).toEqual(['', '']);
  });
});

describe('what the registry sends', () => {
  test('behaviour: events come out whole however their bytes are cut', () => {
    const text = ': hello\r\n\r\nid: 7\nevent: charge\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\n';
    const expected = [
      { id: '7', type: 'charge', data: '{"a":\n1}' },
      { id: '7', type: 'message', data: 'x' },
    ];
    for (let cut = 1; cut < text.length; cut += 1) {
      const events: ServerEvent[] = [];
      const parse = createEventParser((event) => void events.push(event));
      for (let at = 0; at < text.length; at += cut) parse(text.slice(at, at + cut));
      expect([cut, events]).toEqual([cut, expected]);
    }
  });

  test('behaviour: a charge that was told twice stands once, as it was told last', () => {
    const charge = (id: string, created: string, updated: string): ChargeRecord =>
      ({ id, created_at: created, updated_at: updated }) as ChargeRecord;
    const listed = [charge('b', '2', '5'), charge('a', '1', '1')];
    const told = [charge('a', '1', '3'), charge('c', '3', '3'), charge('b', '2', '4')];
    expect(mergeCharges(listed, told)).toEqual([charge('c', '3', '3'), charge('b', '2', '5'), charge('a', '1', '3')]);
  });

  test('behaviour: a header in base64 is read as JSON, and anything else stays as it is', () => {
    expect(readHeader(Buffer.from('{"a":"é"}').toString('base64'))).toBe('{\n  "a": "é"\n}');
    expect([readHeader('plain'), readHeader('{broken')]).toEqual(['plain', '{broken']);
  });

  test('behaviour: the reference is made from a document, with an example of each body and a command', () => {
    const document = {
      paths: {
        '/v1/things/{id}': {
          post: {
            tags: ['things'],
            summary: 'Make a thing',
            security: [{ jwt: [] }, { desk: [] }],
            parameters: [{ name: 'id', in: 'path', required: true, schema: { enum: ['a', 'b'] } }],
            requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
            responses: { 201: { description: 'The thing', content: { 'application/json': { example: { id: 1 } } } } },
          },
        },
      },
      components: {
        schemas: {
          Thing: {
            type: 'object',
            properties: { name: { type: 'string', examples: ['it’s'] }, of: { $ref: '#/components/schemas/Thing' } },
          },
        },
      },
    };
    const [{ tag, about, operations: [operation] } = { tag: '', about: null, operations: [] }] = operationsOf(
      { ...document, tags: [{ name: 'things', description: 'All of them.' }] },
      'make THINGS',
    );
    expect([tag, about]).toEqual(['things', 'All of them.']);
    expect(operationsOf(document, 'other')).toEqual([]);
    expect(operation?.parameters).toEqual([{ name: 'id', place: 'path', required: true, about: 'a, b' }]);
    expect(operation?.security).toEqual(['jwt', 'desk']);
    expect(exampleOf(operation?.body, document)).toMatchObject({ name: 'it’s', of: { name: 'it’s' } });
    expect(exampleOf(operation?.responses[0]?.content, document)).toEqual({ id: 1 });
    if (operation === undefined) throw new Error('there is no operation');
    expect(curlOf(operation, 'http://localhost:1', { a: "'" })).toContain(`-d '{"a":"'\\''"}'`);
    expect(callOf(operation, { a: "it's" })).toBe(
      "const { data, error } = await tollgate.POST('/v1/things/{id}', {\n  params: {\n    id: '...'\n  },\n  body: {\n    a: 'it\\'s'\n  }\n});",
    );
    expect([shownExample('id: 1\n\n'), shownExample({ a: 1 })]).toEqual(['id: 1', '{\n  "a": 1\n}']);
  });

  test('behaviour: every endpoint is found by its path, and has a call by the client', () => {
    const document = JSON.parse(JSON.stringify(describeApi(API, '1.2.3'))) as Record<string, unknown>;
    const all = operationsOf(document).flatMap(({ operations }) => operations);
    expect(all.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
      API.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
    const found = (words: string): string[] =>
      operationsOf(document, words)
        .flatMap(({ operations }) => operations)
        .map(({ path }) => path);
    expect(found('charges events')).toEqual(['/v1/billing/charges/events']);
    expect(found('exportCharges')).toEqual(['/v1/billing/charges.csv']);
    const calls = all.flatMap((each) => callOf(each, each.body === null ? null : exampleOf(each.body, document)) ?? []);
    expect(calls.filter((call) => call.includes('tollgate.pages')).length).toBeGreaterThan(2);
    expect(calls.filter((call) => call.includes('tollgate.events'))).toHaveLength(2);
  });
});

test('behaviour: a range ends with the minute that goes on, so that what was paid a moment ago is in the figures', () => {
  const now = Date.parse('2026-06-01T14:48:32Z');
  expect(boundsOf('24h', now)).toEqual({ from: '2026-05-31T14:49:00.000Z', to: '2026-06-01T14:49:00.000Z' });
  expect(boundsOf('7d', Date.parse('2026-06-01T14:48:00Z')).to).toBe('2026-06-01T14:49:00.000Z');
});

test('behaviour: the audit view knows every kind of entry and every way in which somebody was known, and no others', () => {
  expect([...KINDS].toSorted()).toEqual([...AUDIT_KINDS].toSorted());
  expect(Object.keys(WAYS).toSorted()).toEqual([...AUDIT_WAYS].toSorted());
  const kinds = ['route.updated', 'webhook.disabled', 'session.ended'];
  expect(kinds.map((kind) => placeOf(kind, 'a b'))).toEqual([
    '/desk/routes/a%20b',
    '/desk/keys?webhook=a%20b',
    undefined,
  ]);
});

test('behaviour: what is left of a pass is written in uses or money, and a pasted id leads to the pass', () => {
  const uses = { kind: 'uses', currency: 'USDC', sold: '1000', left: '998' } as const;
  const credit = { kind: 'credit', currency: 'USDC', sold: '5', left: '4.979998' } as const;
  expect([leftText(uses), leftText(credit)]).toEqual(['998 of 1,000', '4.979998 of 5.00 USDC']);
  expect(leftText({ kind: 'seconds', currency: 'USDC', sold: null, left: null })).toBeNull();
  expect([partText(uses, '1000'), partText(credit, '0'), partText(uses, null)]).toEqual(['1,000', '0.00 USDC', '–']);
  expect(['pass_a', 'chg_a', '0xAB'].map(readPassSearch)).toEqual([
    { id: 'pass_a' },
    { id: 'pass_a' },
    { payer: '0xAB' },
  ]);
});

test('behaviour: a refund is recorded while money of the charge is left, and what came of it is a sentence', () => {
  const refund = (transaction: string, amount_atomic: string, proven = true): RefundRecord => ({
    ...{ transaction, transaction_url: null, proven, amount: '0.04', amount_atomic, reason: null, recorded_at: '' },
  });
  const charge = (refunds: readonly RefundRecord[], status = 'delivered'): ChargeRecord =>
    ({ status, amount_atomic: '100000', currency: 'USDC', refunds }) as unknown as ChargeRecord;
  const none = charge([]);
  expect(
    [none, charge([], 'failed'), charge([refund('0xa', '40000')]), charge([refund('0xa', '100000')])].map(canRefund),
  ).toEqual([true, false, true, false]);
  // One of an older registry says nothing of refunds.
  expect(canRefund({ ...none, refunds: undefined } as unknown as ChargeRecord)).toBe(true);
  const [word, proven] = [charge([refund('0xa', '40000', false)]), charge([refund('0xa', '40000')])];
  expect(recordedText('0xA', none, proven)).toBe('The chain shows the transfer: 0.04 USDC are recorded as sent back.');
  expect(recordedText('0xa', none, word)).toBe('Recorded by your word alone: 0.04 USDC sent back.');
  expect(recordedText('0xa', word, proven)).toMatch(/^The chain shows/);
  expect(recordedText('0xa', proven, proven)).toBe('It was recorded before: 0.04 USDC. Nothing changed.');
  const entry = (actor: string, refunds: string): AuditLine => ({ actor, to: { refunds } }) as unknown as AuditLine;
  const newestFirst = [entry('ben', '0xa: 0.04; 0xb: 0.01'), entry('ana', '0xa: 0.04')];
  expect(['0xa', '0xb', '0xc'].map((each) => recorderOf(refund(each, '1'), newestFirst))).toEqual(['ana', 'ben', null]);
});
