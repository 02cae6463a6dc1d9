// `npm run simulate -- --schedules N --seed S`: any number of schedules, from a seed of choice. Of a failing one it
// writes what happened, step by step, and how to run it again. `--bug NAME` plants a fault.
import { parseArgs } from 'node:util';
import { BUGS } from './bugs.ts';
import { explain, findViolation } from './search.ts';

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    bug: { type: 'string' },
  },
});
const [schedules, seed] = [Number(values.schedules), Number(values.seed)];
const bug = values.bug === undefined ? undefined : BUGS[values.bug];
if (
  !Number.isSafeInteger(schedules) ||
  !Number.isSafeInteger(seed) ||
  (values.bug !== undefined && bug === undefined)
) {
  console.error(
    `usage: npm run simulate -- [--schedules N] [--seed S] [--bug NAME]\nbugs:\n  ${Object.keys(BUGS).join('\n  ')}`,
  );
  process.exitCode = 2;
} else {
  const startedAt = performance.now();
  const found = await findViolation(seed, schedules, bug);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (found === undefined) console.log(`${schedules} schedules from seed ${seed}: all rules held (${seconds} s)`);
  else {
    console.error(explain(found, values.bug));
    process.exitCode = 1;
  }
}
