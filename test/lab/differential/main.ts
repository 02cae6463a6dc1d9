// `npm run test:differential -- [--exchanges N] [--seed S] [--front proxy|sync|paid]`: the differential test for as long
// as one likes. Exit code 1 where anything differed; each fault stands behind the command that shows its round again.
import { parseArgs } from 'node:util';
import { PAID } from './front-paid.ts';
import { PROXY, SYNC } from './front-proxy.ts';
import { EXCHANGES, runRound } from './run.ts';

const FRONTS = [PROXY, SYNC, PAID];
const { values } = parseArgs({
  options: {
    exchanges: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    front: { type: 'string', multiple: true, default: FRONTS.map(({ name }) => name) },
  },
});

const number = (name: 'exchanges' | 'seed'): number => {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} takes a whole number`);
  return value;
};

const total = number('exchanges');
let failed = 0;
for (const front of FRONTS.filter(({ name }) => values.front.includes(name))) {
  const started = performance.now();
  let done = 0;
  for (let seed = number('seed'); done < total; seed++) {
    const size = Math.min(EXCHANGES, total - done);
    const { faults } = await runRound(front, seed, size);
    done += size;
    failed += faults.length;
    for (const fault of faults) console.log(fault);
  }
  console.log(`${front.name}: ${done} exchanges in ${Math.round(performance.now() - started)} ms`);
}
console.log(failed === 0 ? 'all of them came through as they were sent' : `${failed} faults`);
process.exit(failed === 0 ? 0 : 1);
