// Charges as a file, over a real registry: read by a reader of its own, row for row, and as slowly as a reader may be.
import { createConnection } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { LedgerUnavailable } from '../../../src/domain/payment/ledger.ts';
import { csvLine } from '../../../src/registry/charges/charge-csv.ts';
import type { ChargeView } from '../../../src/registry/charges/charge-schemas.ts';
import { address, claimOf, ROUTE_ID } from '../../cases/claims.ts';
import { startRegistry, token, type Kit } from '../kit.ts';

const CSV = '/v1/billing/charges.csv';
const TIMES = '?from=2026-01-01&to=2026-03-01';
const NOW = Date.parse('2026-02-01T12:00:00Z');
const EVIL = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1'];
const COUNT = 450;

let kit: Kit;
let reads = 0;
let failsAt = Infinity;
beforeAll(async () => {
  kit = await startRegistry({ now: () => NOW });
  const claims = Array.from({ length: COUNT }, (_, n) => {
    const customerId = EVIL[n] ?? (n === 10 ? 'a "quoted", one\r\nof two lines' : null);
    const route = { id: ROUTE_ID, method: 'GET', pattern: n === 11 ? '=HYPERLINK("http://evil")' : '/reports/*' };
    return claimOf(n + 1, { payer: n % 40, customerId, route });
  });
  await Promise.all(
    claims.map((claim) => kit.ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 900 })),
  );
});
afterAll(() => kit.close());

/** Rows of a file as RFC 4180 has them, by a reader that shares nothing with the writer. */
function parse(text: string): string[][] {
  const rows: string[][] = [[]];
  for (let at = 0; at < text.length;) {
    let cell = '';
    if (text[at] === '"') {
      for (at += 1; text[at] !== '"' || text[at + 1] === '"'; at += text[at] === '"' ? 2 : 1) cell += text[at];
      at += 1;
    } else for (; at < text.length && text[at] !== ',' && text[at] !== '\r'; at++) cell += text[at];
    rows.at(-1)?.push(cell);
    if (text[at] === '\r') {
      expect(text[at + 1]).toBe('\n');
      at += 2;
      if (at < text.length) rows.push([]);
    } else at += 1;
  }
  return rows;
}

/** A value of a charge's JSON as a cell has it. */
const cellOf = (value: unknown): string => {
  if (value === null) return '';
  if (Array.isArray(value)) return value.join(' ');
  return typeof value === 'string' ? value : JSON.stringify(value);
};

test('behaviour: an export has all charges of the time, newest first, with the names and values of their JSON', async () => {
  const reply = await kit.dashboard('GET', CSV + TIMES);
  expect([reply.status, reply.headers['content-type'], reply.headers['content-disposition']]).toEqual([
    ...[200, 'text/csv; charset=utf-8; header=present', 'attachment; filename="charges-2026-01-01-2026-03-01.csv"'],
  ]);
  expect(reply.headers['cache-control']).toBe('no-store');
  const [names = [], ...rows] = parse(reply.body.toString());
  expect([rows.length, new Set(rows.map((row) => row.length))]).toEqual([COUNT, new Set([names.length])]);
  const list = JSON.parse((await kit.dashboard('GET', '/v1/billing/charges?limit=200')).body.toString());
  const [first]: ChargeView[] = list.data;
  expect(names).toEqual(Object.keys(first ?? {}));
  expect(Object.fromEntries(names.map((name, index) => [name, rows[0]?.[index]]))).toEqual(
    Object.fromEntries(Object.entries(first ?? {}).map(([name, value]) => [name, cellOf(value)])),
  );
  expect(rows.map((row) => row[0])).toEqual((await kit.ledger.list({ limit: COUNT })).charges.map(({ id }) => id));
});

test('attack: no cell begins like a formula, whoever wrote it; quotes and lines stay in their cell', async () => {
  const text = (await kit.dashboard('GET', CSV + TIMES)).body.toString();
  const [names = [], ...rows] = parse(text);
  for (const row of rows) for (const cell of row) expect(cell).not.toMatch(/^[=+\-@\t\r]/);
  const customers = rows.map((row) => row[names.indexOf('customer_id')]);
  for (const evil of EVIL) expect(customers).toContain(`'${evil}`);
  expect(customers).toContain('a "quoted", one\r\nof two lines');
  expect(rows.map((row) => row[names.indexOf('route_pattern')])).toContain('\'=HYPERLINK("http://evil")');
  const one: ChargeView = JSON.parse((await kit.dashboard('GET', '/v1/billing/charges?limit=1')).body.toString())
    .data[0];
  for (const evil of EVIL) expect(csvLine({ ...one, payer: evil, path: evil })).toContain(`'${evil}`);
});

