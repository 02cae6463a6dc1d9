// Which peers can be measured here, and how each is started. None of them is among the product's dependencies but
// http-proxy-3: nginx and haproxy are used where they are installed, the Node stacks where `--peers` installed them. A peer that is
// not there is skipped by its name, with the reason.
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CONSTANT, FORWARD_AUTH, HAPROXY, HTTP_PROXY_3, NGINX, UNDICI, X402_EXPRESS } from '../names.ts';
import { isInstalled, LOAD_CORE, NODE, runToEnd, SERVER_CORE, startServer, type Server } from '../process.ts';
import { profilingFlags } from '../profile.ts';
import { PAY_TO } from '../tollgate.ts';
import type { ConstantAnswer } from './constant.ts';
import { startCaddy } from './caddy.ts';
import { startHaproxy } from './haproxy.ts';
import { startNginx } from './nginx.ts';

/** Where a peer writes what it needs, and its CPU profile where one is wanted. */
export type Place = { readonly folder: string; readonly profiles: string | undefined };

export type ProxyPeer = {
  readonly name: string;
  /** Why it cannot be measured here. */
  readonly missing: string | undefined;
  /** Scenarios that it is measured in. */
  readonly loads: readonly ('GET' | 'POST' | 'paced' | 'bodies' | 'decision')[];
  readonly start: (upstreamPort: number, place: Place) => Promise<Server>;
};
export type DemandPeer = {
  readonly name: string;
  readonly missing: string | undefined;
  /** Whether it answers the bytes of Tollgate's own 402. */
  readonly sameBytes: boolean;
  readonly start: (sample: ConstantAnswer, place: Place) => Promise<Server>;
};

const MIDDLEWARE = path.join(import.meta.dirname, 'middleware');

/** Peers that forward. */
export function proxyPeers(): readonly ProxyPeer[] {
  return [
    {
      name: NGINX,
      missing: missingProgram('nginx'),
      loads: ['GET', 'POST', 'paced', 'bodies'],
      start: (upstreamPort, { folder }) => startNginx({ folder, serves: { upstreamPort } }),
    },
    {
      name: HAPROXY,
      missing: missingProgram('haproxy'),
      loads: ['GET'],
      start: (upstreamPort, { folder }) => startHaproxy(upstreamPort, folder),
    },
    {
      name: UNDICI,
      missing: middlewareMissing(),
      loads: ['GET', 'POST', 'paced', 'bodies'],
      start: (port, place) => startNode(place, UNDICI, path.join(MIDDLEWARE, 'undici.mjs'), [String(port)]),
    },
    {
      name: HTTP_PROXY_3,
      missing: undefined,
      loads: ['GET', 'POST', 'paced', 'bodies', 'decision'],
      start: (port, place) =>
        startNode(place, HTTP_PROXY_3, path.join(import.meta.dirname, 'http-proxy-3.ts'), [String(port)]),
    },
    {
      name: FORWARD_AUTH,
      missing: missingProgram('caddy'),
      loads: ['decision'],
      start: startAsking,
    },
    {
      name: '@fastify/reply-from',
      missing: middlewareMissing(),
      loads: ['GET'],
      start: (port, place) =>
        startNode(place, '@fastify/reply-from', path.join(MIDDLEWARE, 'reply-from.mjs'), [String(port)]),
    },
    {
      name: 'express + http-proxy-middleware',
      missing: middlewareMissing(),
      loads: ['GET'],
      start: (port, place) => startNode(place, 'express', path.join(MIDDLEWARE, 'express.mjs'), [String(port)]),
    },
  ];
}

/** Peers that answer 402. */
export function demandPeers(): readonly DemandPeer[] {
  return [
    {
      name: NGINX,
      missing: missingProgram('nginx'),
      sameBytes: true,
      start: (answer, { folder }) => startNginx({ folder, serves: { answer } }),
    },
    { name: CONSTANT, missing: undefined, sameBytes: true, start: startConstant },
    x402Express(X402_EXPRESS, 10),
    x402Express('@x402/express, 1000 routes', 1000),
  ];
}

/** Caddy, and the constant answer that it asks: both end together. */
async function startAsking(upstreamPort: number, place: Place): Promise<Server> {
  const constant = await startConstant(ALLOW, place);
  try {
    const decisionPort = constant.port('proxy');
    const caddy = await startCaddy({ folder: place.folder, upstreamPort, decisionPort });
    return { ...caddy, stop: async () => void (await Promise.all([caddy.stop(), constant.stop()])) };
  } catch (error) {
    await constant.stop();
    throw error;
  }
}

/** What lets a request pass, and nothing more. */
export const ALLOW: ConstantAnswer = { status: 200, headers: [], body: '' };

/** A bare node:http that answers this and nothing else. */
export function startConstant(answer: ConstantAnswer, place: Place): Promise<Server> {
  const file = path.join(mkdtempSync(path.join(place.folder, 'constant-')), 'answer.json');
  writeFileSync(file, JSON.stringify(answer));
  return startNode(place, CONSTANT, path.join(import.meta.dirname, 'constant.ts'), [file]);
}

/** Paths that a peer with `count` routes protects. */
export function x402Paths(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `/v1/service${index % 50}/records${index}`);
}

/** Installs the middleware stacks from their lock file, into the bench's own folder. */
export async function installPeers(): Promise<void> {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  await runToEnd({ name: 'npm ci of the peers', file: 'npm', args, core: LOAD_CORE, folder: MIDDLEWARE });
}

function x402Express(name: string, count: number): DemandPeer {
  return {
    name,
    missing: middlewareMissing(),
    sameBytes: false,
    start: (_, place) => {
      const file = path.join(place.folder, `x402-${count}.json`);
      writeFileSync(file, JSON.stringify(x402Paths(count)));
      return startNode(place, name, path.join(MIDDLEWARE, 'x402-express.mjs'), [file, PAY_TO]);
    },
  };
}

function startNode({ profiles }: Place, name: string, file: string, args: readonly string[]): Promise<Server> {
  const flags = profilingFlags(profiles, name);
  return startServer({ name, file: NODE, args: [...flags, file, ...args], core: SERVER_CORE }, ['proxy']);
}

function missingProgram(name: string): string | undefined {
  return isInstalled(name) ? undefined : 'not installed';
}

function middlewareMissing(): string | undefined {
  const installed = existsSync(path.join(MIDDLEWARE, 'node_modules'));
  return installed ? undefined : 'not installed; run with --peers';
}
