// `npm run chaos`: payments over a real chain while Tollgate is killed and its facilitator and upstream fail. Prints what
// happened; exit code 1 where a rule was broken, with the command that runs the same plan again.
import { parseArgs } from 'node:util';
import { runChaos } from './run.ts';

const { values } = parseArgs({
  options: {
    payments: { type: 'string', default: '3500' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    'no-chain': { type: 'boolean', default: false },
  },
});
const scale = {
  payments: Number(values.payments),
  kills: Number(values.kills),
  seed: Number(values.seed),
  chain: !values['no-chain'],
};
if (![scale.payments, scale.kills, scale.seed].every((number) => Number.isSafeInteger(number) && number >= 0)) {
  console.error('usage: npm run chaos -- [--payments N] [--kills N] [--seed S] [--no-chain]');
  process.exitCode = 64;
} else {
  const since = performance.now();
  const { violations, counts } = await runChaos(scale, (line) => console.log(line));
  for (const [what, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${what}`);
  for (const violation of violations) console.error(`broken: ${violation}`);
  const flags = `--payments ${scale.payments} --kills ${scale.kills} --seed ${scale.seed}${scale.chain ? '' : ' --no-chain'}`;
  console.log(
    `${violations.length} rules broken, ${((performance.now() - since) / 1000).toFixed(0)} s: npm run chaos -- ${flags}`,
  );
  if (violations.length > 0) process.exitCode = 1;
}
