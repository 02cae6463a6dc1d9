// Whether two kinds of input take different times, after dudect: samples in random order, the slowest cut away because
// they say more about the machine than about the code, and Welch's t over what is left. Knows nothing of what it times.

export type Sampled = {
  readonly t: number;
  /** Nanoseconds, of what is left. */
  readonly means: readonly [number, number];
  readonly kept: number;
  readonly samples: number;
};

/** Beyond this two means differ with less than one chance in 100,000 of being wrong: the usual limit of such tests. */
export const LIMIT_T = 4.5;
/** Of all samples, the share that is kept. */
const KEPT = 0.9;
const WARM_UP = 0.2;

/**
 * `inputs` makes a fresh input of either kind, outside the time that counts. Kinds alternate at random, so that whatever
 * the machine does meanwhile happens to both.
 */
export async function compareTimes<T>(
  samples: number,
  inputs: readonly [() => T, () => T],
  run: (input: T) => unknown,
  random: () => number = Math.random,
): Promise<Sampled> {
  const times = new Float64Array(samples);
  const kinds = new Uint8Array(samples);
  let sink = 0;
  for (let nth = -Math.floor(samples * WARM_UP); nth < samples; nth++) {
    const kind = random() < 0.5 ? 0 : 1;
    const input = inputs[kind]();
    const from = process.hrtime.bigint();
    const given = run(input);
    const result: unknown = given instanceof Promise ? await given : given;
    const to = process.hrtime.bigint();
    // Used, so that no compiler leaves the call out.
    if (result !== undefined) sink++;
    if (nth < 0) continue;
    times[nth] = Number(to - from);
    kinds[nth] = kind;
  }
  if (sink < 0) throw new Error('unreachable');
  return welch(times, kinds);
}

export function welch(times: Float64Array, kinds: Uint8Array): Sampled {
  const cut = times.toSorted()[Math.floor(times.length * KEPT)] ?? Infinity;
  const groups: [number[], number[]] = [[], []];
  for (const [nth, time] of times.entries()) if (time <= cut) groups[kinds[nth] === 0 ? 0 : 1].push(time);
  const [a, b] = [moments(groups[0]), moments(groups[1])];
  const t = (a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count);
  // Without any spread a difference is certain, and none is none.
  const certain = a.mean === b.mean ? 0 : Infinity;
  return {
    t: Number.isFinite(t) ? t : certain,
    means: [a.mean, b.mean],
    kept: a.count + b.count,
    samples: times.length,
  };
}

function moments(values: readonly number[]): { count: number; mean: number; variance: number } {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  return { count, mean, variance };
}
