// `npm run chaos`: payments over a real chain while Tollgate is killed and its facilitator and upstream fail, of one process
// or of registries and sidecars over PostgreSQL. Prints what happened; exit code 1 where a rule was broken, with the command
// that runs the same plan again.
import { parseArgs } from 'node:util';
import { FAULTS } from './faults.ts';
import type { Scale } from './plan.ts';
import { runChaos } from './run.ts';

const { values } = parseArgs({
  options: {
    topology: { type: 'string', default: 'one' },
    fault: { type: 'string' },
    payments: { type: 'string', default: '3500' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    'no-chain': { type: 'boolean', default: false },
  },
});
const { fault, topology } = values;
const scale: Scale = {
  topology: topology === 'postgres' ? topology : 'one',
  ...(fault === undefined ? {} : { fault }),
  payments: Number(values.payments),
  kills: Number(values.kills),
  seed: Number(values.seed),
  chain: !values['no-chain'],
};
if (
  ![scale.payments, scale.kills, scale.seed].every((number) => Number.isSafeInteger(number) && number >= 0) ||
  topology !== scale.topology ||
  (fault !== undefined && (topology === 'one' || FAULTS[fault] === undefined)) ||
  (topology !== 'one' && !scale.chain)
) {
  console.error(
    `usage: npm run chaos -- [--topology one|postgres] [--payments N] [--kills N] [--seed S] [--no-chain] [--fault NAME]\nfaults, with --topology postgres:\n  ${Object.keys(FAULTS).join('\n  ')}`,
  );
  process.exitCode = 64;
} else {
  const since = performance.now();
  const { violations, counts } = await runChaos(scale, (line) =>
    console.log(`${((performance.now() - since) / 1000).toFixed(0).padStart(5)} s  ${line}`),
  );
  for (const [what, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${what}`);
  for (const violation of violations) console.error(`broken: ${violation}`);
  const flags = `--topology ${topology} --payments ${scale.payments} --kills ${scale.kills} --seed ${scale.seed}${scale.chain ? '' : ' --no-chain'}${fault === undefined ? '' : ` --fault '${fault}'`}`;
  console.log(
    `${violations.length} rules broken, ${((performance.now() - since) / 1000).toFixed(0)} s: npm run chaos -- ${flags}`,
  );
  if (violations.length > 0) process.exitCode = 1;
}
