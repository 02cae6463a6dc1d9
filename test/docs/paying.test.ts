// docs/paying.md as a developer uses it: every program in it is run as it stands, against Tollgate, a real chain and a
// facilitator; its tables name every code and reason that there is.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { generatePrivateKey } from 'viem/accounts';
import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { PROBLEMS } from '../../src/domain/problem.ts';
import { NODE, ROOT } from '../deploy/support.ts';
import { keepSecret } from '../support/canaries.ts';
import { createPayer } from '../support/chain/payer.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';
import { base58, keyOf, unbase58 } from '../support/svm/wire.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { findBlock, readBlocks, readTable } from './blocks.ts';

const DOCUMENT = 'docs/paying.md';
const blocks = readBlocks(DOCUMENT);
const programs = blocks.filter(({ language }) => language === 'js');

type Run = { readonly code: number; readonly stdout: string; readonly stderr: string };

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-docs-'));
symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
for (const { name, text } of blocks) if (/^[\w-]+\.\w+$/.test(name)) writeFileSync(path.join(folder, name), text);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const own = { PATH: `${path.dirname(NODE)}:${process.env['PATH'] ?? ''}`, HOME: folder, ...COMPILE_CACHE };
  return new Promise((resolve) => {
    execFile(command, args, { cwd: folder, env: { ...own, ...env } }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, stdout, stderr });
    });
  });
}

const script = (name: string, env: Readonly<Record<string, string>>): Promise<Run> =>
  run('sh', ['-e', '-c', findBlock(blocks, name).text], env);

async function missing(command: string): Promise<boolean> {
  return (await run('sh', ['-c', `command -v ${command}`])).code !== 0;
}
const [noCurl, noPython] = await Promise.all([missing('curl'), missing('python3')]);

