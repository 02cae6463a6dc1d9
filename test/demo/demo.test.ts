// The demo as a newcomer runs it: real chains, real facilitators and the public client, in front of somebody's own API.
// Two of them side by side, because each has purses of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createTestClient, erc20Abi, http, publicActions, walletActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { runningDemos } from '../../src/cli/demo-directory.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CHAIN, USDC } from '../support/chain/chain.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { until } from '../support/paid-tollgate.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const NODE = path.join(ROOT, 'node_modules/.bin/node');
// Demos that somebody else runs on this machine are none of ours.
const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-test-'));
const env = {
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '',
  TMPDIR: folder,
  ...COMPILE_CACHE,
  // As npm starts it.
  npm_lifecycle_event: 'demo',
  npm_package_name: 'tollgate',
};

async function run(name: string, ...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(NODE, [path.join(ROOT, 'test/demo', name), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await ended;
  return { code: child.exitCode, stdout, stderr };
}

type Demo = {
  readonly url: (path: string) => string;
  readonly shown: () => string;
  /** Resolves when the terminal shows what `wanted` matches. */
  readonly shows: (wanted: RegExp) => Promise<string>;
  readonly stop: () => Promise<number | null>;
};

async function startDemo(...args: string[]): Promise<Demo> {
  const child = spawn(NODE, [path.join(ROOT, 'test/demo/demo.ts'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let shown = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      for (const look of waiting) look();
    });
  const ended = once(child, 'exit');
  const shows: Demo['shows'] = (wanted) =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const [found] = wanted.exec(shown) ?? [];
        if (found !== undefined) resolve(found);
      };
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`ended: ${shown}`)));
    });
  const stop = async (): Promise<number | null> => {
    child.kill('SIGINT');
    await ended;
    return child.exitCode;
  };
  await shows(/show below\.\n/);
  const origin = (await shows(/curl -i http:\/\/127\.0\.0\.1:\d+/)).slice('curl -i '.length);
  return { url: (at) => origin + at, shown: () => shown, shows, stop };
}

