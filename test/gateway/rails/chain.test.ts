// What a node may say and what is believed of it; how often nodes are asked, and which. A node that is away, on another
// chain, behind or lying is unavailable: that is never the same as "not there". The proof itself is tested on a real
// chain, in settle.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type PlainReceiver, wayOf } from '../../cases/receivers.ts';
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_STATE,
  AUTHORIZATION_USED,
  createLook,
  TRANSFER,
  type LookDeps,
} from '../../../src/gateway/rails/evm/look.ts';
import type { Look, LookSubject, Rail } from '../../../src/gateway/rails/rail.ts';
import { findServices } from '../../../src/domain/payment/offer.ts';
import { systemClock, systemSchedule } from '../../../src/host/clock.ts';
import { PAY_TO, deadUrl, fakeTime, json, looked, makeReceiver, startScripted, type Scripted } from './kit.ts';

/** While time is faked. */
const realSetTimeout = setTimeout;
const PAYER = '0x1111111111111111111111111111111111111111';
const HASH = `0x${'9a'.repeat(32)}`;
const CLAIMED_AT = 1_700_000_000n;
const CHARGE = looked({ payer: PAYER, createdAt: Number(CLAIMED_AT) * 1000, validBefore: CLAIMED_AT + 300n });
const { payment: KEY, amount: AMOUNT } = CHARGE;
const DEADLINE = CHARGE.deadline ?? 0n;
const pad = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
const hex = (number: bigint | number): string => `0x${number.toString(16)}`;

const USED = {
  address: KEY.asset,
  topics: [AUTHORIZATION_USED, pad(PAYER), KEY.unique],
  data: '0x',
  blockNumber: '0x5f',
  transactionHash: HASH,
  logIndex: '0x7',
  removed: false,
};
const CANCELLED = { ...USED, topics: [AUTHORIZATION_CANCELED, pad(PAYER), KEY.unique] };
const MOVED = {
  ...USED,
  topics: [TRANSFER, pad(PAYER), pad(PAY_TO)],
  data: `0x${AMOUNT.toString(16).padStart(64, '0')}`,
  logIndex: '0x8',
};
const RECEIPT = { transactionHash: HASH, blockNumber: '0x5f', status: '0x1', logs: [USED, MOVED] };
const IS_USED = `0x${'0'.repeat(63)}1`;
const IS_UNUSED = `0x${'0'.repeat(64)}`;

type Call = { readonly method: string; readonly params: readonly never[] };
type Results = Record<string, unknown>;
const headAt = (number: number, time: bigint): object => ({ number: hex(number), timestamp: hex(time) });
const GOOD: Results = {
  eth_chainId: '0x14a34',
  eth_getBlockByNumber: headAt(100, CLAIMED_AT + 10n),
  eth_getLogs: [USED],
  eth_getTransactionReceipt: RECEIPT,
  eth_call: IS_USED,
};
const PROVEN: Look = {
  kind: 'proven',
  proof: { transaction: HASH, logIndex: 1, amount: AMOUNT, payer: PAYER },
};

let node: Scripted;
let second: Scripted;
const asked: (Call & { readonly of: Scripted })[] = [];
beforeAll(async () => {
  node = await startScripted(() => undefined);
  second = await startScripted(() => undefined);
});
beforeEach(() => {
  asked.length = 0;
  serve(second, GOOD);
});
afterAll(async () => {
  await node.close();
  await second.close();
});

function serve(of: Scripted, results: Results | ((call: Call) => unknown)): void {
  of.answer = (_, res, body) => {
    const call = JSON.parse(body) as Call & { id: number };
    asked.push({ ...call, of });
    const result = typeof results === 'function' ? results(call) : results[call.method];
    const error = typeof result === 'object' && result !== null && 'error' in result;
    json(res, { jsonrpc: '2.0', id: call.id, ...(error ? result : { result }) });
  };
}

