// What a run of chaos does to whom: drawn from one seed, so that a run can be repeated as far as real processes allow.
import { createDraw, type Draw } from '../simulation/scheduler.ts';

/** One process on its own file, or registries and sidecars over one PostgreSQL. */
export type Topology = 'one' | 'postgres';

export type Scale = {
  readonly topology: Topology;
  readonly payments: number;
  readonly kills: number;
  readonly seed: number;
  /** Tollgate may read the chain; without it only its payers and facilitators tell what became of a settlement. */
  readonly chain: boolean;
  /** Payers come through a front that asks a decision listener; of one process only. */
  readonly asked?: boolean;
  /** The fleet tells an endpoint of every charge by webhooks. */
  readonly webhooks?: boolean;
  /** The name of a fault in the program: see faults.ts. */
  readonly fault?: string;
};

/** How the upstream answers one run of its handler. */
export type Conduct = 'small' | 'large' | 'slow' | 'not_found' | 'fails' | 'hangs_up' | 'breaks_off' | 'redirects';

export type PaymentPlan = {
  readonly n: number;
  readonly method: 'GET' | 'POST';
  readonly version: 1 | 2;
  readonly kind: 'good' | 'poor' | 'forged' | 'short' | 'cancelled';
  /** Of the first runs; every further one is `small`. */
  readonly conducts: readonly Conduct[];
  /** How many identical requests go out at once, by attempt; every further one is alone. */
  readonly copies: readonly number[];
  /** After how many milliseconds a request is left, by request; undefined: never. */
  readonly leaves: readonly (number | undefined)[];
  /** It never asks again once it was told that nothing was taken. */
  readonly givesUp: boolean;
  /** It asks once more for what it has. */
  readonly asksAgain: boolean;
  /** It sends all its copies, one shortly after the other, also when it has what it wanted. */
  readonly goesOn: boolean;
};

export type Plan = { readonly draw: Draw; readonly payments: readonly PaymentPlan[] };

export function createPlan({ payments, seed, topology }: Scale): Plan {
  const draw = createDraw(seed);
  const plan = topology === 'one' ? planPayment : planDuplicates;
  return { draw, payments: Array.from({ length: payments }, (_, n) => plan(draw, n)) };
}

const FEWEST_COPIES = 5;
const MOST_COPIES = 50;

/** 5 to 50 copies, most of them at once, the others after an answer. */
function planDuplicates(draw: Draw, n: number): PaymentPlan {
  const copies = FEWEST_COPIES + draw.below(draw.pick([5, 15, MOST_COPIES - FEWEST_COPIES + 1]));
  const late = 1 + draw.below(FEWEST_COPIES - 2);
  const plan = planPayment(draw, n);
  // What ends by its time alone holds a run up for as long as that.
  const kind = plan.kind === 'short' ? 'good' : plan.kind;
  return { ...plan, kind, copies: [copies - late, late], asksAgain: true, goesOn: true };
}

function planPayment(draw: Draw, n: number): PaymentPlan {
  const conducts: Conduct[] = [];
  // A failure after settling is forgiven three times; a run that fails more often could never be delivered.
  while (conducts.length < 2 && draw.chance(0.35)) {
    conducts.push(
      draw.pick(['large', 'large', 'slow', 'not_found', 'fails', 'hangs_up', 'breaks_off', 'redirects'] as const),
    );
  }
  return {
    n,
    method: draw.pick(['GET', 'POST']),
    version: draw.chance(0.12) ? 1 : 2,
    kind: draw.chance(0.82) ? 'good' : draw.pick(['poor', 'forged', 'short', 'cancelled'] as const),
    conducts,
    copies: Array.from({ length: 3 }, () => (draw.chance(0.25) ? 2 + draw.below(4) : 1)),
    leaves: Array.from({ length: 4 }, () => (draw.chance(0.2) ? draw.below(draw.pick([20, 150, 800])) : undefined)),
    givesUp: draw.chance(0.3),
    asksAgain: draw.chance(0.2),
    goesOn: false,
  };
}
