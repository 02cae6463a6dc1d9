// What a node may say and what is believed of it. A node that is away, on another chain, behind or lying is unavailable:
// that is never the same as "not there". The proof itself is tested on a real chain, in settle.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUTHORIZATION_STATE, AUTHORIZATION_USED, TRANSFER } from '../../../src/gateway/rails/chain.ts';
import type { Evidence } from '../../../src/gateway/rails/rail.ts';
import { PAY_TO, PRICE, deadUrl, fakeTime, json, makeRail, makeReceiver, startScripted, type Scripted } from './kit.ts';

const PAYER = '0x1111111111111111111111111111111111111111';
const RECEIVER = makeReceiver();
const KEY = {
  network: 'eip155:84532',
  asset: RECEIVER.asset.toLowerCase(),
  payer: PAYER,
  nonce: `0x${'cd'.repeat(32)}`,
};
const SEARCH = { key: KEY, payTo: PAY_TO, amount: PRICE, fromBlock: 90n };
const HASH = `0x${'9a'.repeat(32)}`;
const pad = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;

const USED = {
  address: KEY.asset,
  topics: [AUTHORIZATION_USED, pad(PAYER), KEY.nonce],
  data: '0x',
  blockNumber: '0x5f',
  transactionHash: HASH,
  logIndex: '0x7',
  removed: false,
};
const MOVED = {
  ...USED,
  topics: [TRANSFER, pad(PAYER), pad(PAY_TO)],
  data: `0x${PRICE.toString(16).padStart(64, '0')}`,
  logIndex: '0x8',
};
const RECEIPT = { transactionHash: HASH, blockNumber: '0x5f', status: '0x1', logs: [USED, MOVED] };

type Call = { readonly method: string; readonly params: readonly never[] };
type Results = Record<string, unknown>;
const GOOD: Results = {
  eth_chainId: '0x14a34',
  eth_getBlockByNumber: { number: '0x64', timestamp: '0x6553f100', transactions: [] },
  eth_getLogs: [USED],
  eth_getTransactionReceipt: RECEIPT,
  eth_call: `0x${'0'.repeat(63)}1`,
};

let node: Scripted;
const asked: Call[] = [];
beforeAll(async () => {
  node = await startScripted(() => undefined);
});
afterAll(() => node.close());

function evidenceOf(results: Results | ((call: Call) => unknown), rpcUrl = node.url, overrides = {}): Evidence {
  asked.length = 0;
  node.answer = (_, res, body) => {
    const call = JSON.parse(body) as Call & { id: number };
    asked.push(call);
    const result = typeof results === 'function' ? results(call) : results[call.method];
    const error = typeof result === 'object' && result !== null && 'error' in result;
    json(res, { jsonrpc: '2.0', id: call.id, ...(error ? result : { result }) });
  };
  const evidence = makeRail(overrides).rail.evidence({ ...RECEIVER, rpcUrl });
  if (evidence === undefined) throw new Error('no evidence');
  return evidence;
}

test('behaviour: without rpc_url there is no evidence, with one it is made once', () => {
  const { rail } = makeRail();
  expect(rail.evidence(RECEIVER)).toBeUndefined();
  const receiver = { ...RECEIVER, rpcUrl: node.url };
  expect(rail.evidence(receiver)).toBe(rail.evidence({ ...receiver }));
  expect(rail.evidence(receiver)).not.toBe(rail.evidence({ ...receiver, confirmations: 2 }));
  expect(rail.evidence(receiver)).not.toBe(rail.evidence({ ...receiver, caip2: 'eip155:8453' }));
});

test('behaviour: an honest node proves a payment', async () => {
  const evidence = evidenceOf(GOOD);
  expect(await evidence.findProof(SEARCH)).toEqual({ kind: 'found', transaction: HASH, logIndex: 8, block: 0x5fn });
  expect(asked.map(({ method }) => method)).toEqual([
    'eth_chainId',
    'eth_getBlockByNumber',
    'eth_getLogs',
    'eth_getTransactionReceipt',
  ]);
  expect(asked[2]?.params).toEqual([{ address: KEY.asset, topics: USED.topics, fromBlock: '0x5a', toBlock: '0x64' }]);
  expect(await evidence.nonceState(KEY)).toEqual({ kind: 'state', used: true, block: 100n, time: 0x6553f100n });
  expect(asked.at(-1)?.params).toEqual([
    { to: KEY.asset, data: `${AUTHORIZATION_STATE}${pad(PAYER).slice(2)}${KEY.nonce.slice(2)}` },
    '0x64',
  ]);
});