// How often a node is asked is tested by itself: here a second passes whenever somebody looks at the clock.
let now = 0;
type Options = {
  readonly urls?: string[];
  readonly receiver?: Partial<PlainReceiver>;
  readonly deps?: Partial<LookDeps>;
};
function lookOf(results: Results | ((call: Call) => unknown), options: Options = {}): Rail['look'] {
  serve(node, results);
  const services = wayOf(makeReceiver({ rpcUrls: options.urls ?? [node.url], ...options.receiver }));
  return createLook({
    fetch,
    schedule: systemSchedule,
    clock: { monotonic: () => (now += 1000), now: () => 0 },
    services: () => services,
    ...options.deps,
  });
}
const look = (results: Results | ((call: Call) => unknown), charge = CHARGE, options: Options = {}): Promise<Look> =>
  lookOf(results, options)(charge, 'reconciler');
const methods = (of?: Scripted): string[] =>
  asked.filter((call) => of === undefined || call.of === of).map(({ method }) => method);
/** The `block` of every call that names one. */
const ranges = (): [number, number][] =>
  asked
    .filter(({ method }) => method === 'eth_getLogs')
    .map(({ params }) => {
      const [{ fromBlock, toBlock }] = params as unknown as [{ fromBlock: string; toBlock: string }];
      return [Number(fromBlock), Number(toBlock)];
    });

test('behaviour: a look asks for the state of the nonce first, for logs only of a used one, for the chain id once', async () => {
  const twice = lookOf(GOOD);
  expect(await twice(CHARGE, 'reconciler')).toEqual(PROVEN);
  const proving = ['eth_getBlockByNumber', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt'];
  expect(methods()).toEqual(['eth_chainId', ...proving]);
  expect(asked[2]?.params).toEqual([
    { to: KEY.asset, data: `${AUTHORIZATION_STATE}${pad(PAYER).slice(2)}${KEY.unique.slice(2)}` },
    '0x64',
  ]);
  expect(asked[3]?.params).toEqual([
    {
      address: KEY.asset,
      topics: [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], pad(PAYER), KEY.unique],
      fromBlock: '0x0',
      toBlock: '0x64',
    },
  ]);
  asked.length = 0;
  const another = { ...CHARGE, createdAt: CHARGE.createdAt + 1 };
  expect(await twice(another, 'reconciler')).toEqual(PROVEN);
  expect(methods()).toEqual(proving);
  asked.length = 0;
  expect(await look({ ...GOOD, eth_call: IS_UNUSED })).toEqual({ kind: 'open', used: false, search: null });
  expect(methods()).toEqual(['eth_chainId', 'eth_getBlockByNumber', 'eth_call']);
});

test('behaviour: the place of a transfer is counted in its transaction, wherever the node begins to count', async () => {
  const logs = [
    { ...MOVED, logIndex: '0x0' },
    { ...USED, logIndex: '0x1' },
    { ...MOVED, logIndex: '0x2' },
  ];
  const own = { ...GOOD, eth_getLogs: [logs[1]], eth_getTransactionReceipt: { ...RECEIPT, logs } };
  expect(await look(own)).toMatchObject({ kind: 'proven', proof: { logIndex: 2 } });
  const block = logs.map((log, at) => ({ ...log, logIndex: hex(40 + at) }));
  const shifted = { ...GOOD, eth_getLogs: [block[1]], eth_getTransactionReceipt: { ...RECEIPT, logs: block } };
  expect(await look(shifted)).toMatchObject({ kind: 'proven', proof: { logIndex: 2 } });
});

