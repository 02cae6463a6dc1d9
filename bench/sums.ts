// What the sums of an owner's page cost, in a process of its own: `node bench/sums.ts [ROUNDS] [--postgres]` prints the median of
// each question in milliseconds. The store is made for it (`sums-shape.ts`): a SQLite file, or a real PostgreSQL as three replicas
// would have written it. The registry of this checkout answers over HTTP, as a browser asks it.
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { token } from '../test/registry/kit.ts';
import { HOURS, ROUTES } from './sums-shape.ts';

const GOAL_MS = 100;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { postgres: { type: 'boolean', default: false } },
});
const rounds = Number(positionals[0] ?? 21);
const made = performance.now();
const store = values.postgres
  ? await (await import('./sums-postgres.ts')).fillPostgres()
  : await (await import('./sums-sqlite.ts')).fillSqlite();
try {
  const seconds = ((performance.now() - made) / 1000).toFixed(0);
  process.stdout.write(
    `made in ${seconds} s; load ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}\n`,
  );
  process.stdout.write(`${store.sums} sums of money by the hour, ${HOURS * ROUTES} counts of requests\n`);
  await measure(store.port);
} finally {
  await store.close();
}

async function measure(port: number): Promise<void> {
  const authorization = `Bearer ${await token({ ttlSeconds: 3600 })}`;
  const ago = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();
  const route = '00000007-0000-4000-8000-000000000000';
  const questions = [
    ...['overview', `overview?from=${ago(7)}`, `overview?from=${ago(30)}`, `overview?from=${ago(89)}`],
    ...[
      'series',
      `series?step=minute&from=${ago(0.6)}`,
      `series?step=hour&from=${ago(41)}`,
      `series?step=day&from=${ago(89)}`,
    ],
    ...[`series?step=hour&from=${ago(41)}&route_id=${route}`, `series?step=hour&from=${ago(41)}&network=eip155:8453`],
    ...['top-routes', 'top-routes?by=revenue&currency=USD', `top-routes?by=revenue&currency=USD&from=${ago(30)}`],
    ...[`top-routes?by=paid&from=${ago(89)}`, `top-routes?by=revenue&currency=USD&from=${ago(89)}`],
  ];
  for (const question of questions) {
    const times: number[] = [];
    let bytes = 0;
    for (let round = 0; round < rounds; round++) {
      const since = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/v1/billing/${question}`, { headers: { authorization } });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${question}: ${response.status} ${text}`);
      times.push(performance.now() - since);
      bytes = text.length;
    }
    const sorted = times.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(rounds / 2)] ?? 0;
    const verdict = median <= GOAL_MS ? '' : `  over ${GOAL_MS} ms`;
    const [least, most] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
    const told = question.replaceAll(
      /\d{4}-\d\d-\d\dT[\d:.]+Z/g,
      (time) => `-${((Date.now() - Date.parse(time)) / 86_400_000).toFixed(1)}d`,
    );
    process.stdout.write(
      `${median.toFixed(1).padStart(7)} ms (${least.toFixed(1)}-${most.toFixed(1)})  ${told}, ${bytes} bytes${verdict}\n`,
    );
  }
}