describe('the programs of docs/paying.md', () => {
  let paid: PaidTollgate;
  let elsewhere: Upstream;
  let failures = 0;
  let key: Hex;
  let before: bigint;

  const handle: RequestListener = (req, res) => {
    req.resume();
    if (failures > 0) {
      failures--;
      res.writeHead(500).end('a fault of the API');
    } else if (req.url === '/events') {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: rain\n\n');
      res.end('data: sun\n\n');
    } else if (req.url === '/file') res.writeHead(302, { location: `${elsewhere.url}/signed` }).end();
    else res.end(`the ${req.method} of ${req.url}`);
  };

  beforeAll(async () => {
    elsewhere = await startUpstream((req, res) => {
      req.resume();
      res.end('the file');
    });
    paid = await startPaidTollgate({
      routes: ['* /reports/* 0.10', 'GET /events 0.10', 'GET /socket 0.10', 'GET /file 0.10', 'GET /dear 2.00'],
      handle,
    });
    paid.upstream.server.on('upgrade', (req, socket) => {
      const accept = createHash('sha1')
        .update(`${req.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.write(Buffer.concat([Buffer.from([0x81, 4]), Buffer.from('rain')]));
      socket.on('data', () => socket.end(Buffer.from([0x88, 0])));
      socket.on('error', () => socket.destroy());
    });
  }, 60_000);
  afterAll(async () => {
    await paid?.stop();
    await elsewhere?.close();
  });
  beforeEach(async () => {
    key = generatePrivateKey();
    await createPayer(paid.chain, 10_000_000n, key);
    before = await paid.earned();
  });
  afterEach(() => {
    failures = 0;
    paid.facilitator.clearFaults();
  });

  const env = (target: string): Record<string, string> => ({ URL: paid.url(target), PRIVATE_KEY: key });
  const program = (name: string, target: string, ...args: string[]): Promise<Run> =>
    run(NODE, [name, ...args], env(target));
  const spent = async (): Promise<bigint> => (await paid.earned()) - before;

  test('behaviour: pay.mjs pays, and shows the answer and the receipt', async () => {
    const { code, stdout } = await program('pay.mjs', '/reports/q3');
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^200 the GET of \/reports\/q3\nreceipt \{\n\s+success: true/),
    ]);
    expect(await spent()).toBe(100_000n);
  });

  test('behaviour: pay.mjs with an empty wallet says why it was not paid', async () => {
    key = generatePrivateKey();
    keepSecret('a private key', key.slice(2));
    const { code, stdout } = await program('pay.mjs', '/reports/q3');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\nnot paid: payment_refused: \w+_insufficient_balance/)]);
    expect(await spent()).toBe(0n);
  });

  test('behaviour: pay-axios.mjs pays for a POST with a body', async () => {
    const { code, stdout } = await program('pay-axios.mjs', '/reports/q3');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^200 the POST of \/reports\/q3 \w+=*\n$/)]);
    expect(await spent()).toBe(100_000n);
    const { stdout: refused } = await program('pay-axios.mjs', '/reports/a%2Fb');
    expect(refused).toBe('400 target_ambiguous\n');
  });

  test('behaviour: buy.mjs has its answer for one charge after the API failed once', async () => {
    failures = 1;
    const seen = paid.upstream.seen.length;
    const { code, stdout } = await program('buy.mjs', '/reports/q3');
    expect([code, stdout]).toEqual([0, '200 the POST of /reports/q3\n']);
    expect(await spent()).toBe(100_000n);
    const ids = paid.upstream.seen.slice(seen).map(({ headers }) => headers['tollgate-charge-id']);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  test('behaviour: buy.mjs has its answer after the API was away, and nothing was settled meanwhile', async () => {
    const { server, port } = paid.upstream;
    const calls = paid.facilitator.calls.length;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    const bought = program('buy.mjs', '/reports/away');
    await paid.tollgate().line((line) => line['path'] === '/reports/away' && line['status'] === 502);
    const settled = paid.facilitator.calls.slice(calls).filter(({ operation }) => operation === 'settle');
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
    expect(await bought).toMatchObject({ code: 0, stdout: '200 the POST of /reports/away\n' });
    expect(settled).toEqual([]);
    expect(await spent()).toBe(100_000n);
  });

  test('behaviour: caps.mjs pays what the client by itself refuses to pay', async () => {
    const refused = await program('pay.mjs', '/dear');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('Failed to create payment payload')]);
    const { code, stdout } = await program('caps.mjs', '/dear');
    expect([code, stdout]).toEqual([0, '200\n']);
    expect(await spent()).toBe(2_000_000n);
  });

  test('behaviour: events.mjs reads a paid stream of events', async () => {
    const { code, stdout } = await program('events.mjs', '/events');
    expect([code, stdout]).toEqual([0, 'data: rain\n\ndata: sun\n\n']);
    expect(await spent()).toBe(100_000n);
  });

  test('behaviour: socket.mjs pays for a WebSocket at its handshake and reads a message', async () => {
    const { code, stdout, stderr } = await program('socket.mjs', '/socket');
    expect([code, stdout, stderr]).toEqual([0, 'rain\n', '']);
    expect(await spent()).toBe(100_000n);
  });

  test('behaviour: redirect.mjs fetches what a paid redirect leads to, and takes no payment there', async () => {
    const { code, stdout } = await program('redirect.mjs', '/file');
    expect([code, stdout]).toEqual([0, '200 the file\n']);
    expect(await spent()).toBe(100_000n);
    expect(elsewhere.seen.map(({ url }) => url)).toEqual(['/signed']);
    expect(elsewhere.seen[0]?.headers).not.toHaveProperty('payment-signature');
  });

  test('behaviour: a quote that HEAD asked for pays a GET', async () => {
    const quote = await paid.quote('/reports/q3', 'HEAD');
    const response = await paid.pay('/reports/q3', await paid.sign(quote));
    expect([response.status, await response.text()]).toEqual([200, 'the GET of /reports/q3']);
    expect((await paid.charges())[0]?.id).toBe(quote.extra.external_ref);
  });

  test.skipIf(noCurl)('behaviour: curl shows the price, and the way to pay it', async () => {
    const { code, stdout } = await script('the price', env('/reports/q3'));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ x402Version: 2, accepts: [{ scheme: 'exact', amount: '100000' }] });
  });

  test.skipIf(noCurl)(
    'behaviour: curl sends what sign.mjs signed, and again after a 503 as Retry-After says',
    async () => {
      const calls = paid.facilitator.calls.length;
      paid.facilitator.fault('verify', { kind: 'answer', status: 500, body: 'out of order' }, 1);
      const { code, stdout } = await script('the answer', env('/reports/q3'));
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^200 \w+=*\n$/)]);
      expect(readFileSync(path.join(folder, 'answer.json'), 'utf8')).toBe('the GET of /reports/q3');
      expect(paid.facilitator.calls.slice(calls).map(({ operation }) => operation)).toEqual([
        'verify',
        'verify',
        'settle',
      ]);
      expect(await spent()).toBe(100_000n);
    },
  );
});

describe('the program for Solana of docs/paying.md', () => {
  let paid: PaidSolana;
  beforeAll(async () => {
    paid = await startPaidSolana({ routes: ['GET /reports/* 0.10'] });
  }, 60_000);
  afterAll(() => paid?.stop());

  test('behaviour: pay-solana.mjs pays with the key that a wallet exports', async () => {
    const payer = keyOf('a reader of docs/paying.md');
    paid.chain.mint(payer.address, 1_000_000n);
    const secret = base58(Buffer.concat([payer.seed, unbase58(payer.address)]));
    keepSecret('a private key', secret);
    const before = paid.earned();
    const { code, stdout } = await run(NODE, ['pay-solana.mjs'], {
      URL: paid.url('/reports/q3'),
      SOLANA_KEY: secret,
      RPC_URL: paid.chain.rpcUrl,
    });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^200 \{"upstream":true/)]);
    expect(paid.earned() - before).toBe(100_000n);
  });
});

describe('docs/paying.md', () => {
  test('behaviour: every program and command in docs/paying.md is run by a test, or by the suite that has its package', () => {
    const names = blocks.filter(({ language }) => language === 'js' || language === 'sh').map(({ name }) => name);
    const run = ['what the examples need', 'the price', 'the answer', ...RUN, 'pay-v1.mjs'];
    expect(names.toSorted()).toEqual(run.toSorted());
  });

  test('behaviour: the packages that docs/paying.md installs are those that its programs import', () => {
    const [, listed = ''] = /^npm install (.*)$/m.exec(findBlock(blocks, 'what the examples need').text) ?? [];
    const imported = programs
      .filter(({ name }) => name !== 'pay-v1.mjs')
      .flatMap(({ text }) => [...text.matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name = '']) => name));
    const packages = new Set(imported.filter((name) => name !== 'node'));
    expect(listed.split(' ').toSorted()).toEqual([...packages].toSorted());
  });

  test('behaviour: pay-v1.mjs is JavaScript (npm run test:interop runs it)', async () => {
    expect(await run(NODE, ['--check', 'pay-v1.mjs'])).toMatchObject({ code: 0, stderr: '' });
  });

  test.skipIf(noPython).each(blocks.filter(({ language }) => language === 'python').map(({ name }) => name))(
    'behaviour: %s is Python',
    async (name) => {
      const check = 'import ast, sys; ast.parse(open(sys.argv[1]).read())';
      expect(await run('python3', ['-c', check, name])).toMatchObject({ code: 0, stderr: '' });
    },
  );

  test('behaviour: the JSON of docs/paying.md is JSON', () => {
    const texts = blocks.filter(({ language }) => language === 'json').map(({ text }) => text);
    expect(texts.length).toBeGreaterThan(0);
    for (const text of texts) expect(() => JSON.parse(text) as unknown).not.toThrow();
  });

  test('behaviour: docs/paying.md says of every code that the proxy answers with what to do, under its status', () => {
    const said = readTable(DOCUMENT, 'status').flatMap(([status = '', codes = '']) =>
      [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']) => `${status} ${code}`),
    );
    const names = Object.keys(PROBLEMS);
    const ofProxy = Object.entries(PROBLEMS)
      .filter(([code]) => names.indexOf(code) < names.indexOf('malformed') || code === 'internal')
      .map(([code, { status }]) => `${status} ${code}`);
    expect(said.toSorted()).toEqual(ofProxy.toSorted());
  });

  test('behaviour: docs/paying.md says of every reason of a 402 what to do', () => {
    const said = readTable(DOCUMENT, 'reason').flatMap(([reason = '']) => reason.replaceAll('`', '').split(', '));
    expect(said.toSorted()).toEqual([...REASONS].toSorted());
  });
});

const RUN = [
  'pay.mjs',
  'pay-axios.mjs',
  'pay-solana.mjs',
  'buy.mjs',
  'caps.mjs',
  'events.mjs',
  'socket.mjs',
  'redirect.mjs',
  'sign.mjs',
];

const REASONS = [
  'payment_required',
  'payment_refused',
  'payment_already_used',
  'pass_unknown',
  'pass_expired',
  'pass_used_up',
  'pass_scope',
  'pass_revoked',
  'wallet_unsupported',
  'quote_mismatch',
  'quote_already_used',
  'settlement_refused',
  ...['customer_unknown', 'customer_expired', 'customer_quota_used_up', 'free_used_up'],
  'x402_version_unsupported',
];
