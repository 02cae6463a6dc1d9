// `tollgate demo`: starts Tollgate in front of an HTTP API, its own small one or the one that is named. It makes routes
// in a store of its own and prints commands to try. It runs the same program as `serve`, on loopback only, shows each
// request and payment in a line, and forgets everything when it ends.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PageWrapper } from '../compose/proxy.ts';
import { RUNNING_FILE } from '../config/data-folder.ts';
import { readRoute, ROUTE_ADVICE } from '../config/quick.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { createLog, type Log, type LogRenderer } from '../host/log.ts';
import type { Args, Flags } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { messageOf } from '../host/error-message.ts';
import {
  demoConfig,
  FAVOURITE_PORTS,
  freePorts,
  PAY_TO,
  type DemoOptions,
  type DemoWay,
  type Ports,
} from './demo-config.ts';
import { createDemoApi } from './demo-api.ts';
import { DEMO_OPENAPI } from './demo-openapi.ts';
import { makeLocalLink } from './desk-store.ts';
import { demoScript } from './demo-script.ts';
import { refuseLenientParser } from './parser-refusal.ts';
import { announce } from './runtime-files.ts';
import { placed } from './start-hints.ts';
import { createTextLog, takesColors } from './text-log.ts';

const ROUTES = [
  { route_pattern: '/premium/report', method: 'GET', amount: '0.10', description: 'The quarterly report' },
  { route_pattern: '/premium/data/*', method: '*', amount: '0.05', description: 'Raw data' },
  { route_pattern: '/users/:id/score', method: 'GET', amount: '0.02', description: 'A credit score' },
  { route_pattern: '/beta/*', method: '*', amount: '1.00', description: 'Not for sale yet', status: 'paused' },
];
/** Route in front of the user's own API, if none is named. */
const EVERYTHING = { route_pattern: '/*', method: '*', amount: '0.01' };
/** Flags of `tollgate demo`, which `npm run demo` takes too. */
export const DEMO_FLAGS = {
  upstream: { value: 'URL', help: 'your own API, such as http://localhost:3000, in place of the small one' },
  route: {
    value: "'GET /reports/* 0.10 USD'",
    multiple: true,
    help: 'with --upstream: what costs how much; may be repeated (everything costs 0.01 USD if left out)',
  },
  port: { value: 'N', help: `where its proxy listens (${FAVOURITE_PORTS.proxy} if left out and free)` },
} as const satisfies Flags;

export const demo: Command = {
  name: 'demo',
  summary: 'run Tollgate in front of a small API, or of yours, with commands to try',
  usage: [
    'tollgate demo [--upstream URL] [--route ROUTE]... [--port N] [--facilitator URL --rpc-url URL]',
    '',
    'Listens on loopback only and keeps nothing. It takes test money on base-sepolia. In a checkout, `npm run demo` starts',
    'chains of its own with facilitators and test money.',
  ],
  examples: ['tollgate demo', "tollgate demo --upstream http://localhost:3000 --route 'GET /reports/* 0.10 USD'"],
  flags: {
    ...DEMO_FLAGS,
    facilitator: { value: 'URL', help: 'who verifies and settles (the public one for tests if left out)' },
    'rpc-url': { value: 'URL', help: 'a node of the chain, so that unfinished payments are looked up there' },
  },
  words: { min: 0, max: 0 },
  run: (args, io) => {
    const facilitator = args.text('facilitator') ?? 'https://x402.org/facilitator';
    const way = { network: 'base-sepolia', payTo: PAY_TO, facilitator, rpcUrl: args.text('rpc-url') };
    return runDemo(args, io, { ways: [way], payable: false });
  },
};

type DemoPayment = {
  readonly ways: readonly DemoWay[];
  /** Whether `npm run pay` can pay: it has a purse for each way, on a chain of this machine. */
  readonly payable: boolean;
  /** Puts a wallet with test money into the page for people. */
  readonly aroundPage?: PageWrapper;
  /** Called with the address of the proxy once it listens. */
  readonly onListening?: (proxy: string) => void;
};

export async function runDemo(args: Args, io: Io, payment: DemoPayment): Promise<ExitCode> {
  const refused = await refuseLenientParser(io);
  if (refused !== undefined) return refused;
  const routes = readRoutes(args);
  const upstream = args.text('upstream');
  if (upstream === undefined && args.has('route'))
    routes.problems.push('--route: is for --upstream; name your API too');
  const port = readPort(args.text('port'));
  if (port === undefined) routes.problems.push('--port: is not a port; write a number from 1 to 65535');
  if (port === undefined || routes.problems.length > 0) {
    for (const problem of routes.problems) io.err(problem);
    return EXIT.usage;
  }
  const wanted = { ...FAVOURITE_PORTS, proxy: port };
  const ports = await freePorts(wanted);
  if (args.has('port') && ports.proxy !== port) {
    io.err(`--port: ${port} is taken by another program; end that one, or write another port`);
    return EXIT.away;
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'tollgate-demo-'));
  const api = upstream === undefined ? createDemoApi() : undefined;
  const stopAsked = onceSignalled(io);
  try {
    const text = createTextLog(takesColors(io));
    const log = createLog('info', io.write, systemClock.now, () => (entry) => (isTraffic(entry) ? text(entry) : ''));
    const asked = {
      folder,
      upstream: upstream ?? `http://127.0.0.1:${await listen(api)}`,
      routes: upstream === undefined ? ROUTES : routes.given.length > 0 ? routes.given : [EVERYTHING],
      openapi: upstream === undefined ? await writeOpenApi(folder) : undefined,
      ways: payment.ways,
      ...{ wanted, ports, elsewhere: { proxy: args.has('port') ? port : 0, registry: 0, admin: 0 } },
    };
    const started = await startAt(asked, payment, log, io);
    if (typeof started === 'number') return started;
    await stopAsked;
    await started.stop();
    return EXIT.fine;
  } catch (error) {
    io.err(`The demo could not start: ${messageOf(error)}`);
    return EXIT.away;
  } finally {
    api?.close();
    api?.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  }
}