describe('what ends a charge', () => {
  const over = (seconds: bigint): Results => ({
    ...GOOD,
    eth_call: IS_UNUSED,
    eth_getBlockByNumber: headAt(100, DEADLINE + seconds),
  });
  const PUBLIC = 'https://sepolia.base.org';
  const throughPublic: Options = {
    urls: [PUBLIC],
    deps: {
      fetch: async (input, init) => fetch(node.url, { method: 'POST', body: await new Request(input, init).text() }),
    },
  };

  test('behaviour: a charge ends if it is unused and 60 s past its end by the time of the chain', async () => {
    expect(await look(over(60n))).toMatchObject({ kind: 'open', used: false });
    expect(await look(over(61n))).toEqual({ kind: 'impossible', reason: 'authorization_expired_unused' });
  });

  test('behaviour: a charge looked at through public endpoints alone ends only 10 minutes past its end', async () => {
    expect(await look(over(600n), CHARGE, throughPublic)).toMatchObject({ kind: 'open', used: false });
    expect(await look(over(601n), CHARGE, throughPublic)).toMatchObject({ kind: 'impossible' });
    const cancelled = { ...GOOD, eth_getLogs: [CANCELLED] };
    expect(await look(cancelled, CHARGE, throughPublic)).toMatchObject({ kind: 'open', used: true });
    expect(await look({ ...over(601n), eth_call: IS_USED, eth_getLogs: [CANCELLED] }, CHARGE, throughPublic)).toEqual({
      kind: 'impossible',
      reason: 'authorization_cancelled',
    });
    expect(await look(GOOD, CHARGE, throughPublic)).toEqual(PROVEN);
  });

  test('behaviour: a charge ends if its payer cancelled it', async () => {
    expect(await look({ ...GOOD, eth_getLogs: [CANCELLED] })).toEqual({
      kind: 'impossible',
      reason: 'authorization_cancelled',
    });
  });

  const receipt = (changes: object): Results => ({ ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, ...changes } });
  const moved = (changes: object): Results => receipt({ logs: [USED, { ...MOVED, ...changes }] });
  test.each<[string, Results]>([
    ['the next log is not there', receipt({ logs: [USED] })],
    ['the transfer came before', receipt({ logs: [{ ...MOVED, logIndex: '0x6' }, USED] })],
    ['of another token', moved({ address: '0x3333333333333333333333333333333333333333' })],
    ['from another payer', moved({ topics: [TRANSFER, pad(PAY_TO), pad(PAY_TO)] })],
    ['to another', moved({ topics: [TRANSFER, pad(PAYER), pad(PAYER)] })],
    ['of less', moved({ data: `0x${(AMOUNT - 1n).toString(16).padStart(64, '0')}` })],
    ['of more', moved({ data: `0x${(AMOUNT + 1n).toString(16).padStart(64, '0')}` })],
    ['an amount with more after it', moved({ data: `${MOVED.data}${'0'.repeat(64)}` })],
    ['an event that only looks like one', moved({ topics: [AUTHORIZATION_USED, pad(PAYER), pad(PAY_TO)] })],
  ])(
    'attack: a charge whose authorization was used without the transfer was spent elsewhere: %s',
    async (_, results) => {
      expect(await look(results)).toEqual({ kind: 'impossible', reason: 'authorization_spent_elsewhere' });
    },
  );

  test('behaviour: nothing ends a charge before it is deep enough', async () => {
    const deep: Options = { receiver: { confirmations: 7 } };
    expect(await look(GOOD, CHARGE, deep)).toMatchObject({ kind: 'open', used: true });
    expect(await look({ ...GOOD, eth_getLogs: [CANCELLED] }, CHARGE, deep)).toMatchObject({ kind: 'open', used: true });
    expect(await look(GOOD, CHARGE, { receiver: { confirmations: 6 } })).toEqual(PROVEN);
    const young = (time: bigint) => (call: Call) => {
      if (call.method !== 'eth_getBlockByNumber') return over(61n)[call.method];
      const [tag] = call.params as unknown as [string];
      return tag === 'latest' ? headAt(100, DEADLINE + 61n) : headAt(Number(tag), time);
    };
    expect(await look(young(DEADLINE + 60n), CHARGE, deep)).toMatchObject({ kind: 'open', used: false });
    expect(await look(young(DEADLINE + 61n), CHARGE, deep)).toMatchObject({ kind: 'impossible' });
  });

  test('behaviour: a charge that is used, without a log of it, stays open: nobody can say yet', async () => {
    expect(await look({ ...GOOD, eth_getLogs: [] })).toEqual({
      kind: 'open',
      used: true,
      search: { round: '1', range: '1000' },
    });
  });
});

