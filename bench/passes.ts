// What passes cost where there are a million of them, in a process of its own: `node bench/passes.ts [ROUNDS] [--postgres]` prints
// the median of each question in milliseconds and how many uses a second are drawn. The store is made for it: a SQLite file, or a
// real PostgreSQL. It is asked as the registry and the gateway ask it, without HTTP between.
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { DrawChange } from '../src/domain/selling/pass-book.ts';
import type { Store } from '../src/registry/store/ports.ts';
import { HOT, OPEN, PASSES, PAYERS, PLANS, type FilledPasses } from './passes-shape.ts';

const GOAL_MS = 100;
const DRAWS = 20_000;
const IN_FLIGHT = 64;
const PRUNED = 500;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { postgres: { type: 'boolean', default: false } },
});
const rounds = Number(positionals[0] ?? 9);
const since = performance.now();
const filled: FilledPasses = values.postgres
  ? await (await import('./passes-postgres.ts')).fillPostgres()
  : await (await import('./passes-sqlite.ts')).fillSqlite();
try {
  const seconds = ((performance.now() - since) / 1000).toFixed(0);
  const load = loadavg()
    .map((each) => each.toFixed(1))
    .join(' ');
  process.stdout.write(`${PASSES} passes, made in ${seconds} s; load ${load}\n`);
  await askAll(filled.store);
  await drawAll(filled.store);
} finally {
  await filled.close();
}

async function askAll({ charges }: Store): Promise<void> {
  const { passes } = charges;
  const [common, , rare] = PLANS;
  const middle = PASSES / 2;
  const hourAgo = Date.now() - 3_600_000;
  let n = 0;
  const questions: readonly (readonly [what: string, ask: () => Promise<unknown>])[] = [
    ['the newest passes', () => passes.list({ limit: 50 })],
    ['the newest that can be used', () => passes.list({ live: true, limit: 50 })],
    ['the newest that cannot be used', () => passes.list({ live: false, limit: 50 })],
    ['of a plan that most have', () => passes.list({ plan: common, limit: 50 })],
    ['of such a plan and terms', () => passes.list({ plan: common, terms: 'hundred', limit: 50 })],
    ['of such a plan, from the middle on', () => passes.list({ plan: common, before: middle, limit: 50 })],
    ['of a plan that few have', () => passes.list({ plan: rare, limit: 50 })],
    ['of such a plan, that cannot be used', () => passes.list({ plan: rare, live: false, limit: 50 })],
    ['of a plan that nobody has', () => passes.list({ plan: 'none', limit: 50 })],
    ['of terms that nobody has', () => passes.list({ terms: 'none', limit: 50 })],
    ['of a payer', () => passes.list({ payer: `payer-${++n % PAYERS}`, limit: 50 })],
    ['one pass', () => passes.get(`pass_${++n * 97}`)],
    ['those of a payer that a signature finds', () => passes.ofPayer(`payer-${++n % PAYERS}`)],
    ['those that were revoked since an hour', () => passes.revoked(hourAgo, 1000)],
    ['those that were revoked ever', () => passes.revoked(0, 1000)],
    ['what is outstanding', () => passes.outstanding()],
    ['revoking one', () => passes.revoke(`pass_${++n * 101}`)],
    ['ending reservations that nobody works on', () => passes.endLost(100)],
    [
      `pruning ${PRUNED}`,
      () => charges.prune({ closedMs: Date.now() - 20 * 86_400_000, releasedMs: 0, answersMs: 0 }, PRUNED),
    ],
  ];
  for (const [what, ask] of questions) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now();
      await ask();
      times.push(performance.now() - begun);
    }
    const sorted = times.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(rounds / 2)] ?? 0;
    const verdict = median <= GOAL_MS ? '' : `  over ${GOAL_MS} ms`;
    const range = `${sorted[0]?.toFixed(1)}-${sorted.at(-1)?.toFixed(1)}`;
    process.stdout.write(`${median.toFixed(1).padStart(8)} ms (${range})  ${what}${verdict}\n`);
  }
}

async function drawAll({ charges: { passes } }: Store): Promise<void> {
  const of = { planId: PLANS[0], routeId: 'route', kind: 'uses', currency: 'USD' } as const;
  let made = 0;
  const draw = async (passId: string): Promise<void> => {
    const named = { passId, useId: `use-${++made}`, owner: `${passes.run}/${made}` };
    const reserve: DrawChange = { ...named, kind: 'reserve', amount: 1n, leaseMs: 10_000, key: null, of };
    const reserved = await passes.change(reserve);
    if (reserved.kind !== 'reserved') throw new Error(`a use of ${passId} was ${reserved.kind}`);
    await passes.change({ ...named, kind: 'take', amount: null });
  };
  for (const [what, passOf] of [
    ['each of a pass of its own', (n: number) => `pass_${OPEN[0] + ((n * 7919) % (OPEN[1] - OPEN[0]))}`],
    ['all of one pass', () => `pass_${HOT}`],
  ] as const) {
    const [begun, before] = [performance.now(), process.cpuUsage()];
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < DRAWS) await draw(passOf(next++));
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
    const seconds = (performance.now() - begun) / 1000;
    const { user, system } = process.cpuUsage(before);
    const perUse = ((user + system) / DRAWS).toFixed(0);
    process.stdout.write(
      `${(DRAWS / seconds).toFixed(0).padStart(8)} uses a second, ${IN_FLIGHT} at a time, ${what}; ${perUse} us of this process each\n`,
    );
  }
}
