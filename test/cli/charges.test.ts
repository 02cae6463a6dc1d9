// `tollgate charges` over a real store.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { shortId } from '../../src/domain/payment/quote.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { createLog } from '../../src/host/log.ts';
import { openLedger } from '../support/sqlite-ledger.ts';
import { address, claimOf, hash32, proofOf, ROUTE_ID } from '../cases/claims.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { fakeIo } from './support.ts';

let folder: string;
let remove: () => void;
let config: string;

beforeAll(async () => {
  ({ folder, remove } = temporaryFolder());
  config = join(folder, 'tollgate.yaml');
  writeFileSync(config, 'registry:\n  listen: 127.0.0.1:0\n  store: sqlite:tollgate.db\n');
  const ledger = openLedger(join(folder, 'tollgate.db'), {
    now: Date.now,
    log: createLog('error', () => undefined, Date.now),
  });
  for (const n of [1, 2, 3])
    await ledger.claim(claimOf(n, { customerId: `c${n}` }), { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
  await ledger.advance(claimOf(2).id, { kind: 'settle_started', via: 'first', leaseMs: 1000 }, { owner: 'o' });
  await ledger.advance(claimOf(2).id, { kind: 'settled', proof: proofOf(claimOf(2)), leaseMs: 1000 }, { owner: 'o' });
  await ledger.close();
});
afterAll(() => remove());

const shownId = (n: number): string => shortId(claimOf(n).id);

async function run(...argv: string[]): Promise<{ code: number; out: string[]; err: string }> {
  const io = fakeIo({ folder });
  const code = await runCommandLine(['charges', ...argv], COMMANDS, io);
  return { code, out: io.stdout().split('\n').slice(0, -1), err: io.stderr() };
}

describe('charges list', () => {
  test('behaviour: charges list prints one line a charge, newest first, under a header, ids by their ends', async () => {
    const { code, out } = await run('list', '--config', config);
    expect(code).toBe(0);
    const [header, ...rows] = out.map((line) => line.split(/ {2,}/));
    expect(header).toEqual(['ID', 'STATE', 'PRICE', 'ROUTE', 'PAYER', 'MADE']);
    expect(rows.map((cells) => cells.slice(0, 5))).toEqual(
      [3, 2, 1].map((n) => [shownId(n), n === 2 ? 'settled' : 'claimed', '0.10 USD', 'GET /reports/*', address(n)]),
    );
  });

  test('behaviour: charges list --json is an array, and nothing in it could be replayed', async () => {
    const { out } = await run('list', '--json', '-c', config);
    expect(JSON.parse(out[0] ?? '').map(({ id }: { id: string }) => id)).toEqual([3, 2, 1].map((n) => claimOf(n).id));
    for (const secret of [claimOf(1).credential, claimOf(1).credentialSha256, 'key=value'])
      expect(out.join('')).not.toContain(secret);
  });

  test.each([
    [['--status', 'settled'], [2]],
    [
      ['--status', 'settled,claimed'],
      [3, 2, 1],
    ],
    [['--q', address(3)], [3]],
    [['--q', 'request-2'], [2]],
    [['--q', address(3), '--payer', address(2)], []],
    [['--request', 'request-1', '--currency', 'usd', '--receiver', 'default'], [1]],
    [['--transaction', hash32(1)], []],
    [
      ['--route', ROUTE_ID],
      [3, 2, 1],
    ],
    [['--route', 'nothing'], []],
    [
      ['--network', 'base-sepolia'],
      [3, 2, 1],
    ],
    [['--network', 'eip155:84532', '--limit', '200', '--customer', 'c1'], [1]],
    [['--network', 'base'], []],
    [['--payer', address(3).toUpperCase().replace('0X', '0x')], [3]],
    [['--customer', 'c1'], [1]],
    [['--from', '2000-01-01', '--to', '2001-01-01'], []],
    [['--limit', '1'], [3]],
  ])('behaviour: charges list takes the filter %j', async (flags, wanted) => {
    const { code, out, err } = await run('list', '-c', config, ...flags);
    expect([code, out.slice(1).map((line) => line.split(' ')[0])]).toEqual([0, wanted.map(shownId)]);
    if (wanted.length === 0) expect(err).toContain('no charges');
    if (flags[0] === '--limit') expect(err).toContain('there are more');
  });

  test('refuses: filters of charges that it does not know, all at once', async () => {
    const { code, err } = await run(
      'list',
      'x',
      '-c',
      config,
      '--status',
      'free',
      '--limit',
      '0',
      '--from',
      'today',
      '--network',
      'x',
    );
    expect(code).toBe(64);
    for (const part of [
      'a word too many',
      '--status: is not one or several of claimed',
      '--limit: is not an integer',
      '--from: is not a time',
      '--network: is not a network',
    ])
      expect(err).toContain(part);
    const unreadable = await run('list', '-c', config, '--q', '%');
    expect([unreadable.code, unreadable.err]).toEqual([64, expect.stringContaining('--q: is not a charge id or')]);
    expect((await run('lists', '-c', config)).err).toContain('did you mean list');
  });
});

describe('charges show', () => {
  test('behaviour: charges show tells everything about one, as lines or as JSON', async () => {
    const lines = await run('show', claimOf(2).id, '-c', config);
    expect(lines.out).toContain('status: settled');
    expect(lines.out).toContain(`transaction: ${proofOf(claimOf(2)).transaction}`);
    const json = await run('show', claimOf(2).id, '--json', '-c', config);
    expect(JSON.parse(json.out[0] ?? '')).toMatchObject({
      id: claimOf(2).id,
      amount_atomic: '100000',
      path: '/reports/2',
    });
  });

  test('refuses: a charge by an id of nothing is 1, none is 64, a filter is 64', async () => {
    expect(await run('show', 'chg_nothing', '-c', config)).toMatchObject({ code: 1, out: [] });
    expect((await run('show', '-c', config)).code).toBe(64);
    expect((await run('show', 'chg_x', '--limit', '1', '-c', config)).code).toBe(64);
  });
});

describe('the word of an operator', () => {
  const ledgerOf = (): ReturnType<typeof openLedger> =>
    openLedger(join(folder, 'tollgate.db'), { now: Date.now, log: createLog('error', () => undefined, Date.now) });
  const take = async (n: number, ...events: ChargeEvent[]): Promise<string> => {
    const ledger = ledgerOf();
    const claim = claimOf(n, {
      x402Version: 1,
      customerId: 'operated',
      way: { ...claimOf(n).way, receiverId: 'gone' },
    });
    await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
    for (const event of events)
      expect((await ledger.advance(claim.id, event, { owner: 'o' })).kind, event.kind).toBe('ok');
    await ledger.close();
    return claim.id;
  };
  const start: ChargeEvent = { kind: 'settle_started', via: 'f', leaseMs: 60_000 };
  const unknown: ChargeEvent = { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 };
  const settle = (n: number): ChargeEvent => ({ kind: 'settled', proof: proofOf(claimOf(n)), leaseMs: 60_000 });
  const failed: ChargeEvent = { kind: 'undelivered', because: 'upstream_failed', headSent: false };
  const tx = `0x${'AB'.repeat(32)}`;

  test('behaviour: an owed charge is listed, and refunded', async () => {
    const id = await take(40, start, settle(40), failed);
    const listed = await run('list', '--owed', '-c', config);
    expect(listed.out.join('\n')).toContain('owed');
    const json = await run('list', '--owed', '--json', '-c', config);
    expect(JSON.parse(json.out[0] ?? '')).toMatchObject([{ id, owed: 'upstream', status: 'settled' }]);
    expect(await run('refunded', 'test-40', '--note', 'by hand', '-c', config)).toMatchObject({
      code: 0,
      out: [`${id}\trefunded`],
    });
    expect(await run('refunded', id, '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('it was refunded on'),
    });
    expect((await run('list', '--owed', '-c', config)).out).toEqual([]);
    expect(JSON.parse((await run('show', id, '--json', '-c', config)).out[0] ?? '')).toMatchObject({
      status: 'settled',
      refund_note: 'by hand',
      owed: null,
    });
  });

  test('behaviour: the money of a delivered charge is given back as goodwill, and stays delivered', async () => {
    const id = await take(46, start, settle(46), { kind: 'delivered', partial: false });
    expect(await run('refunded', id, '--note', 'goodwill', '-c', config)).toMatchObject({
      code: 0,
      out: [`${id}\trefunded`],
    });
    expect(JSON.parse((await run('show', id, '--json', '-c', config)).out[0] ?? '')).toMatchObject({
      ...{ status: 'delivered', refund_note: 'goodwill', owed: null, refunded_at: expect.any(String) },
    });
    expect(await run('refunded', id, '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('it was refunded on'),
    });
    const open = await take(47, start, unknown);
    expect(await run('refunded', open, '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('only a charge whose money moved can be refunded; this one is settling'),
    });
  });

  test('behaviour: a settling or failed charge is settled by a transaction, a settling one failed for a reason', async () => {
    const settling = await take(41, start, unknown);
    expect(await run('reconcile', settling, '--settled', tx, '-c', config)).toMatchObject({
      code: 0,
      out: [`${settling}\tsettled\t${tx.toLowerCase()}`],
    });
    const other = await take(42, start, unknown);
    expect(await run('reconcile', other, '--fail', 'never mined', '-c', config)).toMatchObject({
      code: 0,
      out: [`${other}\tfailed`],
    });
    expect(await run('reconcile', other, '--settled', tx, '-c', config)).toMatchObject({ code: 0 });
    expect(JSON.parse((await run('show', other, '--json', '-c', config)).out[0] ?? '')).toMatchObject({
      status: 'settled',
      failed_by: null,
      transaction: tx.toLowerCase(),
    });
    expect(await run('reconcile', other, '--fail', 'x', '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('this one is settled'),
    });
  });

  test('refuses: an operator’s word on a charge in work, an id that may mean several, words that do not go together', async () => {
    const id = await take(43, start);
    expect(await run('reconcile', id, '--fail', 'x', '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('somebody works on it'),
    });
    expect(await run('show', 'chg_test-4', '-c', config)).toMatchObject({
      code: 1,
      err: expect.stringContaining('several'),
    });
    expect((await run('reconcile', id, '--fail', 'x', '--settled', tx, '-c', config)).code).toBe(64);
    expect((await run('reconcile', id, '--settled', 'no transaction', '-c', config)).code).toBe(64);
    expect((await run('refunded', '-c', config)).code).toBe(64);
    expect((await run('show', id, '--owed', '-c', config)).code).toBe(64);
    expect((await run('show', id, '--note', 'x', '-c', config)).code).toBe(64);
  });
});

test('behaviour: charges reconcile takes a settling charge that 200 newer ones, all in work, stand in front of', async () => {
  const many = join(folder, 'many.yaml');
  writeFileSync(many, 'registry:\n  listen: 127.0.0.1:0\n  store: sqlite:many.db\n');
  const ledger = openLedger(join(folder, 'many.db'), {
    now: Date.now,
    log: createLog('error', () => undefined, Date.now),
  });
  const [oldest = '', ...newer] = Array.from({ length: 201 }, (_, n) => claimOf(1000 + n).id);
  const owner = { owner: 'o' };
  const started = { kind: 'settle_started', via: 'first', leaseMs: 60_000 } as const;
  await ledger.claim(claimOf(1000), { ...owner, leaseMs: 60_000, maxUnsettledPerPayer: 8 });
  for (const event of [started, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 0 } as const])
    await ledger.advance(oldest, event, owner);
  // Together, because each write alone waits for the disk.
  const claims = newer.map((_, n) => claimOf(1001 + n));
  await Promise.all(claims.map((each) => ledger.claim(each, { ...owner, leaseMs: 60_000, maxUnsettledPerPayer: 8 })));
  await Promise.all(newer.map((id) => ledger.advance(id, started, owner)));
  await ledger.close();
  const { code, out } = await run('reconcile', '-c', many);
  expect([code, out]).toEqual([1, [`${oldest}\tsettling\t-\tchain_unavailable`]]);
});

describe('where there is no store', () => {
  test('refuses: a store that was never made is 69, and it is not made; a sidecar without one is 64', async () => {
    const fresh = join(folder, 'fresh.yaml');
    writeFileSync(fresh, 'registry:\n  listen: 127.0.0.1:0\n  store: sqlite:nothing.db\n');
    expect(await run('list', '-c', fresh)).toMatchObject({ code: 69 });
    expect(readdirSync(folder)).not.toContain('nothing.db');
    const sidecar = join(folder, 'sidecar.yaml');
    const section = 'sync:\n  registry_url: http://127.0.0.1:9\n  api_key: 0123456789abcdef\n';
    const rest = `proxy:\n  upstream: http://127.0.0.1:3000\n${section}charges:\n  secrets: [${'s'.repeat(32)}]\n`;
    writeFileSync(sidecar, rest);
    const { code, err } = await run('list', '-c', sidecar);
    expect([code, err]).toEqual([64, expect.stringContaining('configuration of the registry')]);
    writeFileSync(sidecar, `${rest}  store: sqlite:tollgate.db\n`);
    expect((await run('list', '-c', sidecar)).out.length).toBe(10);
  });
});
