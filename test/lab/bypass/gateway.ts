// The real proxy, whole: listener, journey, registry with its store, ledger and payment path, put in front of one upstream
// after the other by reloading its configuration. Nobody ever pays it, and its facilitator is away.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startTollgate } from '../../../src/compose.ts';
import { resolveSecrets } from '../../../src/config/first-start.ts';
import { readConfig } from '../../../src/config/load.ts';
import { createLog } from '../../../src/host/log.ts';
import { createRandom, systemClock } from '../../../src/host/clock.ts';
import type { Config } from '../../../src/config/config.ts';
import { ROUTES } from './routes.ts';
import { NETWORKS } from '../../../src/gateway/rails/rails.ts';

export type Settings = {
  readonly profile: string;
  readonly undeclaredMethods: 'pay' | 'forward' | 'refuse';
  readonly encodedSlashes: 'refuse' | 'keep';
  readonly doubleSlashes: 'merge' | 'keep';
};

export const STRICT: Settings = {
  profile: 'unknown',
  undeclaredMethods: 'pay',
  encodedSlashes: 'refuse',
  doubleSlashes: 'merge',
};

/** What the proxy counted since its start. */
export type Totals = {
  /** Sent on towards the upstream, or perhaps, where the client left. */
  readonly forwarded: number;
  readonly demanded: number;
  readonly refused: number;
  readonly inFlight: number;
};

export type Gateway = {
  readonly port: number;
  /** Stands in front of the upstream at `upstreamPort` from now on. */
  readonly face: (upstreamPort: number, settings: Settings) => Promise<void>;
  readonly totals: () => Promise<Totals>;
  readonly close: () => Promise<void>;
};

/** Methods that an operator might add: more to tell apart. */
const ADDED_METHODS = ['QUERY', 'PROPFIND', 'PURGE', 'SEARCH', 'REPORT', 'LINK'];
const RECEIVER = '0x1111111111111111111111111111111111111111';

function configText(upstreamPort: number, settings: Settings): string {
  const routes = ROUTES.map(({ method, pattern, paused, amount = '0.10' }) => ({
    route_pattern: pattern,
    method,
    amount,
    ...(paused === true ? { status: 'paused' } : {}),
  }));
  return JSON.stringify({
    proxy: {
      listen: '127.0.0.1:0',
      upstream: `http://127.0.0.1:${upstreamPort}`,
      upstream_profile: settings.profile,
      undeclared_methods: settings.undeclaredMethods,
      encoded_slashes: settings.encodedSlashes,
      double_slashes: settings.doubleSlashes,
      methods: ADDED_METHODS,
      timeouts: { connect: '5s', headers: '10s', idle: '60s', drain_delay: '0s', drain: '1s' },
    },
    registry: { listen: '127.0.0.1:0', store: 'sqlite:tollgate.db' },
    admin: { listen: '127.0.0.1:0' },
    receivers: [
      {
        id: 'default',
        network: 'base-sepolia',
        rpc_url: 'none',
        pay_to_address: RECEIVER,
        facilitators: ['http://127.0.0.1:1'],
      },
    ],
    routes,
    log: { access: false },
  });
}

export async function startGateway(): Promise<Gateway> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bypass-'));
  const log = createLog(
    'error',
    (line) => void process.stderr.write(line),
    () => Date.now(),
  );
  const random = createRandom();
  const configOf = (upstreamPort: number, settings: Settings): Config => {
    const result = readConfig(configText(upstreamPort, settings), {
      file: 'bypass.yaml',
      path: path.join(folder, 'bypass.yaml'),
      env: {},
      networks: NETWORKS,
    });
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const resolved = resolveSecrets(result.config, { random, log });
    if (!resolved.ok) throw new Error(resolved.problem);
    return resolved.config;
  };
  const tollgate = await startTollgate(configOf(9, STRICT), { log, clock: systemClock, random, version: '0.0.0' });
  const portOf = (name: string): number => tollgate.addresses[name]?.port ?? 0;

  return {
    port: portOf('proxy'),
    face: (upstreamPort, settings) => tollgate.reload(configOf(upstreamPort, settings)),
    totals: async () => {
      const text = await (await fetch(`http://127.0.0.1:${portOf('admin')}/metrics`)).text();
      const sum = (pattern: RegExp): number =>
        [...text.matchAll(pattern)].reduce((all, [, value]) => all + Number(value), 0);
      return {
        // On a busy machine clients give up before the upstream has answered: sent on all the same.
        forwarded:
          sum(/^tollgate_upstream_duration_seconds_count(?:\{[^}]*\})? (\d+)/gm) +
          sum(/^tollgate_requests_total\{(?=[^}]*code="499")[^}]*\} (\d+)/gm),
        demanded: sum(/^tollgate_requests_total\{(?=[^}]*outcome="payment_required")[^}]*\} (\d+)/gm),
        refused: sum(/^tollgate_requests_total\{(?=[^}]*outcome="refused")[^}]*\} (\d+)/gm),
        inFlight: sum(/^tollgate_requests_in_flight (\d+)/gm),
      };
    },
    close: async () => {
      await tollgate.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
