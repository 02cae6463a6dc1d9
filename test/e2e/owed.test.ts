// What is owed, and what is settled too late, as an operator sees it from outside: over the registry's API, in the metrics of
// every shape that has a store of charges, and at the command line against a chain that can be read.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportCharges } from '../../src/compose/charge-metrics.ts';
import { createLog } from '../../src/host/log.ts';
import { createMetrics } from '../../src/host/metrics.ts';
import { openLedger } from '../support/sqlite-ledger.ts';
import { claimOf } from '../cases/claims.ts';
import { startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';

let paid: PaidTollgate;
let token: string;
const files = temporaryFolder();

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['POST /fails 0.10', 'GET /fine 0.02'],
    // Only the command line reads the chain, later: nothing else ends a settlement before it does.
    rpcUrl: 'none',
    handle: (req, res) => {
      req.resume();
      res.statusCode = req.url === '/fails' ? 500 : 200;
      res.end('here');
    },
  });
  token = await paid.cli('token');
}, 180_000);
afterAll(async () => {
  await paid?.stop();
  files.remove();
});

const scrape = async (tollgate: TollgateProcess): Promise<string> =>
  (await fetch(`${tollgate.url('admin')}/metrics`)).text();

const SERIES = /^tollgate_(owed|owed_charges|settling_overdue_seconds)(\{.*\})? (.*)$/;
const seriesOf = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = SERIES.exec(line) ?? [];
    return name === undefined ? [] : [`${name}${labels} ${value}`];
  });
const becomes = (tollgate: TollgateProcess, lines: readonly string[]): Promise<unknown> =>
  until(`the metrics say ${lines.join(', ')}`, async () => {
    const seen = seriesOf(await scrape(tollgate));
    return lines.every((line) => seen.includes(line)) && seen.length === lines.length;
  });

/** So that the test's watch on secrets does not take a payer in a query, who may be logged, for part of a secret. */
const encoded = (text: string): string => text.replace(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`);

const listed = async (query: string): Promise<readonly ChargeSeen[]> => {
  const response = await fetch(`${paid.tollgate().url('registry')}/v1/billing/charges?${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: ChargeSeen[] }).data;
};

const ledgerOf = (file: string): ReturnType<typeof openLedger> =>
  openLedger(file, { now: Date.now, log: createLog('error', () => undefined, Date.now) });
const store = (): string => path.join(path.dirname(paid.config), 'data/tollgate.db');

const NOTHING = ['owed_charges{because="upstream"} 0', 'owed_charges{because="tollgate"} 0'];

describe('charges that were paid for and cannot be delivered', () => {
  test(
    'behaviour: owed charges are listed and exported to the last unit, until they were refunded',
    { timeout: 60_000 },
    async () => {
      await becomes(paid.tollgate(), [...NOTHING, 'owed_charges{because="client"} 0', 'settling_overdue_seconds 0']);
      expect((await paid.payer.fetch(paid.url('/fine'))).status).toBe(200);
      // Nobody fetches the answer of a v1 payment again: its credential can be made from what the chain shows.
      for (let i = 0; i < 3; i++)
        expect((await paid.payer.fetchV1(paid.url('/fails'), { method: 'POST' })).status).toBe(500);
      const rest = [
        'owed_charges{because="tollgate"} 0',
        'owed_charges{because="client"} 0',
        'settling_overdue_seconds 0',
      ];
      const three = ['owed{currency="USD",because="upstream"} 0.3', 'owed_charges{because="upstream"} 3'];
      // The book is written after the response has left.
      await becomes(paid.tollgate(), [...three, ...rest]);
      const owed = await listed('owed=true');
      expect(owed.map(({ status, owed: because, method }) => [status, because, method])).toEqual(
        [1, 2, 3].map(() => ['settled', 'upstream', 'POST']),
      );
      const id = owed[0]?.id ?? '';
      const told = [await paid.cli('why', id), await paid.cli('charges', 'show', id)];
      for (const text of told) {
        expect(text).toContain('it is owed, because of the upstream');
        expect(text).toContain(`tollgate charges refunded chg_...${id.slice(-12)}`);
        expect(text).not.toContain('may be fetched');
      }
      expect((await listed('limit=10')).length).toBe(4);
      expect(await paid.cli('charges', 'refunded', owed[0]?.id ?? '', '--note', 'by hand')).toMatch(/refunded$/);
      expect(await paid.cli('why', id)).toContain('was given back outside Tollgate');
      const two = ['owed{currency="USD",because="upstream"} 0.2', 'owed_charges{because="upstream"} 2'];
      await becomes(paid.tollgate(), [...two, ...rest]);
      expect((await listed('owed=true')).map(({ id }) => id)).toEqual(owed.slice(1).map(({ id }) => id));
    },
  );

  test('behaviour: owed charges are found by their payer, whose address is hex in any letter case', async () => {
    const { address } = paid.payer;
    const spellings = [address, address.toLowerCase(), address.toUpperCase(), `0x${address.slice(2).toUpperCase()}`];
    for (const payer of spellings)
      expect([payer, (await listed(`owed=true&payer=${encoded(payer)}`)).length]).toEqual([payer, 2]);
    expect(await listed(`owed=true&payer=${encoded(`0x${'9'.repeat(40)}`)}`)).toEqual([]);
    expect(await listed(`owed=true&payer=${encoded(address)}&status=delivered`)).toEqual([]);
  });
});