async function startAt(
  asked: DemoOptions & Readonly<Record<'wanted' | 'ports' | 'elsewhere', Ports>>,
  payment: DemoPayment,
  log: Log,
  io: Io,
): Promise<{ stop: () => Promise<void> } | ExitCode> {
  const { startTollgate } = await import('../compose.ts');
  const { mintToken } = await import('../registry/auth/dashboard-tokens.ts');
  const read = demoConfig(asked, asked.ports, log);
  if ('problems' in read) {
    for (const problem of read.problems) io.err(problem);
    return EXIT.usage;
  }
  const { config, data } = read;
  const { aroundPage } = payment;
  const deps = { log, clock: systemClock, random: createRandom(), version: io.version, aroundPage };
  const running = await startTollgate(config, deps).catch(async (error: unknown) => {
    // Another demo may have taken the ports first; an error that has nothing to do with ports comes again.
    const elsewhere = demoConfig(asked, asked.elsewhere, log);
    if ('problems' in elsewhere) throw error;
    return startTollgate(elsewhere.config, deps);
  });
  const { registry } = config;
  if (registry?.jwt.key.kind !== 'secret') throw new Error('the demo has no secret to sign with');
  const { issuer, audience, key } = registry.jwt;
  const token = await mintToken(key.secret, { issuer, audience, ttlSeconds: 3600, now: systemClock.now() });
  const startedAt = new Date(systemClock.now()).toISOString();
  const answer = running.answer ?? (() => Promise.resolve(undefined));
  const control = await announce({
    config,
    source: { data: placed(data, config, running.addresses) },
    env: {},
    startedAt,
    answer,
  });
  const port = (name: string): number => running.addresses[name]?.port ?? 0;
  for (const line of movedPorts(asked.wanted, port)) io.out(line);
  const places = { proxy: port('proxy'), registry: port('registry'), admin: port('admin'), token };
  payment.onListening?.(`http://127.0.0.1:${places.proxy}`);
  const listen = { host: '127.0.0.1', port: places.registry };
  const deskLink = await makeLocalLink({ ...registry, listen }, log, { subject: 'demo', role: 'admin' });
  const { program } = io;
  const own = asked.routes !== ROUTES;
  const configFile = path.join(asked.folder, RUNNING_FILE);
  const [route = EVERYTHING] = own ? config.routes : [];
  for (const line of demoScript({
    ...places,
    ...{ program, deskLink, configFile },
    ...payment,
    walletInPage: aroundPage !== undefined,
    own: own ? route : undefined,
  }))
    io.out(line);
  return {
    stop: async () => {
      await running.stop(false);
      await control.close();
    },
  };
}

/** A line for each part that does not listen where it was expected. */
function movedPorts(wanted: Ports, portOf: (name: string) => number): string[] {
  return Object.entries(wanted).flatMap(([name, port]) =>
    [0, portOf(name)].includes(port)
      ? []
      : [
          `Port ${port} is taken by another program: the ${name} of this demo listens on ${portOf(name)}${name === 'proxy' ? ' (--port N chooses another)' : ''}.`,
        ],
  );
}

/** The port that was asked for; undefined if it is none. */
function readPort(text: string | undefined): number | undefined {
  if (text === undefined) return FAVOURITE_PORTS.proxy;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : undefined;
  return port === undefined || port > 65_535 ? undefined : port;
}

/** Whether a log entry is one that people watch a demo for: a request, a payment or a failure. */
function isTraffic({ level, msg }: Parameters<LogRenderer>[0]): boolean {
  return level !== 'info' || msg === 'request' || msg.startsWith('charge');
}

/** Resolves at the first signal; a second one ends the process at once. */
function onceSignalled(io: Io): Promise<void> {
  const asked = Promise.withResolvers<void>();
  let signals = 0;
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    io.onSignal(signal, () => {
      if (++signals > 1) io.exitNow(code);
      asked.resolve();
    });
  }
  return asked.promise;
}

async function writeOpenApi(folder: string): Promise<string> {
  const file = path.join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(DEMO_OPENAPI));
  return file;
}

function readRoutes(args: Args): { readonly given: object[]; readonly problems: string[] } {
  const given: object[] = [];
  const problems: string[] = [];
  for (const text of args.all('route')) {
    const route = readRoute(text);
    if (typeof route === 'object') given.push(route);
    else problems.push(`--route ${text}: is not a route; ${ROUTE_ADVICE}`);
  }
  return { given, problems };
}

function listen(api: Server | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    api?.on('error', reject);
    api?.listen(0, '127.0.0.1', () => {
      const address = api.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}
