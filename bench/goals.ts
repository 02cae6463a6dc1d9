// What Tollgate is held to, row by row: which figure of which scenario, what it must be and what it aims at. Peers that
// goals compare with are nginx and a node:http server with a constant answer: figures of other programs move with the
// machine, by up to a factor of three. Data; whether a row is met is said in bench/table.ts. Rows that it does not find were not measured: never a
// number that nobody measured.
import {
  allowName,
  askedDemandName,
  besidePassesName,
  besideQuestionsName,
  changingName,
  CONSTANT,
  FEW,
  MAIN,
  MANY,
  NGINX,
  PAID_GET,
  PAID_POST,
  passName,
  pricedName,
  swappedName,
  tollgateName,
  unpricedName,
  verifiedPassName,
} from './names.ts';
import { difference, median, ratio, spreadOf, type Row, type Spread } from './report.ts';

export type Goal = {
  readonly what: string;
  /** The section that it is read from, by the scenario's name. */
  readonly section: string;
  readonly better: 'more' | 'less';
  readonly must: number;
  readonly aim: number;
  readonly unit: string;
  readonly digits: number;
  readonly read: (find: (row: string) => Row | undefined) => Spread | undefined;
};

/** How many times `other` is as dear as Tollgate, by `key`. */
const share =
  (other: string, key = 'cpuUs'): Goal['read'] =>
  (find) =>
    over(find(other), find(tollgateName(MAIN)), key);

/** How many times Tollgate is as dear as `other`. */
const times =
  (other: string, key: string): Goal['read'] =>
  (find) =>
    over(find(tollgateName(MAIN)), find(other), key);

const thousandth =
  (key: string): Goal['read'] =>
  (find) => {
    const found = valueOf(find(`${MANY} routes`), key);
    if (found === undefined) return undefined;
    const { median, min, max, rounds } = found;
    return { median: median / 1000, min: min / 1000, max: max / 1000, rounds };
  };

const X = { unit: 'x', digits: 2 } as const;
const SHARE = { better: 'more', unit: '', digits: 2 } as const;
/** CPU that a pass takes beyond what a free GET takes: no store is asked, and a token is verified by one HMAC. */
const OVER_FREE = { better: 'less', must: 10, aim: 5, unit: 'us', digits: 1 } as const;
const LESS = { ...X, better: 'less' } as const;

