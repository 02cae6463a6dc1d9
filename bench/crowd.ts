// Sidecars without a proxy, many in one process: `node bench/crowd.ts REGISTRY_URL API_KEY COUNT`. Each follows the registry with
// the program's own sync. Prints a line for each revision as soon as all of them have it: when each of them had.
import { createCompiler } from '../src/gateway/routes/snapshot-compiler.ts';
import { createCurrent } from '../src/gateway/routes/current-snapshot.ts';
import { createRegistrySource } from '../src/gateway/sync/follow/registry-source.ts';
import { createSync } from '../src/gateway/sync/sync.ts';
import { FULL_FOLDING } from '../src/domain/routing/profile.ts';
import { createRandom, systemClock, systemSchedule } from '../src/host/clock.ts';
import { createLog } from '../src/host/log.ts';
import { createMetrics } from '../src/host/metrics.ts';

/** `at`: milliseconds since the epoch, one for each sidecar. */
export type CrowdLine = { readonly revision: number; readonly at: readonly number[] };

const POLL_MS = 15_000;
const EMPTY_AFTER_MS = 300_000;

const [registryUrl = '', apiKey = '', count = '0'] = process.argv.slice(2);
const members = Number(count);
const random = createRandom();
const log = createLog('warn', (line) => void process.stderr.write(`${line}\n`), Date.now);
const reached = new Map<number, number[]>();

for (let member = 0; member < members; member++) {
  const current = createCurrent();
  const sync = createSync(
    { pollIntervalMs: POLL_MS, emptyAfterMs: EMPTY_AFTER_MS },
    {
      source: createRegistrySource({
        ...{ registryUrl, apiKey, version: 'bench', fetch: globalThis.fetch, schedule: systemSchedule },
        instance: random(12).toString('base64url'),
      }),
      snapshotFile: { read: async () => undefined, keep: () => undefined, settled: async () => undefined },
      compiler: createCompiler(
        current,
        () => ({ encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING }),
        log,
      ),
      metrics: createMetrics(),
      ...{ clock: systemClock, schedule: systemSchedule, random, log },
    },
  );
  current.onSwap(({ revision }) => note(revision));
  await sync.start();
}
// Timers of the program keep no process alive.
setInterval(() => undefined, POLL_MS);

function note(revision: number): void {
  const at = reached.get(revision) ?? [];
  reached.set(revision, at);
  at.push(performance.timeOrigin + performance.now());
  if (at.length < members) return;
  const line: CrowdLine = { revision, at };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