describe('what is looked through', () => {
  /** A chain with a block every two seconds, whose head is `past` seconds after the claim. */
  const chainOf = (past: number, logs: (from: number, to: number) => unknown, height = 10_000_000) => {
    const timeOf = (block: number): bigint => CLAIMED_AT + BigInt(past) - 2n * BigInt(height - block);
    return (call: Call): unknown => {
      if (call.method === 'eth_getBlockByNumber') {
        const [tag] = call.params as unknown as [string];
        const block = tag === 'latest' ? height : Number(tag);
        return headAt(block, timeOf(block));
      }
      if (call.method !== 'eth_getLogs') return GOOD[call.method];
      const [{ fromBlock, toBlock }] = call.params as unknown as [{ fromBlock: string; toBlock: string }];
      return logs(Number(fromBlock), Number(toBlock));
    };
  };
  const blockAt = (past: number, seconds: number, height = 10_000_000): number => height - (past - seconds) / 2;

  test.each([20, 120, 600, 7200, 86_400, 30 * 86_400])(
    'behaviour: a search that looks %d s after the claim starts at most 10 minutes before it and ends with the authorization',
    async (past) => {
      const one = lookOf(chainOf(past, () => []));
      await one(CHARGE, 'reconciler');
      const [from = 0] = ranges()[0] ?? [];
      const to = ranges().at(-1)?.[1] ?? 0;
      expect(from).toBeLessThanOrEqual(blockAt(past, -600));
      expect(from).toBeGreaterThan(blockAt(past, -600) - 1100);
      expect(to).toBeGreaterThanOrEqual(Math.min(blockAt(past, 300), 10_000_000));
      expect(to).toBeLessThan(blockAt(past, 300) + 1000);
      expect(methods().filter((method) => method !== 'eth_chainId').length).toBeLessThanOrEqual(8);
    },
  );

  /** A chain of `perSecond` blocks whose clock is ours. */
  const agreeing = (past: number, perSecond: number, offMs = 0) => {
    const height = 10_000_000;
    const results = (call: Call): unknown => {
      if (call.method === 'eth_getLogs') return [];
      if (call.method !== 'eth_getBlockByNumber') return GOOD[call.method];
      const [tag] = call.params as unknown as [string];
      const block = tag === 'latest' ? height : Number(tag);
      return headAt(block, CLAIMED_AT + BigInt(Math.floor(past - (height - block) / perSecond)));
    };
    const clock = { monotonic: () => (now += 1000), now: () => (Number(CLAIMED_AT) + past) * 1000 + offMs };
    return {
      one: lookOf(results, { deps: { clock } }),
      at: (seconds: number) => height - (past - seconds) * perSecond,
    };
  };

  test.each([4, 12])(
    'behaviour: a search on a chain of %d blocks a second whose clock agrees with ours starts at the claim, and once in three far before',
    async (perSecond) => {
      const { one, at } = agreeing(10, perSecond);
      let search: LookSubject['search'] = null;
      const starts: number[] = [];
      for (let rounds = 0; rounds < 6; rounds++) {
        asked.length = 0;
        for (const round = String(rounds); ;) {
          const seen = await one({ ...CHARGE, search }, 'payer');
          if (seen.kind !== 'open') throw new Error(seen.kind);
          if (search?.['next'] === undefined) starts.push(ranges()[0]?.[0] ?? 0);
          ({ search } = seen);
          if (search?.['round'] !== (round === '0' ? undefined : round)) break;
        }
      }
      for (const [rounds, start] of starts.entries()) {
        const before = rounds % 3 === 2 ? -600 : -60;
        expect(start).toBeLessThanOrEqual(at(before));
        expect(start).toBeGreaterThan(at(before) - 1100);
      }
    },
  );

  test.each([31_000, -32_000])(
    'behaviour: a search with our clock %d ms off starts 10 minutes before the claim',
    async (off) => {
      const { one, at } = agreeing(10, 4, off);
      await one(CHARGE, 'payer');
      expect(ranges()[0]?.[0]).toBeLessThanOrEqual(at(-600));
    },
  );

  test('behaviour: a chain that stood still for hours is not searched from too late', async () => {
    // No block for three hours before the claim: even interpolation would begin far too late.
    const height = 10_000;
    const timeOf = (block: number): bigint =>
      block >= height - 400
        ? CLAIMED_AT - 700n + BigInt(block - height + 400) * 2n
        : CLAIMED_AT - 11_000n - BigInt(height - 400 - block) * 2n;
    const results = (call: Call): unknown => {
      if (call.method !== 'eth_getBlockByNumber') return call.method === 'eth_getLogs' ? [] : GOOD[call.method];
      const [tag] = call.params as unknown as [string];
      const block = tag === 'latest' ? height : Number(tag);
      return headAt(block, timeOf(block));
    };
    await look(results);
    const [from = 0] = ranges()[0] ?? [];
    expect(timeOf(from)).toBeLessThanOrEqual(CLAIMED_AT - 600n);
  });

  test('behaviour: a search asks for ranges of 1,000 blocks, at most 8 calls a look; the next look goes on where the last one stopped', async () => {
    const long = { ...CHARGE, deadline: CLAIMED_AT + 86_400n };
    const target = blockAt(40_000, 36_000);
    const found = { ...USED, blockNumber: hex(target) };
    const results = chainOf(40_000, (from, to) => (from <= target && target <= to ? [found] : []));
    const proves = (call: Call): unknown =>
      call.method === 'eth_getTransactionReceipt'
        ? {
            ...RECEIPT,
            blockNumber: hex(target),
            logs: [USED, MOVED].map((log) => ({ ...log, blockNumber: hex(target) })),
          }
        : results(call);
    const one = lookOf(proves);
    let search: LookSubject['search'] = null;
    for (let looks = 1; ; looks++) {
      asked.length = 0;
      const seen = await one({ ...long, search }, 'reconciler');
      expect(methods().filter((method) => method !== 'eth_chainId').length).toBeLessThanOrEqual(8);
      for (const [from, to] of ranges()) expect(to - from).toBeLessThan(1000);
      if (looks > 1) expect(ranges()[0]?.[0]).toBe(Number(search?.['next']));
      if (seen.kind === 'proven') {
        expect(looks).toBeGreaterThan(3);
        break;
      }
      if (seen.kind !== 'open') throw new Error(seen.kind);
      expect(seen.used).toBe(true);
      ({ search } = seen);
      expect(looks).toBeLessThan(8);
    }
  });

  test('behaviour: a range that is refused is halved, and the next look remembers what was not', async () => {
    const refusing = chainOf(2000, (from, to) =>
      to - from >= 200 ? { error: { code: -32_005, message: 'range too large' } } : [],
    );
    const one = lookOf(refusing);
    const seen = await one(CHARGE, 'reconciler');
    expect(seen).toMatchObject({ kind: 'open', used: true, search: { range: '125' } });
    asked.length = 0;
    await one({ ...CHARGE, ...(seen.kind === 'open' ? { search: seen.search } : {}) }, 'reconciler');
    expect(ranges().map(([from, to]) => to - from + 1)).toEqual(expect.arrayContaining([125]));
    for (const [from, to] of ranges()) expect(to - from).toBeLessThan(125);
  });

  test('behaviour: a node that refuses every range has not said that there is nothing', async () => {
    const seen = await look(chainOf(20, () => ({ error: { code: -32_000, message: 'no logs here' } })));
    expect(seen).toMatchObject({ kind: 'open', used: true, search: { range: '1000' } });
  });

  test.each([{ next: 'x' }, { next: '-1' }, { next: '1e9', range: '0' }, { range: '9'.repeat(30) }, {}])(
    'attack: a search that is none (%j) is begun anew',
    async (search) => {
      expect(await look(GOOD, { ...CHARGE, search })).toEqual(PROVEN);
      expect(ranges()).toEqual([[0, 100]]);
    },
  );
});

