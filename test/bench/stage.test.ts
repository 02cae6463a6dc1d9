// Several processes of one row, measured as one contender.
import { describe, expect, test } from 'vitest';
import { together, type Contender } from '../../bench/stage.ts';

function contender(name: string, cpuUs: number, fault?: string): Contender & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    name,
    seen,
    check: async () => void seen.push('check'),
    measure: async (seconds) => {
      seen.push(`${seconds} s`);
      return { round: { cpuUs }, faults: fault === undefined ? [] : [fault] };
    },
  };
}

describe('contenders of one name', () => {
  test('behaviour: contenders of one name are all checked and measured in every round, and stand for one row', async () => {
    const [one, nginx, other] = [contender('Tollgate', 30), contender('nginx', 10), contender('Tollgate', 40)];
    const joined = together([one, nginx, other]);
    expect(joined.map(({ name }) => name)).toEqual(['Tollgate', 'nginx']);
    await joined[0]?.check();
    expect(await joined[0]?.measure(2)).toEqual({ round: { cpuUs: 35 }, faults: [] });
    expect(await joined[1]?.measure(2)).toEqual({ round: { cpuUs: 10 }, faults: [] });
    expect([one.seen, nginx.seen, other.seen]).toEqual([['check', '2 s'], ['2 s'], ['check', '2 s']]);
  });

  test('behaviour: a fault of one of several contenders of a name is the fault of their row', async () => {
    const [joined] = together([contender('Tollgate', 30), contender('Tollgate', 40, 'answered 500')]);
    expect((await joined?.measure(1))?.faults).toEqual(['answered 500']);
  });
});
