// From test money to real money: the README's commands, word for word, before a stand-in for the facilitator that they name.
// The stand-in judges every token as the real one does; what it says about payments is made up.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { json, startScripted, type Scripted } from '../gateway/rails/kit.ts';
import { keepSecret } from '../support/canaries.ts';
import { createDoorkeeper, newCdpAccount } from '../support/callers.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const WALLET = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
const PAYER = '0x1111111111111111111111111111111111111111';
const CDP = 'https://api.cdp.coinbase.com';
const account = newCdpAccount('pem');
keepSecret('CDP_API_KEY_SECRET', account.secret.split('\n')[1] ?? '');

/** The shell blocks of the README's section. */
const [FLAGS = '', BESIDE = '', FILE = ''] = [
  ...(readFileSync(path.join(ROOT, 'README.md'), 'utf8').split('## Real money\n')[1] ?? '')
    .split('\n## ')[0]!
    .matchAll(/```sh\n([^]*?)```/g),
].map(([, block]) => block ?? '');

const ANSWERS = new Map<string, unknown>([
  ['/platform/v2/x402/supported', { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }] }],
  ['/platform/v2/x402/verify', { isValid: true, payer: PAYER }],
  [
    '/platform/v2/x402/settle',
    { success: true, transaction: `0x${'9a'.repeat(32)}`, network: 'eip155:8453', payer: PAYER },
  ],
]);

let offlineResponses: Scripted;
let refused: string[];
let upstream: Upstream;
let files: ReturnType<typeof temporaryFolder>;
const running: TollgateProcess[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  offlineResponses = await startScripted((_, res) => res.end());
});
beforeEach(() => {
  files = temporaryFolder();
  cpSync(path.join(ROOT, 'config'), path.join(files.folder, 'config'), { recursive: true });
  // Nobody is called but the facilitator, and of it the stand-in.
  files.write(
    'network.mjs',
    `const real = globalThis.fetch;
     globalThis.fetch = (input, init) => {
       const url = String(input instanceof Request ? input.url : input);
       if (!url.startsWith('${CDP}/')) return Promise.reject(new TypeError('there is no network here'));
       return real('${offlineResponses.url}' + url.slice(${CDP.length}), init);
     };`,
  );
  refused = [];
  const keep = createDoorkeeper(account.account, Date.now, new URL(CDP).host);
  offlineResponses.requests.length = 0;
  offlineResponses.answer = (req, res) => {
    const why = keep(req);
    if (why !== undefined) {
      refused.push(why);
      return json(res, { errorType: 'unauthorized' }, 401);
    }
    const answer = ANSWERS.get(req.url ?? '');
    return answer === undefined ? json(res, { errorType: 'not_found' }, 404) : json(res, answer);
  };
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.kill()));
  files.remove();
});
afterAll(async () => {
  await offlineResponses.close();
  await upstream.close();
});

