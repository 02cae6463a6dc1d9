// `npm run chaos`: payments over a real chain while Tollgate is killed and its facilitator and upstream fail, of one process
// or of registries and sidecars over PostgreSQL; with `--rolling` everything is restarted in order instead, with
// `--outages` only the upstream is, again and again; with `--passes` clients draw on passes. Prints what happened; exit code 1 where a rule was broken, with the command
// that runs the same plan again.
import { parseArgs } from 'node:util';
import { FAULTS } from './faults.ts';
import type { Scale } from './plan.ts';
import { runOutages } from './outages.ts';
import { runRolling } from './rolling.ts';
import { runPasses } from './passes/pass-run.ts';
import { runChaos } from './run.ts';

const { values } = parseArgs({
  options: {
    topology: { type: 'string', default: 'one' },
    fault: { type: 'string' },
    rolling: { type: 'string' },
    outages: { type: 'boolean', default: false },
    away: { type: 'string', default: '1-90' },
    there: { type: 'string', default: '1-20' },
    payments: { type: 'string', default: '3500' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    webhooks: { type: 'boolean', default: false },
    asked: { type: 'boolean', default: false },
    passes: { type: 'boolean', default: false },
    uses: { type: 'string', default: '10000' },
    'no-chain': { type: 'boolean', default: false },
  },
});
const { fault, topology, rolling } = values;
const since = performance.now();
const elapsed = (): string => ((performance.now() - since) / 1000).toFixed(0);
const say = (line: string): void => console.log(`${elapsed().padStart(5)} s  ${line}`);
/** Of load before the first restart. */
const CALM_MS = 20_000;
const scale: Scale = {
  topology: topology === 'postgres' ? topology : 'one',
  ...(fault === undefined ? {} : { fault }),
  payments: Number(values.payments),
  kills: Number(values.kills),
  seed: Number(values.seed),
  chain: !values['no-chain'],
  webhooks: values.webhooks,
  asked: values.asked,
};
/** `1-90` in seconds, as milliseconds. */
const range = (text: string): readonly [number, number] => {
  const [from = NaN, to = from] = text.split('-').map((each) => Number(each) * 1000);
  return [from, to];
};
const isCount = (number: number): boolean => Number.isSafeInteger(number) && number >= 0;
const uses = Number(values.uses);
const isUsable =
  [scale.payments, scale.kills, scale.seed, uses].every(isCount) &&
  topology === scale.topology &&
  (fault === undefined || (topology === 'postgres' && FAULTS[fault] !== undefined));
if (values.passes && isUsable) {
  const { kills, seed } = scale;
  const { violations, counts } = await runPasses({ topology: scale.topology, uses, kills, seed, fault }, say);
  for (const [what, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${what}`);
  for (const violation of violations) console.error(`broken: ${violation}`);
  const flags = `--passes --topology ${topology} --uses ${uses} --kills ${kills} --seed ${seed}${fault === undefined ? '' : ` --fault '${fault}'`}`;
  console.log(`${violations.length} rules broken, ${elapsed()} s: npm run chaos -- ${flags}`);
  if (violations.length > 0) process.exitCode = 1;
} else if (values.outages) {
  const { violations, counts } = await runOutages(
    { ...scale, awayMs: range(values.away), thereMs: range(values.there) },
    say,
  );
  for (const [what, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${what}`);
  for (const violation of violations) console.error(`broken: ${violation}`);
  const flags = `--outages --topology ${scale.topology} --payments ${scale.payments} --away ${values.away} --there ${values.there} --seed ${scale.seed}`;
  console.log(`${violations.length} rules broken, ${elapsed()} s: npm run chaos -- ${flags}`);
  if (violations.length > 0) process.exitCode = 1;
} else if (rolling !== undefined && Number(rolling) > 0) {
  const { restarts, free, payments, p99, moved } = await runRolling(
    { rounds: Number(rolling), short: false, calmMs: CALM_MS },
    say,
  );
  const failed = [...free].filter(([outcome]) => outcome !== '200');
  const asked = [...free.values()].reduce((sum, count) => sum + count, 0);
  for (const [name, count] of Object.entries(restarts))
    console.log(`${String(count).padStart(8)}  restarts of ${name}`);
  console.log(
    `${String(asked).padStart(8)}  free requests, of which failed: ${JSON.stringify(Object.fromEntries(failed))}`,
  );
  console.log(
    `${String(payments.atOnce).padStart(8)}  payments served at the first request, ${payments.later} when asked again, lost: ${JSON.stringify(payments.lost)}`,
  );
  console.log(
    `          p99 of a free request: ${p99.calm.toFixed(1)} ms before, ${p99.rolling.toFixed(1)} ms during the restarts`,
  );
  console.log(`          moved: ${moved.chain} by the chain, ${moved.ledger} by the ledger`);
  if (failed.length > 0 || payments.lost.length > 0 || moved.chain !== moved.ledger) process.exitCode = 1;
} else if (!isUsable || values.passes || (topology !== 'one' && (!scale.chain || values.asked))) {
  console.error(
    `usage: npm run chaos -- [--topology one|postgres] [--payments N] [--kills N] [--seed S] [--no-chain] [--webhooks] [--asked] [--fault NAME] | --rolling ROUNDS | --outages [--away 1-90] [--there 1-20] | --passes [--uses N] [--topology one|postgres] [--kills N] [--seed S] [--fault NAME]\nfaults, with --topology postgres:\n  ${Object.keys(FAULTS).join('\n  ')}`,
  );
  process.exitCode = 64;
} else {
  const { violations, counts } = await runChaos(scale, say);
  for (const [what, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${what}`);
  for (const violation of violations) console.error(`broken: ${violation}`);
  const flags = `--topology ${topology} --payments ${scale.payments} --kills ${scale.kills} --seed ${scale.seed}${scale.chain ? '' : ' --no-chain'}${values.webhooks ? ' --webhooks' : ''}${values.asked ? ' --asked' : ''}${fault === undefined ? '' : ` --fault '${fault}'`}`;
  console.log(`${violations.length} rules broken, ${elapsed()} s: npm run chaos -- ${flags}`);
  if (violations.length > 0) process.exitCode = 1;
}