describe('a node that is not to be believed', () => {
  const logs = (changes: object): Results => ({ ...GOOD, eth_getLogs: [{ ...USED, ...changes }] });
  const receipt = (changes: object): Results => ({ ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, ...changes } });

  test.each<[string, Results]>([
    ['an id of another chain', { ...GOOD, eth_chainId: '0x2105' }],
    ['a chain id as a number', { ...GOOD, eth_chainId: 84_532 }],
    ['an error instead of a chain', { ...GOOD, eth_chainId: { error: { code: -32_601, message: 'no' } } }],
    ['no block', { ...GOOD, eth_getBlockByNumber: null }],
    ['a block without a number', { ...GOOD, eth_getBlockByNumber: { timestamp: '0x1' } }],
    [
      'a block number over 64 bits',
      { ...GOOD, eth_getBlockByNumber: { number: `0x1${'0'.repeat(16)}`, timestamp: '0x1' } },
    ],
    ['a state of 2', { ...GOOD, eth_call: `0x${'0'.repeat(63)}2` }],
    ['no state', { ...GOOD, eth_call: '0x' }],
    ['a short state', { ...GOOD, eth_call: '0x1' }],
    ['a state that is true', { ...GOOD, eth_call: true }],
    ['an error instead of a state', { ...GOOD, eth_call: { error: { code: 3, message: 'execution reverted' } } }],
  ])('attack: a node that answers with %s is unavailable, and the next one is asked', async (_, results) => {
    expect(await look(results)).toMatchObject({ kind: 'unavailable' });
    expect(await look(results, CHARGE, { urls: [node.url, second.url] })).toEqual(PROVEN);
  });

  test.each<[string, Results]>([
    ['logs that are no list', { ...GOOD, eth_getLogs: {} }],
    ['logs of another contract', logs({ address: PAY_TO })],
    ['logs of another payer', logs({ topics: [AUTHORIZATION_USED, pad(PAY_TO), KEY.unique] })],
    ['logs of another nonce', logs({ topics: [AUTHORIZATION_USED, pad(PAYER), HASH] })],
    ['logs of another event', logs({ topics: [TRANSFER, pad(PAYER), KEY.unique] })],
    [
      'logs of blocks not asked for',
      {
        ...logs({ blockNumber: '0x1ff' }),
        ...receipt({ blockNumber: '0x1ff' }),
        eth_getLogs: [{ ...USED, blockNumber: '0x1ff' }],
      },
    ],
    ['logs that were removed', logs({ removed: true })],
    ['logs without a transaction', logs({ transactionHash: null })],
    ['one nonce used twice', { ...GOOD, eth_getLogs: [USED, { ...USED, logIndex: '0x9' }] }],
    ['used and cancelled', { ...GOOD, eth_getLogs: [USED, CANCELLED] }],
    ['no receipt for its own log', { ...GOOD, eth_getTransactionReceipt: null }],
    ['the receipt of another transaction', receipt({ transactionHash: KEY.unique })],
    ['a receipt of another block', receipt({ blockNumber: '0x5e' })],
    ['a receipt without its own log', receipt({ logs: [MOVED] })],
    ['a receipt without a status', receipt({ status: undefined })],
    ['a transaction that reverted', receipt({ status: '0x0' })],
    ['a receipt with a gap', receipt({ logs: [USED, { ...MOVED, logIndex: '0x9' }] })],
  ])(
    'attack: a payment stays used but is not proven by a node that answers with %s; the next one is asked',
    async (_, results) => {
      expect(await look(results)).toMatchObject({ kind: 'open', used: true });
      expect(await look(results, CHARGE, { urls: [node.url, second.url] })).toEqual(PROVEN);
    },
  );

  test.each<[string, (res: Parameters<Scripted['answer']>[1], id: number, result: unknown) => void]>([
    ['HTML', (res) => void res.end('<html>')],
    ['an answer to another call', (res, id, result) => json(res, { jsonrpc: '2.0', id: id + 1, result })],
    ['an answer to no call', (res, _, result) => json(res, { jsonrpc: '2.0', result })],
    ['a list', (res, id, result) => json(res, [{ jsonrpc: '2.0', id, result }])],
    ['status 500', (res, id, result) => json(res, { jsonrpc: '2.0', id, result }, 500)],
    ['status 429', (res, id, result) => json(res, { jsonrpc: '2.0', id, result }, 429)],
    ['an error beside a result', (res, id, result) => json(res, { jsonrpc: '2.0', id, result, error: {} })],
    ['a redirect', (res) => void res.writeHead(302, { location: '/' }).end()],
    ['a broken connection', (res) => void res.destroy()],
  ])('attack: a node that answers with %s is unavailable', async (_, answer) => {
    const one = lookOf(GOOD);
    node.answer = (_req, res, body) => {
      const { id, method } = JSON.parse(body) as Call & { id: number };
      answer(res, id, GOOD[method]);
    };
    expect(await one(CHARGE, 'reconciler')).toMatchObject({ kind: 'unavailable' });
  });

  test('behaviour: the chain is checked until it is the right one, and then no more', async () => {
    const results = { ...GOOD, eth_chainId: '0x1' };
    const one = lookOf(results);
    expect(await one(CHARGE, 'reconciler')).toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining('eip155:1,'),
    });
    results.eth_chainId = '0x14a34';
    expect(await one(CHARGE, 'reconciler')).toEqual(PROVEN);
    await one(CHARGE, 'reconciler');
    expect(methods().filter((method) => method === 'eth_chainId').length).toBe(2);
  });
});