export const GOALS: readonly Goal[] = [
  { what: 'free GET, share of nginx', section: 'free', ...SHARE, must: 0.28, aim: 0.45, read: share(NGINX) },
  { what: 'free POST, share of nginx', section: 'post', ...SHARE, must: 0.28, aim: 0.45, read: share(NGINX) },
  { what: '402, share of nginx', section: 'payment-required', ...SHARE, must: 0.25, aim: 0.32, read: share(NGINX) },
  {
    what: '402, share of a constant node:http',
    section: 'payment-required',
    ...SHARE,
    must: 0.8,
    aim: 0.95,
    read: share(CONSTANT),
  },
  {
    what: '402 priced by rules and units, over one without',
    section: 'price',
    better: 'less',
    must: 8,
    aim: 4,
    unit: 'us',
    digits: 1,
    read: (find) => {
      const [priced, unpriced] = [find(pricedName(MAIN)), find(unpricedName(MAIN))];
      return priced && unpriced && difference(priced.rounds, unpriced.rounds, 'cpuUs');
    },
  },
  {
    what: 'GET with a pass by seconds, over a free GET',
    section: 'pass',
    ...OVER_FREE,
    read: (find) => overFree(find, passName(MAIN)),
  },
  {
    what: 'the same, every token verified',
    section: 'pass',
    ...OVER_FREE,
    read: (find) => overFree(find, verifiedPassName(MAIN)),
  },
  {
    what: 'an allow for a free path, CPU to a free GET',
    section: 'decision',
    ...LESS,
    must: 0.75,
    aim: 0.5,
    read: (find) => over(find(allowName(MAIN)), find(tollgateName(MAIN)), 'cpuUs'),
  },
  {
    what: '402 to a question, CPU to the 402 of the proxy',
    section: 'decision',
    ...LESS,
    must: 1.25,
    aim: 1,
    read: (find) => over(find(askedDemandName(MAIN)), find(besideQuestionsName(MAIN)), 'cpuUs'),
  },
  {
    what: 'p50 added at 2,000/s, to nginx',
    section: 'latency',
    ...LESS,
    must: 3,
    aim: 2,
    read: (find) => ratioOfMedians(find(tollgateName(MAIN)), find(NGINX), 'addedUs'),
  },
  {
    what: 'download of 10 MB, CPU to nginx',
    section: 'download',
    ...LESS,
    must: 1.3,
    aim: 1,
    read: times(NGINX, 'cpuMsPerMb'),
  },
  {
    what: 'upload of 10 MB, CPU to nginx',
    section: 'upload',
    ...LESS,
    must: 2.5,
    aim: 1.5,
    read: times(NGINX, 'cpuMsPerMb'),
  },
  {
    what: 'matcher, 100,000 routes: hot',
    section: 'matcher',
    better: 'less',
    must: 0.3,
    aim: 0.15,
    unit: 'us',
    digits: 2,
    read: thousandth('hotNs'),
  },
  {
    what: 'matcher, 100,000 routes: never seen',
    section: 'matcher',
    better: 'less',
    must: 2,
    aim: 1,
    unit: 'us',
    digits: 2,
    read: thousandth('freshNs'),
  },
  {
    what: 'a request at 100,000 routes, to one at 10',
    section: 'free',
    ...LESS,
    must: 1.15,
    aim: 1.05,
    read: (find) => over(find(tollgateName(MANY)), find(tollgateName(FEW)), 'cpuUs'),
  },
  {
    what: '100,000 routes changed: longest pause',
    section: 'change',
    better: 'less',
    must: 50,
    aim: 10,
    unit: 'ms',
    digits: 1,
    read: (find) => valueOf(find(changingName(MANY)), 'maxMs'),
  },
  {
    what: '100,000 routes swapped for 100,000 others: longest pause',
    section: 'swap',
    better: 'less',
    must: 50,
    aim: 10,
    unit: 'ms',
    digits: 1,
    read: (find) => valueOf(find(swappedName(MANY)), 'maxMs'),
  },
  {
    what: 'paid GET a second and core',
    section: 'paid',
    better: 'more',
    must: 1500,
    aim: 4000,
    unit: '',
    digits: 0,
    read: (find) => valueOf(find(PAID_GET), 'perCore'),
  },
  {
    what: 'paid POST a second and core',
    section: 'paid',
    better: 'more',
    must: 1500,
    aim: 4000,
    unit: '',
    digits: 0,
    read: (find) => valueOf(find(PAID_POST), 'perCore'),
  },
  {
    what: 'resident, idle',
    section: 'memory',
    better: 'less',
    must: 100,
    aim: 75,
    unit: 'MB',
    digits: 0,
    read: (find) => valueOf(find(tollgateName(MAIN)), 'idleMb'),
  },
  {
    what: 'resident, 10,000 idle connections',
    section: 'memory',
    better: 'less',
    must: 300,
    aim: 200,
    unit: 'MB',
    digits: 0,
    read: (find) => valueOf(find(tollgateName(MAIN)), 'heldMb'),
  },
];

function overFree(find: (row: string) => Row | undefined, name: string): Spread | undefined {
  const [pass, free] = [find(name), find(besidePassesName(MAIN))];
  return pass && free && difference(pass.rounds, free.rounds, 'cpuUs');
}

function over(a: Row | undefined, b: Row | undefined, key: string): Spread | undefined {
  return a === undefined || b === undefined ? undefined : ratio(a.rounds, b.rounds, key);
}

/**
 * Of small differences: in a noisy round what nginx adds can be nothing, and its ratio anything. The spread is what leaving
 * out any one round would make of it.
 */
function ratioOfMedians(a: Row | undefined, b: Row | undefined, key: string): Spread | undefined {
  const [over = [], under = []] = [a, b].map((row) => row?.rounds.flatMap((round) => round[key] ?? []));
  const rounds = Math.min(over.length, under.length);
  if (rounds === 0) return undefined;
  const all = median(over) / median(under);
  const others = (left: number, values: readonly number[]): number => median(values.filter((_, at) => at !== left));
  const without = over.slice(0, rounds).map((_, left) => others(left, over) / others(left, under));
  const found = rounds > 2 ? without : [all];
  return { median: all, min: Math.min(all, ...found), max: Math.max(all, ...found), rounds };
}

function valueOf(row: Row | undefined, key: string): Spread | undefined {
  return row === undefined ? undefined : spreadOf(row, key);
}