describe('no proof', () => {
  const receipt = (changes: object): Results => ({ ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, ...changes } });
  const moved = (changes: object): Results => receipt({ logs: [USED, { ...MOVED, ...changes }] });

  test.each<[string, Results]>([
    ['the next log is not there', receipt({ logs: [USED] })],
    ['the next log is another', receipt({ logs: [USED, { ...MOVED, logIndex: '0x9' }] })],
    ['the transfer came before', receipt({ logs: [{ ...MOVED, logIndex: '0x6' }, USED] })],
    ['of another token', moved({ address: '0x3333333333333333333333333333333333333333' })],
    ['from another payer', moved({ topics: [TRANSFER, pad(PAY_TO), pad(PAY_TO)] })],
    ['to another', moved({ topics: [TRANSFER, pad(PAYER), pad(PAYER)] })],
    ['of less', moved({ data: `0x${(PRICE - 1n).toString(16).padStart(64, '0')}` })],
    ['of more', moved({ data: `0x${(PRICE + 1n).toString(16).padStart(64, '0')}` })],
    ['an amount with more after it', moved({ data: `${MOVED.data}${'0'.repeat(64)}` })],
    ['an event that only looks like one', moved({ topics: [AUTHORIZATION_USED, pad(PAYER), pad(PAY_TO)] })],
    ['a transaction that reverted', receipt({ status: '0x0' })],
  ])('attack: %s', async (_, results) => {
    expect(await evidenceOf(results).findProof(SEARCH)).toEqual({ kind: 'contradicted', transaction: HASH });
  });

  test('behaviour: no use of the nonce is absent, up to the head', async () => {
    expect(await evidenceOf({ ...GOOD, eth_getLogs: [] }).findProof(SEARCH)).toEqual({
      kind: 'absent',
      scannedTo: 100n,
      complete: true,
    });
  });
});

describe('ranges', () => {
  const span = ({ params }: Call): [bigint, bigint] => {
    const [{ fromBlock, toBlock }] = params as unknown as [{ fromBlock: string; toBlock: string }];
    return [BigInt(fromBlock), BigInt(toBlock)];
  };
  const at = (height: bigint, logs: (call: Call) => unknown) => (call: Call) => {
    if (call.method === 'eth_getBlockByNumber') return { number: `0x${height.toString(16)}`, timestamp: '0x1' };
    return call.method === 'eth_getLogs' ? logs(call) : GOOD[call.method];
  };
  const logCalls = (): [bigint, bigint][] => asked.filter(({ method }) => method === 'eth_getLogs').map(span);

  test('behaviour: at most 1,000 blocks a call, every block once', async () => {
    const evidence = evidenceOf(at(2500n, () => []));
    expect(await evidence.findProof({ ...SEARCH, fromBlock: 1n })).toEqual({
      kind: 'absent',
      scannedTo: 2500n,
      complete: true,
    });
    expect(logCalls()).toEqual([
      [1n, 1000n],
      [1001n, 2000n],
      [2001n, 2500n],
    ]);
  });

  test('behaviour: at most 20 calls a search, which says where to go on', async () => {
    const evidence = evidenceOf(at(1_000_000n, () => []));
    const found = await evidence.findProof({ ...SEARCH, fromBlock: 1n });
    expect(found).toEqual({ kind: 'absent', scannedTo: 20_000n, complete: false });
    expect(logCalls().length).toBe(20);
  });

  test('behaviour: a node that refuses the range is asked for half of it', async () => {
    const refusing = (call: Call) => {
      const [from, to] = span(call);
      return to - from >= 300n ? { error: { code: -32_005, message: 'range too large' } } : [];
    };
    const evidence = evidenceOf(at(1000n, refusing));
    expect(await evidence.findProof({ ...SEARCH, fromBlock: 1n })).toMatchObject({ kind: 'absent', complete: true });
    expect(logCalls().slice(-4)).toEqual([
      [1n, 250n],
      [251n, 500n],
      [501n, 750n],
      [751n, 1000n],
    ]);
  });

  test('behaviour: a node that refuses every range is unavailable, not empty', async () => {
    const evidence = evidenceOf(at(1000n, () => ({ error: { code: -32_000, message: 'no logs here' } })));
    expect(await evidence.findProof({ ...SEARCH, fromBlock: 1n })).toMatchObject({ kind: 'unavailable' });
  });
});