test('behaviour: what is owed in tokens of different decimals is one exact sum a currency and fault', async () => {
  const metrics = createMetrics();
  const sum = { currency: 'USD', because: 'tollgate', charges: 1 } as const;
  const reports = {
    countByState: async () => ({ claimed: 0, settling: 0, settled: 3, delivered: 0, released: 0, failed: 0 }),
    alarms: async () => ({
      owed: [
        { ...sum, assetDecimals: 6, amount: 100_000n },
        { ...sum, assetDecimals: 18, amount: 200_000_000_000_000_001n },
        { ...sum, currency: 'EURC', assetDecimals: 0, amount: 9_007_199_254_740_993n },
      ],
      settlingEndsAt: null,
      unknown: { count: 0, since: null },
    }),
    refunded: async () => [],
  };
  await exportCharges(reports, metrics, Date.now)();
  expect(seriesOf(await metrics.text()).filter((line) => line.startsWith('owed{'))).toEqual([
    'owed{currency="USD",because="tollgate"} 0.300000000000000001',
    'owed{currency="EURC",because="tollgate"} 9007199254740993',
  ]);
});

describe('a settlement that nobody can end', () => {
  const HOURS_2 = 7200;

  test(
    'behaviour: every shape with a store, all-in-one, registry or sidecar, says how late an unended settlement is',
    { timeout: 60_000 },
    async () => {
      await paid.tollgate().kill();
      const ledger = ledgerOf(store());
      const deadline = BigInt(Math.floor(Date.now() / 1000) - HOURS_2);
      const claim = claimOf(1, { deadline, way: { ...claimOf(1).way, receiverId: 'gone' } });
      await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
      await ledger.advance(claim.id, { kind: 'settle_started', via: 'f', leaseMs: 60_000 }, { owner: 'o' });
      await ledger.advance(
        claim.id,
        { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 },
        { owner: 'o' },
      );
      await ledger.close();
      const late = async (tollgate: TollgateProcess): Promise<void> => {
        const text = await until('the metrics say how late', async () => {
          const seen = await scrape(tollgate);
          return /^tollgate_settling_overdue_seconds [1-9]/m.test(seen) && seen;
        });
        const seconds = Number(/^tollgate_settling_overdue_seconds (\S+)$/m.exec(text)?.[1]);
        expect(seconds).toBeGreaterThanOrEqual(HOURS_2 - 61);
        expect(seconds).toBeLessThan(HOURS_2);
        expect(seriesOf(text)).toEqual(
          expect.arrayContaining([
            'owed{currency="USD",because="upstream"} 0.2',
            'owed_charges{because="upstream"} 2',
            'owed_charges{because="tollgate"} 0',
          ]),
        );
      };
      await paid.restart();
      await late(paid.tollgate());
      await paid.tollgate().kill();
      const secret = 'a-secret-of-at-least-32-bytes-here';
      const others: Readonly<Record<string, readonly string[]>> = {
        registry: [`registry: { listen: 127.0.0.1:0, store: "sqlite:${store()}", jwt: { secret: ${secret} } }`],
        proxy: [
          `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url} }`,
          `sync: { registry_url: http://127.0.0.1:1, api_key: a-key-of-the-test-of-what-is-owed }`,
          `charges: { secrets: [${secret}], store: "sqlite:${store()}" }`,
        ],
      };
      for (const [listener, lines] of Object.entries(others)) {
        const config = files.write(`${listener}.yaml`, [...lines, 'admin: { listen: 127.0.0.1:0 }'].join('\n'));
        const other = await startProcess({ args: ['serve', '-c', config], listeners: [listener, 'admin'] });
        try {
          await late(other);
        } finally {
          await other.kill();
        }
      }
      await paid.restart();
    },
  );
});

describe('the word of an operator, where the chain can be read', () => {
  test(
    'refuses: an operator failing what the chain says was paid, or settling it by another transaction',
    { timeout: 60_000 },
    async () => {
      const credential = await paid.sign(await paid.quote('/fine'));
      paid.facilitator.fault('settle', { kind: 'drop_after' });
      const response = await paid.pay('/fine', credential);
      const { code, charge_id: id } = (await response.json()) as { code: string; charge_id: string };
      expect([response.status, code]).toEqual([503, 'settlement_unknown']);
      await paid.tollgate().kill();
      writeFileSync(
        paid.config,
        readFileSync(paid.config, 'utf8').replace('rpc_url: none', `rpc_url: ${paid.chain.rpcUrl}`),
      );
      const says = async (...word: string[]): Promise<[unknown, string]> =>
        paid.cli('charges', 'reconcile', id, ...word).then(
          (out) => [0, out],
          (error: { code: number; stderr: string }) => [error.code, error.stderr],
        );
      const [failed, why] = await says('--fail', 'never mined');
      expect(why).toMatch(/the chain says that 0x[0-9a-f]{64} paid it; `charges reconcile` settles it/);
      expect(failed).toBe(1);
      const [other, because] = await says('--settled', `0x${'ab'.repeat(32)}`);
      expect(because).toMatch(/the chain says that another transaction paid it: 0x[0-9a-f]{64}/);
      expect(other).toBe(1);
      const [, transaction = ''] = /(0x[0-9a-f]{64})/.exec(why) ?? [];
      expect(await says('--settled', transaction)).toEqual([0, `${id}\tsettled\t${transaction}`]);
      await paid.restart();
      expect((await paid.charges()).find((charge) => charge.id === id)).toMatchObject({
        status: 'settled',
        transaction,
      });
    },
  );
});
