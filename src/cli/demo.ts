// `tollgate demo`: Tollgate in front of a real HTTP API within a second, with routes in a store of its own, and the
// commands to try on it. It runs what `serve` runs, on loopback only, and forgets everything when it ends.
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { validate } from '../config/validate.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { createLog } from '../host/log.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { messageOf } from './configuration.ts';
import { createDemoApi } from './demo-api.ts';
import { refuseLenientParser } from './parser-refusal.ts';

const ROUTES = [
  { route_pattern: '/premium/report', method: 'GET', amount: '0.10', description: 'The quarterly report' },
  { route_pattern: '/premium/data/*', method: '*', amount: '0.05', description: 'Raw data' },
  { route_pattern: '/users/:id/score', method: 'GET', amount: '0.02', description: 'A credit score' },
  { route_pattern: '/beta/*', method: '*', amount: '1.00', description: 'Not for sale yet', status: 'paused' },
];
/** Nobody's address: money sent there in earnest would be lost, so the demo stays on a test network. */
const PAY_TO = '0x000000000000000000000000000000000000dEaD';
const FAVOURITE_PORTS = { proxy: 8402, registry: 8403, admin: 9402 };

export const demo: Command = {
  name: 'demo',
  summary: 'run Tollgate in front of a small API, with commands to try',
  usage: [
    'tollgate demo [--facilitator URL --rpc-url URL]',
    '',
    'Listens on loopback only and keeps nothing. In a checkout, `npm run demo` starts a chain and a facilitator with it.',
  ],
  flags: {
    facilitator: { value: 'URL', help: 'who verifies and settles (the public one for tests where left out)' },
    'rpc-url': { value: 'URL', help: 'a node of the chain, so that unfinished payments are looked up there' },
  },
  words: { min: 0, max: 0 },
  run: (args, io) => runDemo(io, { facilitator: args.text('facilitator'), rpcUrl: args.text('rpc-url') }),
};

type Payment = { readonly facilitator: string | undefined; readonly rpcUrl: string | undefined };

async function runDemo(io: Io, payment: Payment): Promise<ExitCode> {
  const refused = await refuseLenientParser(io);
  if (refused !== undefined) return refused;
  const { startTollgate } = await import('../compose.ts');
  const { mintToken } = await import('../registry/auth.ts');
  const folder = await mkdtemp(path.join(tmpdir(), 'tollgate-demo-'));
  const api = createDemoApi();
  try {
    const upstream = await new Promise<number>((resolve, reject) => {
      api.on('error', reject);
      api.listen(0, '127.0.0.1', () => {
        const address = api.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
    const log = createLog('warn', (line) => io.err(line.trimEnd()), systemClock.now);
    const config = await demoConfig(folder, upstream, payment, log);
    const random = createRandom();
    const running = await startTollgate(config, { log, clock: systemClock, random, version: io.version });
    const { registry } = config;
    if (registry?.jwt.key.kind !== 'secret') throw new Error('the demo has no secret to sign with');
    const { issuer, audience, key } = registry.jwt;
    const token = await mintToken(key.secret, { issuer, audience, ttlSeconds: 3600, now: systemClock.now() });
    const port = (name: string): number => running.addresses[name]?.port ?? 0;
    const payable = payment.facilitator !== undefined;
    const places = { proxy: port('proxy'), registry: port('registry'), admin: port('admin'), token, payable };
    for (const line of script(places)) io.out(line);
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) io.onSignal(signal, resolve);
    });
    await running.stop();
    return EXIT.fine;
  } catch (error) {
    io.err(`The demo could not start: ${messageOf(error)}`);
    return EXIT.away;
  } finally {
    api.close();
    api.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  }
}

async function demoConfig(
  folder: string,
  upstream: number,
  { facilitator, rpcUrl }: Payment,
  log: ReturnType<typeof createLog>,
): Promise<Config> {
  const listen = async (favourite: number): Promise<string> => `127.0.0.1:${(await isFree(favourite)) ? favourite : 0}`;
  const data = {
    proxy: {
      listen: await listen(FAVOURITE_PORTS.proxy),
      upstream: `http://127.0.0.1:${upstream}`,
      timeouts: { drain_delay: '0s', drain: '2s' },
    },
    registry: { listen: await listen(FAVOURITE_PORTS.registry), store: 'sqlite:tollgate.db' },
    admin: { listen: await listen(FAVOURITE_PORTS.admin) },
    receivers: [
      {
        id: 'default',
        network: 'base-sepolia',
        pay_to_address: PAY_TO,
        facilitators: [facilitator ?? 'https://x402.org/facilitator'],
        ...(rpcUrl === undefined ? {} : { rpc_url: rpcUrl }),
      },
    ],
    routes: ROUTES,
  };
  const result = validate({ data, issues: [], fromEnvironment: () => false, file: undefined, folder });
  if (!result.ok)
    throw new Error(result.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; '));
  const resolved = resolveSecrets(result.config, { random: createRandom(), log });
  if (!resolved.ok) throw new Error(resolved.problem);
  return resolved.config;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .on('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

type Places = {
  readonly proxy: number;
  readonly registry: number;
  readonly admin: number;
  readonly token: string;
  readonly payable: boolean;
};

function script({ proxy, registry, admin, token, payable }: Places): string[] {
  const paid = `http://127.0.0.1:${proxy}/premium/report`;
  const routes = `http://127.0.0.1:${registry}/v1/billing/protected-routes`;
  const steps: [title: string, ...commands: string[]][] = [
    ['what no route protects passes', `curl -i http://127.0.0.1:${proxy}/hello`],
    ['what costs money is answered with 402 and what to pay', `curl -i ${paid}`],
    ...(payable
      ? ([
          [
            'pay for it: the public x402 client signs, a facilitator settles on a chain of this machine, the report comes',
            `npm run --silent pay -- ${paid}`,
          ],
        ] satisfies [string, string][])
      : []),
    [
      'the routes, as a dashboard sees them (the token is good for an hour)',
      `TOKEN=${token}`,
      `curl -s -H "Authorization: Bearer $TOKEN" ${routes}`,
    ],
    [
      'change the price of that report, and see it changed at once',
      `ID=$(curl -s -H "Authorization: Bearer $TOKEN" '${routes}?q=/premium/report' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')`,
      `curl -s -X PATCH -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"amount":"0.25"}' ${routes}/$ID`,
      `curl -s ${paid}`,
    ],
    ['a paused route costs nothing', `curl -i http://127.0.0.1:${proxy}/beta/feature`],
    [
      'what was earned, as a dashboard sees it, and what Prometheus reads',
      `curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:${registry}/v1/billing/summary`,
      `curl -s http://127.0.0.1:${admin}/metrics | grep tollgate_requests_total`,
    ],
  ];
  return [
    'Tollgate stands in front of a small API. In another terminal, try:',
    '',
    ...steps.flatMap(([title, ...commands], index) => [`# ${index + 1}. ${title}`, ...commands, '']),
    'Next: put it in front of your own API with one command,',
    "  npm start -- --upstream http://localhost:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0x...",
    'or read "Put it in front of your API" in the README. Stop with Ctrl-C.',
  ];
}
