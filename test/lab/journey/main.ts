// `npm run test:journey`: which files and functions of src one request passes, by V8's precise coverage of an all-in-one in
// this process. Each request is sent a few times after a first one that makes the connections; what every one of them
// entered counts. A timer that runs four times a second may meet each of these on a busy machine: so a request is sent more
// often if it seems to pass a file by what timers enter alone. The threads of the store are not counted. `--list` names
// files and functions, `--json` is for the test.
import { createServer, request, Agent, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { Session, type Profiler } from 'node:inspector/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startTollgate } from '../../../src/compose.ts';
import { readConfig } from '../../../src/config/load.ts';
import { resolveSecrets } from '../../../src/config/first-start.ts';
import { NETWORKS } from '../../../src/gateway/rails/rails.ts';
import { createRandom, systemClock } from '../../../src/host/clock.ts';
import { createLog } from '../../../src/host/log.ts';
import { makeUpPayment, readTerms } from '../../support/made-up-payment.ts';

const { values } = parseArgs({ options: { list: { type: 'boolean' }, json: { type: 'boolean' } } });
const SRC = path.resolve(import.meta.dirname, '../../../src');
const TIMES = 10;
const MOST_TIMES = 50;
/** Long enough for every timer that could meet all of so many requests. */
const IDLE_MS = 1500;

/** File -> names of the functions of it that were entered. */
type Passed = ReadonlyMap<string, ReadonlySet<string>>;

const upstream = await serve((req, res) => {
  req.resume().on('end', () => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '10' }).end('{"data":1}');
  });
});
const facilitator = await serve((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => {
    // A start asks for it once.
    if (req.url === '/supported') {
      res.end('{"kinds":[]}');
      return;
    }
    const { from, nonce } = (JSON.parse(text) as FacilitatorCall).paymentPayload.payload.authorization;
    const settled = { success: true, transaction: nonce, network: 'eip155:84532', payer: from };
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify(req.url === '/verify' ? { isValid: true, payer: from } : settled));
  });
});
type FacilitatorCall = {
  readonly paymentPayload: {
    readonly payload: { readonly authorization: { readonly from: string; readonly nonce: string } };
  };
};

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-journey-'));
const lines: string[] = [];
const log = createLog('debug', (line) => void lines.push(line), systemClock.now);
const random = createRandom();
const tollgate = await startTollgate(configOf(), { log, clock: systemClock, random, version: '0.0.0' });
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const session = new Session();
session.connect();

try {
  const timers = await enteredWhileIdle();
  const journeys = {
    'free GET': await journey(() => ask('GET', '/free'), '"msg":"request"', timers),
    'paid POST': await journey(pay, '"state":"delivered"', timers),
  };
  const counts = Object.entries(journeys).map(([name, passed]) => ({
    name,
    files: passed.size,
    functions: [...passed.values()].reduce((sum, { size }) => sum + size, 0),
    passed: Object.fromEntries([...passed].map(([file, functions]) => [file, [...functions]])),
  }));
  if (values.json) process.stdout.write(`${JSON.stringify(counts)}\n`);
  for (const { name, files, functions, passed } of values.json ? [] : counts) {
    process.stdout.write(`${name}: ${files} files, ${functions} functions\n`);
    for (const [file, names] of values.list ? Object.entries(passed) : [])
      process.stdout.write(`  ${file}: ${names.join(' ')}\n`);
  }
} finally {
  agent.destroy();
  await tollgate.stop(false);
  upstream.close();
  facilitator.close();
  rmSync(folder, { recursive: true, force: true });
}

async function enteredWhileIdle(): Promise<Passed> {
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  return entered(result);
}

function isPerhapsOfTimers(passed: Passed, timers: Passed): boolean {
  return [...passed].some(([file, names]) => names.isSubsetOf(timers.get(file) ?? new Set()));
}

/** `end`: in the line of the log that is the last of such a request. */
async function journey(run: () => Promise<void>, end: string, timers: Passed): Promise<Passed> {
  let common = new Map<string, Set<string>>();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  for (let time = -1; time < TIMES || (time < MOST_TIMES && isPerhapsOfTimers(common, timers)); time++) {
    lines.length = 0;
    await session.post('Profiler.takePreciseCoverage');
    await run();
    while (!lines.some((line) => line.includes(end))) await new Promise(setImmediate);
    await new Promise(setImmediate);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    if (time >= 0) common = time === 0 ? entered(result) : inBoth(common, entered(result));
    // What came late of this one is not counted for the next.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await session.post('Profiler.stopPreciseCoverage');
  return common;
}

function entered(scripts: readonly Profiler.ScriptCoverage[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { url, functions } of scripts) {
    const file = url.startsWith('file:') ? path.relative(SRC, fileURLToPath(url)) : '..';
    if (file.startsWith('..')) continue;
    const names = functions.flatMap(({ functionName, ranges: [range] }) =>
      range !== undefined && range.count > 0 && range.startOffset > 0
        ? [`${functionName || 'anonymous'}:${range.startOffset}`]
        : [],
    );
    if (names.length > 0) found.set(file, new Set(names));
  }
  return found;
}

function inBoth(common: Passed, one: Passed): Map<string, Set<string>> {
  const both = new Map<string, Set<string>>();
  for (const [file, names] of common) {
    const shared = names.intersection(one.get(file) ?? new Set());
    if (shared.size > 0) both.set(file, shared);
  }
  return both;
}

async function pay(): Promise<void> {
  const terms = readTerms(String((await send('POST', '/paid')).headers['payment-required']));
  lines.length = 0;
  await session.post('Profiler.takePreciseCoverage');
  await ask('POST', '/paid', { 'payment-signature': makeUpPayment(terms, systemClock.now()) }, '{"q":1}');
}

async function ask(...given: Parameters<typeof send>): Promise<void> {
  const { statusCode } = await send(...given);
  if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
}

async function send(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): Promise<IncomingMessage> {
  const { address: host, port } = tollgate.addresses['proxy'] ?? { address: '', port: 0 };
  const all = { ...headers, ...(method === 'GET' ? {} : { 'content-length': String(body.length) }) };
  return new Promise((resolve, reject) => {
    const req = request({ agent, host, port, method, path: target, headers: all }, (res) => {
      res.resume().on('end', () => resolve(res));
    });
    req.on('error', reject).end(body);
  });
}

function configOf(): Parameters<typeof startTollgate>[0] {
  const text = JSON.stringify({
    proxy: { listen: '127.0.0.1:0', upstream: urlOf(upstream), timeouts: { drain_delay: '0s' } },
    registry: { listen: '127.0.0.1:0', store: 'sqlite:tollgate.db' },
    admin: { listen: '127.0.0.1:0' },
    receivers: [
      {
        id: 'default',
        network: 'base-sepolia',
        rpc_url: 'none',
        pay_to_address: '0x1111111111111111111111111111111111111111',
        facilitators: [urlOf(facilitator)],
      },
    ],
    routes: [{ method: 'POST', route_pattern: '/paid', amount: '0.10' }],
  });
  const read = readConfig(text, {
    file: 'journey.yaml',
    path: path.join(folder, 'journey.yaml'),
    env: {},
    networks: NETWORKS,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const resolved = resolveSecrets(read.config, { random, log });
  if (!resolved.ok) throw new Error(resolved.problem);
  return resolved.config;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serve(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
