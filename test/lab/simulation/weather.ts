// What may go wrong in one schedule, and how often: drawn per schedule, so that some are calm and some are wild. Once
// healed nothing goes wrong any more, and whatever then stays unfinished is a defect.
import type { Draw } from './scheduler.ts';

export const MISHAPS = [
  ...([
    'refusal',
    'odd_refusal',
    'overtaken',
    'impatience',
    'refused_verification',
    'chain_away',
    'verify_away',
  ] as const),
  ...([
    'settle_lost',
    'settle_timeout',
    'ledger_lost',
    'ledger_answer_lost',
    'ledger_doubled',
    'upstream_fails',
    'upstream_away',
  ] as const),
  ...(['client_leaves', 'crash', 'long_delay'] as const),
  ...(['front_impatience', 'front_doubts', 'front_dies', 'front_forgets', 'upstream_flaky'] as const),
  ...(['report_lost', 'report_doubled'] as const),
] as const;
export type Mishap = (typeof MISHAPS)[number];

export type Weather = {
  readonly happens: (mishap: Mishap) => boolean;
  /** Milliseconds on a network: mostly none to speak of, at times longer than a lease. */
  readonly delay: () => number;
  readonly miningDelay: () => number;
  /** Whether a facilitator that is asked to settle what was settled says that it was. */
  readonly remembers: () => boolean;
  /** No process crashes, no ledger fails, nothing outlasts a lease. */
  readonly calm: boolean;
  readonly heal: () => void;
};

export function createWeather(draw: Draw): Weather {
  const calm = draw.chance(0.15);
  const level = draw.pick([0.03, 0.08, 0.2]);
  const rates = new Map<Mishap, number>();
  for (const mishap of MISHAPS) rates.set(mishap, draw.chance(0.5) ? level : 0);
  // A front that has an upstream of this kind has it for the whole schedule.
  rates.set('upstream_flaky', draw.chance(0.2) ? 0.6 : 0);
  // Each step may be the last of its process: there are many of them.
  rates.set('crash', draw.chance(0.5) ? draw.pick([0.005, 0.02]) : 0);
  if ((rates.get('long_delay') ?? 0) > 0) rates.set('long_delay', level / 3);
  if (calm)
    for (const mishap of ['ledger_lost', 'ledger_answer_lost', 'ledger_doubled', 'crash', 'long_delay'] as const)
      rates.set(mishap, 0);
  let healed = false;
  const happens = (mishap: Mishap): boolean => !healed && draw.chance(rates.get(mishap) ?? 0);
  return {
    calm,
    happens,
    delay: () => (happens('long_delay') ? 20_000 + draw.below(130_000) : draw.below(40)),
    miningDelay: () => (happens('long_delay') ? 30_000 + draw.below(200_000) : draw.below(4_000)),
    remembers: () => draw.chance(0.3),
    heal: () => {
      healed = true;
    },
  };
}
