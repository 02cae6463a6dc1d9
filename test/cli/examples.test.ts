// The examples that end every --help, each run as it stands: in a folder where a Tollgate is served, over a store that holds a
// charge. What an example names of somebody's house (an upstream, an id) stands for what is there; the table below says for what.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { SECRET } from '../config/support.ts';
import { createLog } from '../../src/host/log.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { startRegistry } from '../registry/kit.ts';
import { NO_NETWORK } from '../support/no-network.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openLedger } from '../support/sqlite-ledger.ts';
import { BARE_ENV, fakeIo, MAIN, NODE } from './support.ts';

const ADDRESS = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
const ANY_PORT = ['--listen', '--registry-listen', '--admin-listen'].map((flag) => `${flag} 127.0.0.1:0`).join(' ');
/** Exit codes other than 0 that an example may end with here, and why. */
const OTHER_ENDS: Readonly<Record<string, { code: number; because: string }>> = {
  'tollgate check --online': { code: 69, because: 'nothing leaves this machine, so no facilitator answers' },
  'tollgate charges refund chg_AaBbCcDdEeFf --tx 0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060': {
    ...{ code: 69, because: 'nothing leaves this machine, so no node shows the transfer' },
  },
};
/** Commands that run until they are told to stop, and the line that says that they are there. */
const RUNNING: Readonly<Record<string, (line: { msg: string; listener?: unknown }) => boolean>> = {
  serve: ({ msg, listener }) => msg === 'listening' && listener === 'admin',
  demo: ({ msg }) => msg.startsWith('Stop with Ctrl-C'),
};

const files = temporaryFolder();
const [house, bare, apart, bin] = ['house', 'bare', 'apart', 'bin'].map((name) => join(files.folder, name)) as [
  ...[string, string, string, string],
];
/** What stands in an example -> what it stands for. */
const standIns = new Map<string, string>();
let served: TollgateProcess;
let upstream: Server;

const config = (portOf: (name: string) => number): string => `
proxy: { listen: "127.0.0.1:${portOf('proxy')}", upstream: "${standIns.get('http://localhost:3000')}", undeclared_methods: pay, timeouts: { drain_delay: 0s, drain: 1s } }
registry: { listen: "127.0.0.1:${portOf('registry')}" }
admin: { listen: "127.0.0.1:${portOf('admin')}" }
receivers: [{ id: default, network: base-sepolia, pay_to_address: "${ADDRESS}", facilitators: [x402.org] }]
routes: [{ route_pattern: "/reports/*", method: GET, amount: "0.10" }]
discovery: {}
webhooks: [{ id: books, url: "https://hooks.example.com/in", secret: whsec_${Buffer.alloc(32).toString('base64')} }]
`;

