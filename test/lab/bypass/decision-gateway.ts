// Tollgate as the proxies of this machine ask it: a decision listener for each dialect and setting, in this process, with the routes
// of the suite and a facilitator that is away, because nobody ever pays.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startTollgate } from '../../../src/compose.ts';
import { resolveSecrets } from '../../../src/config/first-start.ts';
import { readConfig } from '../../../src/config/load.ts';
import { NETWORKS } from '../../../src/gateway/rails/rails.ts';
import { createRandom, systemClock } from '../../../src/host/clock.ts';
import { createLog } from '../../../src/host/log.ts';
import { ROUTES } from './routes.ts';

export const SECRET = 'a-secret-of-the-proxy';

export type DecisionSettings = { readonly dialect: string; readonly slashes: 'strict' | 'kept' };

export type DecisionGateway = {
  readonly portOf: (settings: DecisionSettings) => number;
  readonly close: () => Promise<void>;
};

export async function startDecisionGateway(listeners: readonly DecisionSettings[]): Promise<DecisionGateway> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-deciding-'));
  const text = JSON.stringify({
    decision: listeners.map(({ dialect, slashes }) => ({
      ...{ listen: '127.0.0.1:0', dialect, secret: SECRET, undeclared_methods: 'pay' },
      ...(slashes === 'kept' ? { encoded_slashes: 'keep', double_slashes: 'keep' } : {}),
      timeouts: { drain_delay: '0s', drain: '1s' },
    })),
    admin: { listen: '127.0.0.1:0' },
    registry: { listen: '127.0.0.1:0', store: 'sqlite:tollgate.db' },
    receivers: [
      {
        ...{ id: 'default', network: 'base-sepolia', rpc_url: 'none' },
        pay_to_address: '0x1111111111111111111111111111111111111111',
        facilitators: ['http://127.0.0.1:1'],
      },
    ],
    routes: ROUTES.map(({ method, pattern, paused, amount = '0.10' }) => ({
      ...{ route_pattern: pattern, method, amount },
      ...(paused === true ? { status: 'paused' } : {}),
    })),
    log: { access: false },
  });
  const log = createLog(
    'error',
    (line) => void process.stderr.write(line),
    () => Date.now(),
  );
  const random = createRandom();
  const file = path.join(folder, 'deciding.yaml');
  const read = readConfig(text, { file: 'deciding.yaml', path: file, env: {}, networks: NETWORKS });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const resolved = resolveSecrets(read.config, { random, log });
  if (!resolved.ok) throw new Error(resolved.problem);
  const tollgate = await startTollgate(resolved.config, { log, clock: systemClock, random, version: '0.0.0' });
  const places = listeners.map(({ dialect, slashes }, index) => ({
    ...{ dialect, slashes },
    port: tollgate.addresses[index === 0 ? 'decision' : `decision[${index}]`]?.port ?? 0,
  }));
  return {
    portOf: (wanted) =>
      places.find((place) => place.dialect === wanted.dialect && place.slashes === wanted.slashes)?.port ?? 0,
    close: async () => {
      await tollgate.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
