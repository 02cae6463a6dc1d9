// `tollgate check --online`: what it finds about facilitators and tokens, real ones and such that say odd things.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { check } from '../../../src/cli/check.ts';
import { readArgs } from '../../../src/cli/args.ts';
import type { PlainReceiver } from '../../cases/receivers.ts';
import { checkReceivers } from '../../../src/gateway/rails/online-check.ts';
import type { Receiver } from '../../../src/domain/payment/offer.ts';
import { createAuthorize } from '../../../src/gateway/rails/x402/auth.ts';
import { createRandom, systemClock } from '../../../src/host/clock.ts';
import { startChain, type Chain } from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import type { TestFacilitator } from '../../support/facilitator-server.ts';
import { fakeIo } from '../../cli/support.ts';
import { deadUrl, facilitatorAt, json, makeReceiver, startScripted, type Scripted } from './kit.ts';

let chain: Chain;
let facilitator: TestFacilitator;
let scripted: Scripted;
let nowhere: string;

beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  scripted = await startScripted((_, res) => res.end());
  nowhere = await deadUrl();
});
afterAll(async () => {
  await scripted?.close();
  await facilitator?.close();
  await chain?.stop();
});

const find = async (receiver: Partial<PlainReceiver>, v1 = false): Promise<string[]> =>
  findAll(makeReceiver(receiver), v1);
const findAll = async (receiver: Receiver, v1 = false): Promise<string[]> => {
  const findings = await checkReceivers([receiver], {
    fetch,
    clock: systemClock,
    authorize: createAuthorize(systemClock, createRandom()),
    v1,
  });
  return findings.map(({ level, detail }) => `${level}: ${detail}`);
};

test('behaviour: a real facilitator and a real token are found to be what is configured', async () => {
  const receiver = { facilitators: [facilitatorAt(facilitator.url)], rpcUrls: [chain.rpcUrl] };
  const { host } = new URL(facilitator.url);
  const expected = [
    `ok: the facilitator ${host} serves exact on eip155:84532`,
    'ok: the token on eip155:84532 is what is configured',
  ];
  expect(await find(receiver)).toEqual(expected);
  expect(await find(receiver, true)).toEqual(expected);
});

test('behaviour: a finding that is the same for several ways is said once', async () => {
  const one = makeReceiver({ facilitators: [facilitatorAt(facilitator.url)], rpcUrls: [chain.rpcUrl] });
  const other = makeReceiver({ payTo: `0x${'2'.repeat(40)}`, facilitators: [facilitatorAt(nowhere)], rpcUrls: [] });
  const findings = await findAll({ ...one, ways: [...one.ways, ...one.ways, ...other.ways] });
  expect(findings).toEqual([
    expect.stringMatching(/^ok: the facilitator/),
    expect.stringMatching(/^ok: the token/),
    expect.stringMatching(/^away: the facilitator/),
  ]);
});

describe('tokens', () => {
  const OTHER = '0x2222222222222222222222222222222222222222';
  test.each<[string, Partial<PlainReceiver>, RegExp]>([
    ['a wrong name', { assetName: 'USD Coin' }, /^cannot_serve: asset_name is "USD Coin", the token says "USDC"/],
    ['a wrong version', { assetVersion: '1' }, /^cannot_serve: asset_version is "1", the token says "2"/],
    ['wrong decimals', { decimals: 18 }, /^cannot_serve: asset_decimals is "18", the token says "6"/],
    ['no contract', { asset: OTHER }, /^cannot_serve: there is no contract at 0x2222/],
    ['another chain', { network: 'eip155:8453' }, /^cannot_serve: the node .* is of eip155:84532/],
    [
      'a contract that says nothing',
      { asset: '0xcA11bde05977b3631167028862bE2a173976CA11' },
      /^warning: the token does not say/,
    ],
  ])('behaviour: the online check of tokens finds %s', async (_, receiver, finding) => {
    expect((await find({ ...receiver, rpcUrls: [chain.rpcUrl] })).join('\n')).toMatch(finding);
  });

  test('behaviour: a token that answers ERC-5267 is judged by that, not by name() and version()', async () => {
    const word = (value: bigint | number): string => value.toString(16).padStart(64, '0');
    const text = (value: string): string => word(value.length) + Buffer.from(value).toString('hex').padEnd(64, '0');
    const domain = `0x${'0f'.padEnd(64, '0')}${word(0xe0)}${word(0x120)}${word(84_532)}${word(0)}${word(0)}${word(0x160)}${text('Other Coin')}${text('7')}${word(0)}`;
    const name = `0x${word(0x20)}${text('USDC')}`;
    scripted.answer = (_, res, body) => {
      const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: [{ data?: string }] };
      const data = params[0]?.data;
      const results: Record<string, unknown> = { eth_chainId: '0x14a34', eth_getCode: '0x6001' };
      const answers: Record<string, string> = { '0x84b0196e': domain, '0x313ce567': `0x${word(6)}` };
      json(res, { jsonrpc: '2.0', id, result: results[method] ?? answers[data ?? ''] ?? name });
    };
    const findings = await find({ rpcUrls: [scripted.url] });
    expect(findings).toEqual([
      'cannot_serve: asset_name is "USDC", the token says "Other Coin"; every payment would be refused',
      'cannot_serve: asset_version is "2", the token says "7"; every payment would be refused',
    ]);
  });

  test('behaviour: a node that is away or talks nonsense is away', async () => {
    expect((await find({ rpcUrls: [nowhere] })).join()).toMatch(/^away: the node/);
    scripted.answer = (_, res, body) =>
      json(res, { jsonrpc: '2.0', id: (JSON.parse(body) as { id: number }).id, result: { a: 1 } });
    expect((await find({ rpcUrls: [scripted.url] })).join()).toMatch(/^away: the node/);
  });
});