type Started = { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** Runs `block` in a shell, in an empty folder with the repository's examples; what it says to npm is kept and not run. */
function follow(block: string, secret = account.secret): readonly Started[] {
  const text = block
    .replaceAll('0xYourAddress', WALLET)
    .replaceAll('YourKeyId', account.keyId)
    .replaceAll('YourKeySecret', secret)
    .replaceAll('http://localhost:3000', upstream.url);
  const record = path.join(files.folder, 'record');
  writeFileSync(record, '');
  const npm = `npm() { shift; if [ "\${1-}" = -- ]; then shift; fi; printf '%s\\0' "$@" $'\\x01' >> '${record}'; env -0 > '${record}.env'; }`;
  execFileSync('bash', ['-euc', `${npm}\n${text}`], { cwd: files.folder });
  const env = Object.fromEntries(
    readFileSync(`${record}.env`, 'utf8')
      .split('\0')
      .flatMap((entry) => (/^(?:CDP_|PAY_TO)/.test(entry) ? [entry.split(/=([^]*)/, 2) as [string, string]] : [])),
  );
  return readFileSync(record, 'utf8')
    .split('\u0001\0')
    .slice(0, -1)
    .map((words) => ({ args: words.split('\0').filter((word) => word !== ''), env }));
}

async function run({ args, env }: Started, listeners: readonly string[]): Promise<TollgateProcess> {
  const preload = `--import=file://${path.join(files.folder, 'network.mjs')}`;
  const process = await startProcess({ args, cwd: files.folder, env: { ...env, NODE_OPTIONS: preload }, listeners });
  running.push(process);
  return process;
}

async function ended(started: Started): Promise<{ readonly code: number | string; readonly text: string }> {
  const process = await run(started, []);
  const code = await process.exited;
  return { code, text: process.stderr() + process.lines.map((line) => JSON.stringify(line)).join('\n') };
}

const PORTS = ['--listen', '127.0.0.1:0', '--registry-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];

type Terms = { readonly network: string; readonly asset: string; readonly amount: string; readonly payTo: string };

async function payOnce(tollgate: TollgateProcess): Promise<{ readonly terms: Terms; readonly status: number }> {
  const url = `${tollgate.url('proxy')}/reports/q3`;
  const asked = await fetch(url);
  const required = JSON.parse(Buffer.from(asked.headers.get('payment-required') ?? '', 'base64').toString()) as {
    accepts: [Terms];
  };
  const [terms] = required.accepts;
  const authorization = {
    from: PAYER,
    to: terms.payTo,
    value: terms.amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + 250),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  const payload = { signature: `0x${'ab'.repeat(65)}`, authorization };
  const credential = Buffer.from(JSON.stringify({ x402Version: 2, accepted: terms, payload })).toString('base64');
  const paid = await fetch(url, { headers: { 'PAYMENT-SIGNATURE': credential } });
  await paid.arrayBuffer();
  return { terms, status: paid.status };
}

const ON_BASE = {
  network: 'eip155:8453',
  asset: NETWORKS.find('base')?.tokens[0]?.address,
  amount: '100000',
  payTo: WALLET,
};

test('behaviour: with flags alone real money is taken, and commands work beside the server', async () => {
  const [serve] = follow(FLAGS);
  if (serve === undefined) throw new Error('the README starts nothing');
  const tollgate = await run({ ...serve, args: [...serve.args, ...PORTS] }, ['proxy', 'registry', 'admin']);
  expect(tollgate.stderr()).toContain(`REAL MONEY: payments are made on base, to ${WALLET}.`);
  const { terms, status } = await payOnce(tollgate);
  expect([terms, status]).toEqual([expect.objectContaining(ON_BASE), 200]);
  await tollgate.beside();
  const [check] = follow(BESIDE);
  expect(await ended({ args: check?.args ?? [], env: serve.env })).toMatchObject({
    code: 0,
    text: expect.stringContaining('api.cdp.coinbase.com serves exact on eip155:8453'),
  });
  // Without the variables: what needs no key works all the same.
  expect(await ended({ args: ['charges', 'list'], env: {} })).toMatchObject({ code: 0 });
  expect(refused).toEqual([]);
  const [, secretLine = ''] = account.secret.split('\n');
  expect(JSON.stringify(tollgate.lines) + tollgate.stderr()).not.toContain(secretLine);
  const kept = readdirSync(path.join(files.folder, 'data')).filter((name) => name.endsWith('.json'));
  expect(kept).toContain('running.json');
  for (const name of kept)
    expect(readFileSync(path.join(files.folder, 'data', name), 'utf8')).not.toContain(secretLine);
});

test('behaviour: with a file real money is taken', async () => {
  const [check, serve] = follow(FILE);
  if (check === undefined || serve === undefined) throw new Error('the README checks or starts nothing');
  const file = path.join(files.folder, 'tollgate.yaml');
  const text = readFileSync(file, 'utf8')
    .replace(/listen: \S+:840[23]/g, 'listen: 127.0.0.1:0')
    .replace('# admin: { listen: 127.0.0.1:9402 }', 'admin: { listen: 127.0.0.1:0 }');
  writeFileSync(file, text);
  const env = { ...serve.env, UPSTREAM: upstream.url };
  expect(await ended({ ...check, env })).toMatchObject({
    code: 0,
    text: expect.stringContaining('api.cdp.coinbase.com serves exact on eip155:8453'),
  });
  const tollgate = await run({ ...serve, env }, ['proxy', 'admin']);
  const { terms, status } = await payOnce(tollgate);
  expect([terms, status]).toEqual([expect.objectContaining(ON_BASE), 200]);
  expect(refused).toEqual([]);
});

test('behaviour: check --online says that the facilitator does not know the key', async () => {
  const [check] = follow(FILE, newCdpAccount('pem').secret);
  const { code, text } = await ended({ args: check?.args ?? [], env: { ...check?.env, UPSTREAM: upstream.url } });
  expect(code).toBe(1);
  expect(text).toContain(`api.cdp.coinbase.com takes no call with the key ${account.keyId}: status 401`);
  expect(refused).toEqual(['signature']);
});
