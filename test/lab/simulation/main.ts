// `npm run simulate -- --schedules N --seed S`: any number of schedules, from a seed of choice. Of a failing one it
// writes what happened, step by step, and how to run it again. `--bug NAME` plants a fault. `--insist N` instead: N seeds of
// payers who insist on chains of every pace, and how long the last of each was not answered. `--draws`: schedules of passes.
import { parseArgs } from 'node:util';
import { BUGS } from './bugs.ts';
import { latest, runInsisting } from './insist.ts';
import { DRAW_BUGS } from './draws/draw-bugs.ts';
import { runDraws } from './draws/draw-schedule.ts';
import { runSchedule } from './schedule.ts';
import { explain, findViolation } from './search.ts';

/** Schedules after which a run says that it goes on. */
const TOLD_AFTER = 1_000;

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    bug: { type: 'string' },
    draws: { type: 'boolean', default: false },
    insist: { type: 'string', default: '0' },
  },
});
const insisting = Number(values.insist);
const [schedules, seed] = [Number(values.schedules), Number(values.seed)];
const bugs = values.draws ? DRAW_BUGS : BUGS;
const bug = values.bug === undefined ? undefined : BUGS[values.bug];
const drawBug = values.bug === undefined ? undefined : DRAW_BUGS[values.bug];
if (
  !Number.isSafeInteger(schedules) ||
  !Number.isSafeInteger(seed) ||
  !Number.isSafeInteger(insisting) ||
  (values.bug !== undefined && bugs[values.bug] === undefined)
) {
  console.error(
    `usage: npm run simulate -- [--schedules N] [--seed S] [--draws] [--bug NAME | --insist N]\nbugs:\n  ${Object.keys(bugs).join('\n  ')}`,
  );
  process.exitCode = 2;
} else if (insisting > 0) await insist(seed, insisting);
else {
  const startedAt = performance.now();
  const found = await findViolation(seed, schedules, (each, traced) => {
    if (each > seed && (each - seed) % TOLD_AFTER === 0)
      console.error(`${each - seed} schedules held all rules so far`);
    return values.draws ? runDraws(each, drawBug, traced) : runSchedule(each, bug, traced);
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (found === undefined) console.log(`${schedules} schedules from seed ${seed}: all rules held (${seconds} s)`);
  else {
    console.error(explain(found, values.bug, values.draws ? '--draws' : ''));
    process.exitCode = 1;
  }
}

/** Of one payer at one process, and of 100 over five. */
async function insist(first: number, seeds: number): Promise<void> {
  for (const [payers, processes, seconds] of [
    [1, 1, 60],
    [100, 5, 600],
  ] as const)
    for (const blocksPerSecond of [4, 5, 8, 12])
      for (const behindMs of [0, 45_000]) {
        let longest = 0;
        for (let seed = first; seed < first + seeds; seed++)
          for (const pauseMs of [1_000, 2_000])
            for (const minedAfterMs of [1_000, 120_000]) {
              const wanted = { seed, payers, processes, blocksPerSecond, pauseMs, minedAfterMs, behindMs };
              const insisted = await runInsisting(wanted);
              longest = Math.max(longest, latest(insisted));
              if (latest(insisted) < seconds && insisted.violations.length === 0 && insisted.callsASecond <= 5)
                continue;
              console.error(JSON.stringify({ ...wanted, waited: latest(insisted), ...insisted }));
              process.exitCode = 1;
            }
        const who = `${payers} payer${payers === 1 ? '' : 's'} at ${processes}, ${blocksPerSecond} blocks a second, ${behindMs} ms behind`;
        console.log(`${who}: answered ${longest.toFixed(1)} s after the proof at the latest (${seconds} s)`);
      }
}