beforeAll(async () => {
  for (const folder of [house, bare, apart, bin, join(house, 'data'), join(apart, 'data')]) mkdirSync(folder);
  writeFileSync(join(bin, 'tollgate'), `#!/bin/sh\nexec "${NODE}" ${NO_NETWORK.join(' ')} "${MAIN}" "$@"\n`);
  chmodSync(join(bin, 'tollgate'), 0o755);
  upstream = createServer((req, res) => res.writeHead(req.url === '/v1/reports/q3' ? 200 : 404).end(`${req.url}`));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  standIns.set('http://localhost:3000', `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
  standIns.set('0xYourAddress', ADDRESS);
  await keepCharge(join(house, 'data/tollgate.db'));
  await keepRoute(join(apart, 'data/tollgate.db'));
  const nowhere = (): number => 0;
  writeFileSync(join(house, 'tollgate.yaml'), config(nowhere));
  writeFileSync(join(apart, 'tollgate.yaml'), config(nowhere));
  if (hasPostgres)
    writeFileSync(
      join(apart, 'postgres.yaml'),
      `registry: { store: "${await freshDatabase()}", jwt: { secret: "${SECRET}" }, api_keys: [] }\n`,
    );
  const [first = ''] = COMMANDS.find(({ name }) => name === 'serve')?.examples ?? [];
  served = await startProcess({
    cwd: house,
    args: wordsOf(first).slice(1),
    env: BARE_ENV,
    listeners: ['proxy', 'registry', 'admin'],
  });
  writeFileSync(join(house, 'tollgate.yaml'), config(served.port));
  standIns.set('http://127.0.0.1:8403', served.url('registry'));
  standIns.set('http://127.0.0.1:9402', served.url('admin'));
  await vi.waitFor(async () => expect((await fetch(`${served.url('admin')}/readyz`)).status).toBe(200), 30_000);
  const made = await run(house, ['keys', 'create', '--name', 'old']);
  standIns.set('4f1d2c3b4a596877', made.stdout.split('_')[1] ?? '');
}, 120_000);
afterAll(async () => {
  await served.kill();
  upstream.closeAllConnections();
  upstream.close();
  await stopSharedPostgres();
  files.remove();
});

/** A charge that was delivered, in a store that nobody serves yet. */
async function keepCharge(file: string): Promise<void> {
  const kit = await startRegistry({ file });
  const claim = claimOf(1, { requestId: '0195d3c1-6c1e-7000-8000-3d2f1a0b4c5e' });
  standIns.set('chg_AaBbCcDdEeFf', claim.id);
  standIns.set('0195d3c1-6c1e-7000-8000-3d2f1a0b4c5d', '0195d3c1-6c1e-7000-8000-3d2f1a0b4c5e');
  await kit.close();
  const ledger = openLedger(file, { now: Date.now, log: createLog('error', () => undefined, Date.now) });
  await ledger.claim(claim, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
  await ledger.advance(claim.id, { kind: 'settle_started', via: 'v', leaseMs: 60_000 }, { owner: 'one' });
  await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 }, { owner: 'one' });
  await ledger.advance(claim.id, { kind: 'delivered', partial: false }, { owner: 'one' });
  await ledger.close();
}

async function keepRoute(file: string): Promise<void> {
  const kit = await startRegistry({ file });
  const body = { route_pattern: '/old', method: 'GET', amount: '1' };
  const { json } = await kit.dashboard('POST', '/v1/billing/protected-routes', { body });
  standIns.set('7b6ff2a8-3c34-4c55-9d8e-2f3b1c0a9d11', json.id);
  await kit.close();
}

type End = { code: number; stdout: string; stderr: string };

async function run(folder: string, argv: readonly string[]): Promise<End> {
  const io = fakeIo({ folder, env: {} });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

/** What a shell does with more than words. */
function runShell(text: string): Promise<End> {
  const PATH = [bin, process.env['PATH']].join(delimiter);
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['-c', `set -e -o pipefail; ${text}`],
      { cwd: house, env: { ...BARE_ENV, PATH } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** The words of a command line without anything that only a shell knows. */
function wordsOf(example: string): string[] {
  return [...example.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word = '']) => quoted ?? word);
}

function placed(example: string): string {
  return [...standIns].reduce((text, [name, real]) => text.replaceAll(name, real), example);
}

const NEEDS: readonly (readonly [RegExp, boolean])[] = [[/postgres\.yaml/, hasPostgres]];
const isPossible = (example: string): boolean => NEEDS.every(([what, is]) => is || !what.test(example));
const ALL = COMMANDS.flatMap(({ name, examples }) => examples.map((example) => [name, example] as const));
const isRunning = ([name]: readonly [string, string]): boolean => name in RUNNING;

describe('examples of commands', () => {
  test('behaviour: every help ends with examples of its own command', async () => {
    for (const { name, examples } of COMMANDS) {
      const { stdout } = await run(house, [name, '--help']);
      expect(
        stdout
          .trimEnd()
          .split('\n')
          .slice(-1 - examples.length),
      ).toEqual(['Examples:', ...examples.map((each) => `  ${each}`)]);
      const own = new RegExp(`tollgate ${name === 'serve' ? '(?:serve|--)' : `${name}\\b`}`);
      expect(
        examples.filter((each) => !own.test(each)).map((each) => `${name}: \`${each}\` is no example of it`),
      ).toEqual([]);
    }
  });

  test.each(ALL.filter((each) => !isRunning(each)))(
    'behaviour: an example of %s works as it stands: %s',
    async (name, example) => {
      if (!isPossible(example)) return;
      const folder = name === 'init' ? bare : /postgres\.yaml/.test(example) ? apart : house;
      const text = placed(example);
      const { code, stdout, stderr } = /[|<>$]/.test(text.replaceAll(/'[^']*'/g, ''))
        ? await runShell(text)
        : await run(folder, wordsOf(text).slice(1));
      const expected = OTHER_ENDS[example] ?? { code: 0, because: '' };
      expect(
        code === expected.code
          ? ''
          : `${text} ended with ${code}: ${stdout}${stderr}; put what it stands for into test/cli/examples.test.ts`,
      ).toBe('');
      if (name === 'init') expect(existsSync(join(bare, 'tollgate.yaml'))).toBe(true);
    },
  );

  test('behaviour: the first example of serve serves', () =>
    expect(served.lines.some(({ msg }) => msg === 'listening')).toBe(true));

  test.each(ALL.filter(isRunning).slice(1))(
    'behaviour: an example of %s runs until it is told to stop: %s',
    async (name, example) => {
      const own = temporaryFolder();
      const args = wordsOf(`${placed(example)}${name === 'serve' ? ` ${ANY_PORT}` : ''}`).slice(1);
      const running = await startProcess({ cwd: own.folder, args, env: BARE_ENV, listeners: [] });
      try {
        await running.line((line) => RUNNING[name]?.(line) ?? false);
        running.signal('SIGINT');
        expect(await running.exited).toBe(0);
      } finally {
        await running.kill();
        own.remove();
      }
    },
  );
});