describe('a node that is not to be believed', () => {
  const logs = (changes: object): Results => ({ ...GOOD, eth_getLogs: [{ ...USED, ...changes }] });

  test.each<[string, Results]>([
    ['of another chain', { ...GOOD, eth_chainId: '0x2105' }],
    ['chain id as a number', { ...GOOD, eth_chainId: 84_532 }],
    ['an error instead of a chain', { ...GOOD, eth_chainId: { error: { code: -32_601, message: 'no' } } }],
    ['no block', { ...GOOD, eth_getBlockByNumber: null }],
    ['a block without a number', { ...GOOD, eth_getBlockByNumber: { timestamp: '0x1' } }],
    [
      'a block number over 64 bits',
      { ...GOOD, eth_getBlockByNumber: { number: `0x1${'0'.repeat(16)}`, timestamp: '0x1' } },
    ],
    ['behind where the search starts', { ...GOOD, eth_getBlockByNumber: { number: '0x10', timestamp: '0x1' } }],
    ['logs that are no list', { ...GOOD, eth_getLogs: {} }],
    ['logs of another contract', logs({ address: PAY_TO })],
    ['logs of another payer', logs({ topics: [AUTHORIZATION_USED, pad(PAY_TO), KEY.nonce] })],
    ['logs of another nonce', logs({ topics: [AUTHORIZATION_USED, pad(PAYER), HASH] })],
    ['logs of another event', logs({ topics: [TRANSFER, pad(PAYER), KEY.nonce] })],
    [
      'logs of blocks not asked for',
      { ...logs({ blockNumber: '0x1' }), eth_getTransactionReceipt: { ...RECEIPT, blockNumber: '0x1' } },
    ],
    ['logs that were removed', logs({ removed: true })],
    ['logs without a transaction', logs({ transactionHash: null })],
    ['one nonce used twice', { ...GOOD, eth_getLogs: [USED, { ...USED, logIndex: '0x9' }] }],
    ['no receipt for its own log', { ...GOOD, eth_getTransactionReceipt: null }],
    [
      'the receipt of another transaction',
      { ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, transactionHash: KEY.nonce } },
    ],
    ['a receipt of another block', { ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, blockNumber: '0x5e' } }],
    ['a receipt without its own log', { ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, logs: [MOVED] } }],
    ['a receipt without a status', { ...GOOD, eth_getTransactionReceipt: { ...RECEIPT, status: undefined } }],
  ])('attack: %s is unavailable', async (_, results) => {
    expect(await evidenceOf(results).findProof(SEARCH)).toMatchObject({ kind: 'unavailable' });
  });

  test.each<[string, unknown]>([
    ['2', `0x${'0'.repeat(63)}2`],
    ['nothing', '0x'],
    ['a short word', '0x1'],
    ['true', true],
    ['an error', { error: { code: 3, message: 'execution reverted' } }],
  ])('attack: authorizationState answers %s', async (_, answer) => {
    expect(await evidenceOf({ ...GOOD, eth_call: answer }).nonceState(KEY)).toMatchObject({ kind: 'unavailable' });
  });

  test('behaviour: the state of a nonce is read as deep as a proof', async () => {
    node.requests.length = 0;
    const evidence = makeRail().rail.evidence({ ...RECEIVER, rpcUrl: node.url, confirmations: 11 });
    evidenceOf((call) => {
      if (call.method !== 'eth_getBlockByNumber') return GOOD[call.method];
      const [tag] = call.params as unknown as [string];
      return tag === 'latest' ? { number: '0x64', timestamp: '0x100' } : { number: tag, timestamp: '0xf0' };
    });
    expect(await evidence?.nonceState(KEY)).toEqual({ kind: 'state', used: true, block: 90n, time: 0xf0n });
  });

  test.each<[string, (res: Parameters<Scripted['answer']>[1], id: number, result: unknown) => void]>([
    ['HTML', (res) => void res.end('<html>')],
    ['an answer to another call', (res, id, result) => json(res, { jsonrpc: '2.0', id: id + 1, result })],
    ['an answer to no call', (res, _, result) => json(res, { jsonrpc: '2.0', result })],
    ['a list', (res, id, result) => json(res, [{ jsonrpc: '2.0', id, result }])],
    ['status 500', (res, id, result) => json(res, { jsonrpc: '2.0', id, result }, 500)],
    ['an error beside a result', (res, id, result) => json(res, { jsonrpc: '2.0', id, result, error: {} })],
    ['a redirect', (res) => void res.writeHead(302, { location: '/' }).end()],
    ['a broken connection', (res) => void res.destroy()],
  ])('attack: %s is unavailable', async (_, answer) => {
    const evidence = evidenceOf(GOOD);
    node.answer = (_req, res, body) => {
      const { id, method } = JSON.parse(body) as Call & { id: number };
      answer(res, id, GOOD[method]);
    };
    expect(await evidence.head()).toMatchObject({ kind: 'unavailable' });
  });

  test('behaviour: away is unavailable, and nobody waits longer than 5 seconds', async () => {
    expect(await evidenceOf(GOOD, await deadUrl()).findProof(SEARCH)).toMatchObject({ kind: 'unavailable' });
    const time = fakeTime();
    const evidence = evidenceOf(GOOD, node.url, { schedule: time.schedule });
    node.answer = () => time.advance(5000);
    expect(await evidence.nonceState(KEY)).toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining('in time'),
    });
  });

  test('behaviour: the chain is checked until it is the right one, and then no more', async () => {
    const results = { ...GOOD, eth_chainId: '0x1' };
    const evidence = evidenceOf(results);
    expect(await evidence.head()).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining('eip155:1,') });
    results.eth_chainId = '0x14a34';
    expect(await evidence.head()).toMatchObject({ kind: 'head' });
    asked.length = 0;
    await evidence.head();
    expect(asked.map(({ method }) => method)).toEqual(['eth_getBlockByNumber']);
  });
});