describe('who is asked, how often and for how long', () => {
  test('behaviour: a look without a node to ask is unavailable', async () => {
    expect(await look(GOOD, CHARGE, { urls: [] })).toMatchObject({ kind: 'unavailable' });
    expect(asked).toEqual([]);
  });

  test('behaviour: a node that is away makes way for the next, in this order', async () => {
    expect(await look(GOOD, CHARGE, { urls: [await deadUrl(), second.url, node.url] })).toEqual(PROVEN);
    expect(methods(node)).toEqual([]);
    expect(methods(second).length).toBe(5);
  });

  test('behaviour: a receiver that is configured no more, or for another network, is looked at through the public endpoints', async () => {
    const called: string[] = [];
    const away: LookDeps['fetch'] = (input) => {
      called.push(input instanceof Request ? input.url : String(input));
      return Promise.reject(new Error('away'));
    };
    const deps = { fetch: away, schedule: systemSchedule, clock: systemClock };
    await createLook({ ...deps, services: () => undefined })(CHARGE, 'reconciler');
    const elsewhere = makeReceiver({ network: 'eip155:8453', rpcUrls: [node.url] });
    await createLook({ ...deps, services: (way) => findServices(new Map([['default', elsewhere]]), way) })(
      CHARGE,
      'reconciler',
    );
    const hosts = ['sepolia.base.org', 'base-sepolia-rpc.publicnode.com'];
    expect(called.map((url) => new URL(url).host)).toEqual([...hosts, ...hosts]);
  });

  test('behaviour: nobody waits longer than 5 seconds for a call', async () => {
    const time = fakeTime();
    const one = lookOf(GOOD, { deps: { schedule: time.schedule, clock: time.clock }, urls: [node.url, second.url] });
    node.answer = () => time.advance(5000);
    expect(await one(CHARGE, 'reconciler')).toEqual(PROVEN);
  });

  test('behaviour: a payer waits no longer than 2 seconds for all of it, and hears what is known by then', async () => {
    const time = fakeTime();
    const deps = { schedule: time.schedule, clock: time.clock };
    const stalls = (method: string): Rail['look'] => {
      const one = lookOf(GOOD, { deps, urls: [node.url, second.url] });
      const { answer } = node;
      node.answer = (req, res, body) => (body.includes(method) ? time.advance(2000) : answer(req, res, body));
      return one;
    };
    const unavailable = { kind: 'unavailable', end: expect.any(Promise) };
    expect(await stalls('eth_call')(CHARGE, 'payer')).toMatchObject(unavailable);
    expect(await stalls('eth_getLogs')(CHARGE, 'payer')).toMatchObject({ kind: 'open', used: true });
    expect(methods(second)).toEqual([]);
    expect(time.pending()).toBe(0);
  });

  test('behaviour: a call whose connection broke is made once more, in its turn', async () => {
    const one = lookOf(GOOD);
    const { answer } = node;
    let broken = 0;
    node.answer = (req, res, body) => (broken++ === 0 ? res.destroy() : answer(req, res, body));
    expect(await one(CHARGE, 'reconciler')).toEqual(PROVEN);
    expect(node.requests.slice(-6).map(({ body }) => (JSON.parse(body) as Call).method)).toEqual([
      'eth_chainId',
      ...methods(),
    ]);
  });

  test('behaviour: a node is asked five times a second, and payers come first', async () => {
    const time = fakeTime();
    const order: string[] = [];
    const unused = { ...GOOD, eth_call: IS_UNUSED };
    const one = lookOf(unused, { deps: { schedule: time.schedule, clock: time.clock } });
    const others = Array.from({ length: 4 }, (_, at) =>
      one(CHARGE, 'reconciler').then(() => order.push(`other ${at}`)),
    );
    // All five calls of the first second are made; the rest waits.
    await expect.poll(() => asked.length).toBe(5);
    const payer = one(CHARGE, 'payer').then((seen) => order.push(`payer ${seen.kind}`));
    time.advance(999);
    expect(asked.length).toBe(5);
    for (let seconds = 1; order.length < 5; seconds++) {
      time.advance(seconds === 1 ? 1 : 1000);
      await new Promise((resolve) => realSetTimeout(resolve, 30));
      expect(asked.length).toBeLessThanOrEqual(5 + 5 * seconds);
      expect(seconds).toBeLessThan(10);
    }
    await Promise.all([...others, payer]);
    expect(order.indexOf('payer open')).toBeLessThan(2);
  });

  test('behaviour: a look that found something is not repeated, whoever asks next, and the reconciler waits for a look of a payer', async () => {
    const one = lookOf(GOOD);
    expect(await one(CHARGE, 'reconciler')).toEqual(PROVEN);
    expect([await one(CHARGE, 'payer'), methods().length]).toEqual([PROVEN, 5]);
    const other = lookOf(GOOD);
    expect(await Promise.all([other(CHARGE, 'payer'), other(CHARGE, 'payer'), other(CHARGE, 'reconciler')])).toEqual([
      PROVEN,
      PROVEN,
      PROVEN,
    ]);
    expect(methods().length).toBe(10);
  });

  test('behaviour: the first of many payers at once are told, and the others when they ask again', async () => {
    const time = fakeTime();
    const uniques = Array.from({ length: 30 }, (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}`);
    const calls: string[] = [];
    const one = lookOf(GOOD, {
      deps: {
        schedule: time.schedule,
        clock: time.clock,
        fetch: async (input, init) => {
          const call = (await new Request(input, init).json()) as Call & { id: number };
          calls.push(call.method);
          const text = JSON.stringify(call.params);
          const unique = uniques.find((each) => text.includes(each.slice(2))) ?? '';
          const used = { ...USED, topics: [AUTHORIZATION_USED, pad(PAYER), unique], transactionHash: unique };
          const moved = { ...MOVED, transactionHash: unique };
          const receipt = { ...RECEIPT, transactionHash: unique, logs: [used, moved] };
          const results: Results = { ...GOOD, eth_getLogs: [used], eth_getTransactionReceipt: receipt };
          return Response.json({ jsonrpc: '2.0', id: call.id, result: results[call.method] });
        },
      },
    });
    const told: number[] = [];
    let seconds = 0;
    // Each begins at another moment, and asks again 3 s after it was told to.
    const asking = uniques.map(async (unique, at) => {
      await new Promise<void>((resolve) => void time.schedule(170 * at, resolve));
      while ((await one({ ...CHARGE, payment: { ...KEY, unique } }, 'payer')).kind !== 'proven')
        await new Promise<void>((resolve) => void time.schedule(3000, resolve));
      told.push(seconds);
    });
    for (; told.length < 30 && seconds < 60; seconds += 0.1) {
      time.advance(100);
      await new Promise((resolve) => realSetTimeout(resolve, 2));
    }
    // Four calls each, five a second; the first two asked which chain it is.
    expect(calls.length).toBeLessThanOrEqual(2 + 4 * 30);
    expect([told.length, (told.at(-1) ?? 60) < 35, (told[1] ?? 60) < 3]).toEqual([30, true, true]);
    await Promise.all(asking);
  });
});
