// The rules of draws on passes under every order of events that seeds can draw: crashes, lost and late answers, several processes,
// clients that leave, passes that end. What a planted fault does not break, the rules do not hold: each of them has to be found.
import { expect, test } from 'vitest';
import { DRAW_BUGS } from './draws/draw-bugs.ts';
import { runDraws } from './draws/draw-schedule.ts';
import { explain, findViolation } from './search.ts';

const SCHEDULES = 600;
const SCHEDULES_PER_BUG = 1_500;
/** First seeds for faults that few schedules show: four uses of one pass have to run out, or all words of a take be lost. */
const FIRST_SEEDS: Readonly<Record<string, number>> = {
  'a take that nobody heard of stays': 300,
  'a late take takes what was given back': 100,
  'leases of uses are not renewed': 100,
  'what nobody ends is given back for ever': 60,
  'the fourth use that nobody ends is taken for nothing': 60,
  'a take after its response is said twice at most': 90,
};

test('behaviour: over 600 schedules no more is drawn than was bought, no answer leaves undrawn, no use is drawn for nothing, and what a response says is taken', async () => {
  const found = await findViolation(1, SCHEDULES, (seed, traced) => runDraws(seed, undefined, traced));
  expect(found === undefined ? '' : explain(found, undefined, '--draws')).toBe('');
}, 300_000);

test.each(Object.entries(DRAW_BUGS))(
  'behaviour: a planted fault of draws is found: %s',
  async (name, bug) => {
    const found = await findViolation(FIRST_SEEDS[name] ?? 1, SCHEDULES_PER_BUG, (seed, traced) =>
      runDraws(seed, bug, traced),
    );
    expect(found?.violations).not.toEqual(undefined);
  },
  180_000,
);