describe('facilitators', () => {
  const KIND = { x402Version: 2, scheme: 'exact', network: 'eip155:84532' };
  test.each<[string, unknown, number, boolean, RegExp]>([
    ['serves it', { kinds: [KIND], extensions: [], signers: {} }, 200, false, /^ok/],
    ['serves v2 but not v1', { kinds: [KIND] }, 200, true, /^cannot_serve: .*x402 v1 exact on base-sepolia.*x402\.v1/],
    [
      'serves another network',
      { kinds: [{ ...KIND, network: 'eip155:8453' }] },
      200,
      false,
      /^cannot_serve: .*x402 v2 exact on eip155:84532/,
    ],
    ['serves another scheme', { kinds: [{ ...KIND, scheme: 'upto' }] }, 200, false, /^cannot_serve/],
    ['serves nothing', { kinds: [] }, 200, false, /^cannot_serve/],
    ['answers nonsense', { kind: [] }, 200, false, /^away/],
    ['wants to know who calls', { error: 'unauthorized' }, 401, false, /^cannot_serve: .*status 401: .*check auth/],
    [
      'is not paid by its owner',
      { errorType: 'payment_method_required' },
      402,
      false,
      /^cannot_serve: .*see to its billing/,
    ],
    ['does not let this key', {}, 403, false, /^cannot_serve: .*status 403/],
    ['is called too often', {}, 429, false, /^away: .*called too often/],
    ['is down', { error: 'down' }, 503, false, /^away: .*503/],
  ])('behaviour: the online check names a facilitator that %s', async (_, body, status, v1, finding) => {
    scripted.answer = (_, res) => json(res, body, status);
    const [found = ''] = await find({ facilitators: [facilitatorAt(scripted.url)] }, v1);
    expect(found).toMatch(finding);
  });

  test('behaviour: every facilitator is asked, with its own headers, and named by host alone', async () => {
    scripted.requests.length = 0;
    scripted.answer = (_, res) => json(res, { kinds: [KIND] });
    const own = { ...facilitatorAt(`${scripted.url}/secret-path/`), headers: { 'X-Key': 's3cret' } };
    const findings = await find({ facilitators: [facilitatorAt(nowhere), own] });
    expect(findings.map((finding) => finding.split(':')[0])).toEqual(['away', 'ok']);
    expect(scripted.requests).toMatchObject([
      { method: 'GET', url: '/secret-path/supported', headers: { 'x-key': 's3cret' } },
      { method: 'POST', url: '/secret-path/verify', headers: { 'x-key': 's3cret' } },
    ]);
    expect(findings.join()).not.toContain('secret');
  });
});

describe('the command', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tollgate-check-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const run = async (url: string, flags: readonly string[], extra = ''): Promise<{ code: number; out: string[] }> => {
    await writeFile(
      path.join(folder, 'tollgate.yaml'),
      [
        // Anything that takes connections does.
        `proxy: { listen: "127.0.0.1:0", upstream: "${new URL(facilitator.url).origin}" }`,
        'registry: { listen: "127.0.0.1:0", store: "sqlite:tollgate.db" }',
        `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x000000000000000000000000000000000000dEaD", facilitators: ["${url}"]${extra} }]`,
      ].join('\n'),
    );
    const args = readArgs(flags, check.flags, check.words);
    if (!args.ok) throw new Error(args.problems.join());
    const io = fakeIo({ folder });
    const code = await check.run(args.args, io);
    return { code, out: io.stdout().trimEnd().split('\n') };
  };

  test('behaviour: check --online ends with 0 and ok if all is well', async () => {
    const { code, out } = await run(facilitator.url, ['--online'], `, rpc_url: "${chain.rpcUrl}"`);
    expect(code).toBe(0);
    expect(out[0]).toBe('ok');
    expect(out.join('\n')).toContain('ok: receiver default: the token');
  });

  test('behaviour: check --online ends with 69 if a service is away', async () => {
    const { code, out } = await run(nowhere, ['--online', '--json'], ', rpc_url: none');
    expect(code).toBe(69);
    expect(JSON.parse(out.join('\n'))).toMatchObject({
      ok: false,
      problems: [],
      online: [
        { receiver: 'default', level: 'away' },
        { service: 'upstream', level: 'ok' },
      ],
    });
  });

  const NO_TOKEN =
    ', asset: "0x2222222222222222222222222222222222222222", asset_decimals: 6, asset_name: T, asset_version: "1"';
  test('behaviour: check --online ends with 1 if a receiver cannot be served, also if something else is away', async () => {
    const { code, out } = await run(nowhere, ['--online'], `${NO_TOKEN}, rpc_url: "${chain.rpcUrl}"`);
    expect(code).toBe(1);
    expect(out.join('\n')).toMatch(/cannot_serve: receiver default: there is no contract/);
  });

  test('behaviour: check asks nobody without --online', async () => {
    const { code, out } = await run(nowhere, ['--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out.join('\n'))).not.toHaveProperty('online');
  });
});