test('behaviour: an export takes the filters of the list', async () => {
  const count = async (more: string): Promise<number> =>
    parse((await kit.dashboard('GET', `${CSV}${TIMES}${more}`)).body.toString()).length - 1;
  expect(await count(`&payer=${address(3)}`)).toBe(12);
  expect(await count(`&q=${address(3)}&status=claimed,settled`)).toBe(12);
  expect(await count('&status=failed')).toBe(0);
  expect(
    (await kit.dashboard('GET', `${CSV}?from=2025-01-01&to=2025-02-01`)).body.toString().split('\r\n').length,
  ).toBe(2);
});

test.each([
  ['no times', ''],
  ['no end', '?from=2026-01-01'],
  ['no beginning', '?to=2026-01-01'],
  ['an end before the beginning', '?from=2026-02-01&to=2026-01-01'],
  ['more than 92 days', '?from=2026-01-01&to=2026-04-03T00:00:00.001Z'],
  ['a page', `${TIMES}&limit=5`],
  ['a wildcard', `${TIMES}&q=%25`],
])('refuses: an export with %s', async (_what, query) => {
  const reply = await kit.dashboard('GET', CSV + query);
  expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
});

test('behaviour: 92 days are taken, HEAD has no body and holds no place, and nobody without a token gets anything', async () => {
  expect((await kit.dashboard('GET', `${CSV}?from=2026-01-01&to=2026-04-03`)).status).toBe(200);
  for (let n = 0; n < 5; n++) {
    const head = await kit.dashboard('HEAD', CSV + TIMES);
    expect([head.status, head.body.length]).toEqual([200, 0]);
  }
  expect((await kit.ask('GET', CSV + TIMES)).status).toBe(401);
});

/** Asks on a connection of its own whose answer nobody reads. */
async function unread(port: number): Promise<{ ended: Promise<string>; read: () => void; destroy: () => void }> {
  const auth = await token({ now: NOW });
  const socket = createConnection({ host: '127.0.0.1', port });
  let text = '';
  const ended = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(`${error.code}`));
    socket.on('close', () => resolve(text));
  });
  socket.pause();
  socket.write(`GET ${CSV}${TIMES} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${auth}\r\n\r\n`);
  return {
    ended,
    read: () => void socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).resume(),
    destroy: () => socket.destroy(),
  };
}

test('attack: a reader that takes nothing has no more read for it than its connection holds, and a third is refused', async () => {
  // An endless ledger: every page has a next one.
  const page = await kit.ledger.list({ limit: 200 });
  const list = async (): Promise<typeof page> => {
    reads += 1;
    if (reads >= failsAt) throw new LedgerUnavailable('gone');
    return { charges: page.charges, nextBefore: 1000 };
  };
  const endless = await startRegistry({ now: () => NOW, reports: { ...kit.ledger, list } });
  const readers = [await unread(endless.port), await unread(endless.port)];
  const free = async (): Promise<number> => (await endless.dashboard('HEAD', CSV + TIMES)).status;
  await expect.poll(() => reads, { timeout: 20_000 }).toBeGreaterThan(4);
  let before = -1;
  // Until nothing more is read: what the kernel takes is all that there is.
  await expect
    .poll(
      () => {
        const still = before === reads;
        before = reads;
        return still;
      },
      { interval: 200, timeout: 20_000 },
    )
    .toBe(true);
  const third = await endless.dashboard('GET', CSV + TIMES);
  expect([third.status, third.json.code, Number(third.headers['retry-after']) > 0]).toEqual([
    ...[429, 'too_many_requests', true],
  ]);
  expect(reads).toBe(before);
  // A fault in the middle breaks the connection: the file has no end that a reader could take for one.
  const broken = readers[0];
  failsAt = reads + 3;
  broken?.read();
  expect(await broken?.ended).not.toMatch(/\r\n0\r\n\r\n$/);
  readers[1]?.destroy();
  failsAt = Infinity;
  await vi.waitFor(async () => expect(await free()).toBe(200), { interval: 50 });
  await endless.close();
});