describe('the demo in front of somebody’s own API', () => {
  let upstream: Upstream;
  let demos: Demo[] = [];
  beforeAll(async () => {
    upstream = await startUpstream((req, res) => {
      if (req.url === '/reports/dies') req.socket.destroy();
      req.resume();
      if (req.url === '/reports/rainy') res.writeHead(200, { 'content-type': 'text/plain' });
      if (req.url === '/reports/moved') res.writeHead(302, { location: 'http://nowhere.invalid/file' });
      res.end(req.url === '/reports/rainy' ? 'rain' : undefined);
    });
    const args = ['--upstream', upstream.url, '--route', '* /reports/:id 0.10 USD', '--route', 'GET /data/* 0.05'];

    demos = await Promise.all([startDemo(...args), startDemo(...args)]);
  }, 180_000);
  afterAll(async () => {
    await Promise.all(demos.map((demo) => demo.stop()));
    await upstream?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('behaviour: each demo pays from its own purse, and its terminal shows requests and payments as lines', async () => {
    const [one, two] = demos;
    if (one === undefined || two === undefined) throw new Error('two demos were started');
    const [first, second, third] = [
      await run('pay.ts', one.url('/reports/1')),
      await run('pay.ts', two.url('/data/x')),
      await run('pay.ts', one.url('/reports/2')),
    ];
    for (const { code, stdout } of [first, second, third]) {
      expect(code).toBe(0);
      expect(stdout).toMatch(
        /^200 OK\n[^]*\npaid: 0\.\d+ USDC on base-sepolia to 0x\w{40} \(exact\)\nreceipt: \{"success":true/,
      );
    }
    expect([first, second, third].map(({ stdout }) => /balance.*/.exec(stdout)?.[0])).toEqual([
      'balance on base-sepolia: 4.9 USDC (before: 5)',
      'balance on base-sepolia: 4.95 USDC (before: 5)',
      'balance on base-sepolia: 4.8 USDC (before: 4.9)',
    ]);
    await one.shows(/\n\d\d:\d\d:\d\d {2}402 {2}GET \/reports\/1 {2}payment required/);
    await one.shows(
      /\n\d\d:\d\d:\d\d {2}settled {2}0\.10 USD from 0x\w{4}\.\.\w{4} on eip155:84532 {2}charge chg_\S+ {2}transaction 0x[0-9a-f]{64}/,
    );
    await one.shows(/\n\d\d:\d\d:\d\d {2}200 {2}GET \/reports\/1 {2}paid/);
    expect(one.shown()).not.toContain('/data/x');
    expect(one.shown()).not.toContain('\u001b');
  });

  test('behaviour: --network names the way: the same URL is paid on Solana, and the receipt names it', async () => {
    const [one] = demos;
    if (one === undefined) throw new Error('it was started');
    await until(
      'a facilitator has named a fee payer',
      async () => (await networksOf(one.url('/reports/3'))).length === 2,
    );
    expect(await networksOf(one.url('/reports/3'))).toEqual(['eip155:84532', DEVNET]);
    const { code, stdout, stderr } = await run('pay.ts', '--network', 'solana-devnet', one.url('/reports/3'));
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^200 OK\n[^]*\npaid: 0\.1 USDC on solana-devnet to [1-9A-HJ-NP-Za-km-z]{32,44} \(exact\)\n/,
    );
    expect(stdout).toMatch(new RegExp(`\nreceipt: \\{"success":true,[^\n]*"network":"${DEVNET}"`));
    expect(stdout).toMatch(/\nbalance on solana-devnet: 4\.9 USDC \(before: 5\)\n$/);
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'tollgate-network': DEVNET });
    await one.shows(/ {2}settled {2}0\.10 USD from \w+\.\.\w+ on solana:/);
  });

  test('refuses: to pay on another network, in one sentence that names those that are offered', async () => {
    const { code, stderr } = await run('pay.ts', '--network', 'base', demos[0]?.url('/reports/1') ?? '');
    expect([code, stderr]).toEqual([
      64,
      '--network: base is not offered by this demo; write base-sepolia or solana-devnet\n',
    ]);
  });

  describe('in a browser', () => {
    let browser: TestBrowser;
    beforeAll(async () => {
      browser = await startBrowser();
    }, 60_000);
    afterAll(() => browser?.close());

    test('behaviour: the protected URL shows the page with a demo wallet, which asks first and pays', async () => {
      const { page, context, complaints, barriers } = await browser.open();
      onTestFinished(() => context.close());
      const questions: string[] = [];
      let answer: 'accept' | 'dismiss' = 'dismiss';
      page.on('dialog', (dialog) => {
        questions.push(dialog.message());
        void dialog[answer]();
      });
      const heading = (name: string): Promise<void> => page.getByRole('heading', { name, exact: true }).waitFor();
      const click = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
      const before = upstream.seen.length;
      await page.goto(demos[0]?.url('/reports/rainy') ?? '');
      await click('Connect Demo wallet');
      await heading('Ready to pay');
      await page.getByText('5.00 USDC').waitFor();
      await click('Pay 0.10 USDC');
      await heading('You did not sign');
      answer = 'accept';
      await click('Pay 0.10 USDC');
      await heading('Paid');
      // No explorer knows the demo's chain.
      expect(await page.locator('a[href*="/tx/"]').count()).toBe(0);
      expect(await page.locator('.answer pre').textContent()).toBe('rain');
      const question = 'Demo wallet: pay 0.1 USDC (test money) to 0x000000000000000000000000000000000000dEaD?';
      expect(questions).toEqual([question, question]);
      expect(upstream.seen.slice(before)).toMatchObject([{ headers: { 'tollgate-network': 'eip155:84532' } }]);
      expect([complaints, await barriers()]).toEqual([[], []]);
      await demos[0]?.shows(/ {2}200 {2}GET \/reports\/rainy {2}paid/);
    });
  });

  describe('at a shop of somebody’s own', () => {
    let shop: Upstream;
    beforeAll(async () => {
      shop = await startUpstream((req, res) => {
        const [asset, payTo] = ['0x036CbD53842c5426634e7929541eC2318f3dCF7e', `0x${'1'.repeat(40)}`];
        const extra = { name: 'USDC', version: '2' };
        const offer = { scheme: 'exact', network: 'eip155:84532', asset, payTo, maxTimeoutSeconds: 60, extra };
        const accepts = [{ ...offer, amount: req.url === '/dear' ? '50000000' : '1000' }];
        const required = { x402Version: 2, resource: { url: shop.url }, accepts };
        if (req.headers['payment-signature'] !== undefined) {
          res.writeHead(503, { 'content-type': 'application/problem+json' });
          const charged = req.url === '/unknown' ? { charged: 'unknown', retry_until: '2030-01-01T00:00:00.000Z' } : {};
          res.end(JSON.stringify({ code: 'settlement_unknown', ...charged }));
          return;
        }
        res.writeHead(402, {
          'payment-required': Buffer.from(JSON.stringify(required)).toString('base64'),
        });
        res.end('no');
      });
    });
    afterAll(() => shop?.close());
    const payThere = (at: string, ...more: string[]): ReturnType<typeof run> =>
      run('pay.ts', `${shop.url}${at}`, '--demo', new URL(demos[0]?.url('') ?? '').port, ...more);

    test('refuses: to pay on a network that is not offered there, and names those that are', async () => {
      const said = `${shop.url}/x is not paid on solana-devnet; it offers base-sepolia.\n`;
      expect(await payThere('/x', '--network', 'solana-devnet')).toEqual({ code: 1, stdout: '', stderr: said });
    });

    test('behaviour: whether the money was taken is told as the answer tells it', async () => {
      const unknown = await payThere('/unknown');
      expect(unknown.stdout).toContain(
        'receipt: none, and whether the money was taken is not known yet: it is settled or failed for good until 2030-01-01',
      );
      expect(unknown.stdout).not.toContain('nothing was charged');
      expect((await payThere('/silent')).stdout).toContain('receipt: none, nothing was charged\n');
    });

    test('refuses: more than the public client pays by itself, in one sentence', async () => {
      const { code, stdout, stderr } = await payThere('/dear');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^The payment could not be made: .*maxAmountPerPayment.*\n$/);
    });
  });

  test('behaviour: METHOD, body and headers of npm run pay reach the API, once, and paid', async () => {
    const before = upstream.seen.length;
    const url = demos[0]?.url('/reports/7') ?? '';
    const { code, stdout } = await run(
      'pay.ts',
      url,
      'PUT',
      '--data',
      '{"a":1}',
      '-H',
      'Content-Type: application/json',
      '-H',
      'X-Mine: 1',
    );
    expect([code, stdout.split('\n')[0]]).toEqual([0, '200 OK']);
    expect(upstream.seen.slice(before)).toMatchObject([
      { method: 'PUT', url: '/reports/7', headers: { 'content-type': 'application/json', 'x-mine': '1' } },
    ]);
  });

  test('behaviour: an API that dies over a paid request: the receipt is shown beside the lower balance', async () => {
    const { code, stdout } = await run('pay.ts', demos[1]?.url('/reports/dies') ?? '', 'POST');
    expect([code, stdout.split('\n')[0]]).toEqual([0, '502 Bad Gateway']);
    expect(stdout).toMatch(/"charged":true,"retry_until":"20[^]*receipt: \{"success":true/);
    expect(stdout).not.toContain('nothing was charged');
  });

  test('behaviour: a redirect that was paid for is shown with its receipt, and not followed', async () => {
    const { code, stdout, stderr } = await run('pay.ts', demos[1]?.url('/reports/moved') ?? '');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^302 Found\nlocation: http:\/\/nowhere\.invalid\/file\n[^]*receipt: \{"success":true/);
  });

  test('behaviour: a demo prints what is there: the URL that costs, and commands of this checkout', async () => {
    const [one] = demos;
    expect(one?.shown()).toContain(`curl -i ${one?.url('/reports/1')}\n`);
    expect(one?.shown()).toMatch(/\nIt takes test USDC on base-sepolia and on solana-devnet: chains of this machine, /);
    expect(one?.shown()).toContain(`npm run --silent pay -- ${one?.url('/reports/1')}\n`);
    expect(one?.shown()).toContain(`npm run --silent pay -- --network solana-devnet ${one?.url('/reports/1')}\n`);
    expect(one?.shown()).toContain(
      `the demo wallet that it finds there: open ${one?.url('/reports/1')} in a browser\n`,
    );
    expect(one?.shown()).toMatch(/npm start -- charges list --config \/\S+\/running\.json\n/);
  });

  test('behaviour: a URL at which nobody listens is told in one sentence', async () => {
    const port = new URL(demos[0]?.url('') ?? '').port;
    const { code, stderr } = await run('pay.ts', 'http://nowhere.invalid/x', '--demo', port);
    expect([code, stderr]).toEqual([
      69,
      expect.stringMatching(/^(?:Nothing listens at|http:..nowhere.invalid did not answer).*\n$/),
    ]);
  });

  test('behaviour: a payment from an empty purse is refused with its reason, nothing is charged, exit code 1', async () => {
    const url = demos[1]?.url('/data/x') ?? '';
    const running = runningDemos(path.join(folder, `tollgate-demos-${process.getuid?.() ?? 0}`));
    const purse = running.find(({ proxy }) => url.startsWith(proxy))?.purses[0];
    const account = privateKeyToAccount(`0x${purse?.key ?? ''}`);
    const common = { chain: CHAIN, transport: http(purse?.rpc_url), account };
    const node = createTestClient({ ...common, mode: 'anvil' })
      .extend(publicActions)
      .extend(walletActions);
    const token = { address: USDC, abi: erc20Abi } as const;
    const funds = await node.readContract({ ...token, functionName: 'balanceOf', args: [account.address] });
    await node.setBalance({ address: account.address, value: 10n ** 18n });
    await node.writeContract({ ...token, functionName: 'transfer', args: [USDC, funds] });
    const { code, stdout, stderr } = await run('pay.ts', url);
    expect([code, stderr]).toEqual([1, '']);
    const reason = 'invalid_exact_evm_insufficient_balance';
    expect(stdout).toContain(`402 Payment Required (payment_refused: ${reason})\n`);
    expect(stdout).toContain(`\nreceipt: {"success":false,"errorReason":"${reason}"`);
    expect(stdout).toMatch(/\nbalance on base-sepolia: 0 USDC \(before: 0\)\n$/);
    expect(stdout).not.toContain('paid:');
  });

  test('refuses: to guess between two purses', async () => {
    const other = await run('pay.ts', upstream.url);
    expect(other.code).toBe(64);
    expect(other.stderr).toMatch(/^Which demo's money\? Name one of them: --demo \d+, --demo \d+\n$/);
  });
});

describe('one sentence', () => {
  test.each<[string, string, string[], number, RegExp, RegExp]>([
    ['help of the demo', 'demo.ts', ['--help'], 0, /^npm run demo[^]*--upstream URL/, /^$/],
    [
      'an unknown flag',
      'demo.ts',
      ['--upstreem=x'],
      64,
      /^$/,
      /^--upstreem: is not known here; did you mean --upstream\?\n/,
    ],
    ['help of pay', 'pay.ts', ['--help'], 0, /^npm run pay[^]*--data BODY[^]*--header/, /^$/],
    ['no URL', 'pay.ts', [], 64, /^$/, /^Which URL\?/],
    ['no scheme', 'pay.ts', ['localhost:3000/x'], 64, /^$/, /^The scheme is missing: http:\/\/localhost:3000\/x\n$/],
    [
      'a body without a method for it',
      'pay.ts',
      ['http://x/', 'GET', '-d', 'x'],
      64,
      /^$/,
      /^--data: a GET has no body\n$/,
    ],
    ['a header that is none', 'pay.ts', ['http://x/', '-H', 'nothing'], 64, /^$/, /^--header: is no header/],
  ])('refuses: %s', async (_name, program, args, code, stdout, stderr) => {
    const ended = await run(program, ...args);
    expect(ended).toEqual({ code, stdout: expect.stringMatching(stdout), stderr: expect.stringMatching(stderr) });
  });
});

test('behaviour: nobody listens, the chain is away, no demo runs: each is one sentence', async () => {
  const place = mkdtempSync(path.join(tmpdir(), 'tollgate-test-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const { registerDemo } = await import('../../src/cli/demo-directory.ts');
  const nowhere = createServer().listen(0, '127.0.0.1');
  await once(nowhere, 'listening');
  const { port } = nowhere.address() as AddressInfo;
  nowhere.close();
  await once(nowhere, 'close');
  const url = `http://127.0.0.1:${port}`;
  const purses = ['base-sepolia', 'solana-devnet'].map((network) => {
    return { network, facilitator: url, rpc_url: url, key: '1'.repeat(64) };
  });
  const demo = { pid: process.pid, proxy: url, purses };
  const folders = path.join(place, `tollgate-demos-${process.getuid?.() ?? 0}`);
  const pay = (): Promise<string> => payIn(place, `${url}/x`);
  expect(await pay()).toBe('69 There is no demo to pay in: start `npm run demo` in another terminal first.\n');
  const remove = registerDemo(demo, folders);
  expect(await pay()).toBe('69 A chain of the demo does not answer: stop the demo and start `npm run demo` again.\n');
  remove();
});

const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';

/** Those that a 402 offers, in its order. */
async function networksOf(url: string): Promise<string[]> {
  const { headers } = await fetch(url);
  const text = Buffer.from(headers.get('payment-required') ?? '', 'base64').toString();
  return (JSON.parse(text) as { accepts: { network: string }[] }).accepts.map(({ network }) => network);
}

async function payIn(place: string, url: string): Promise<string> {
  const child = spawn(NODE, [path.join(ROOT, 'test/demo/pay.ts'), url], {
    env: { ...env, TMPDIR: place },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close');
  const said = await text(child.stderr);
  await ended;
  return `${child.exitCode} ${said}`;
}
