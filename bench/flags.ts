// The bench's command line. Everything wrong with it is told at once, with the scenarios' names where one is unknown.
import { parseArgs } from 'node:util';
import { CONSTANT, FORWARD_AUTH, HTTP_PROXY_3, NGINX, UNDICI, X402_EXPRESS } from './names.ts';
import { SCENARIOS } from './scenarios.ts';
import type { Plan } from './stage.ts';

export type Options = {
  readonly help: boolean;
  readonly peers: boolean;
  readonly profile: boolean;
  readonly priority: boolean;
  /** Names of scenarios, in the order of the table. */
  readonly only: readonly string[];
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  readonly against: string | undefined;
  /** Folders of other checkouts of Tollgate to measure beside this one. */
  readonly checkouts: readonly string[];
  /** What the name of a peer that takes part has in it, any of these; undefined: all take part. */
  readonly peersWanted: readonly string[] | undefined;
  readonly plan: Plan;
};
export type OptionsResult =
  | { readonly ok: true; readonly options: Options }
  | { readonly ok: false; readonly problems: readonly string[] };

const FLAGS = {
  quick: { type: 'boolean', help: 'two rounds, few peers: about four minutes, for developing, not for numbers' },
  only: { type: 'string', multiple: true, value: 'NAME', help: 'this scenario only; may be repeated' },
  rounds: { type: 'string', value: 'N', help: 'how often each is measured, in turn (5)' },
  seconds: { type: 'string', value: 'S', help: 'how long one measurement takes, after a burst of half a second (1)' },
  routes: { type: 'string', value: 'N,N', help: 'numbers of routes (10,10000,100000)' },
  json: { type: 'string', value: 'FILE', help: 'write every number there' },
  markdown: { type: 'string', value: 'FILE', help: 'write the tables there, and SVG plots beside it' },
  checkout: {
    type: 'string',
    multiple: true,
    value: 'DIR',
    help: 'measure the Tollgate of another folder beside this one, in turn; may be repeated',
  },
  against: { type: 'string', value: 'REV', help: 'the same with a git revision' },
  peer: {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'only peers whose name holds this; may be repeated; `none` for none',
  },
  priority: { type: 'boolean', help: 'go before others who use this machine, where that is permitted (nice -15)' },
  profile: {
    type: 'boolean',
    help: "keep V8's CPU profiles of every Node server and say what took the time; slows it down",
  },
  peers: { type: 'boolean', help: 'install the Node stacks to compare with (npm ci in bench/peers/middleware)' },
  help: { type: 'boolean', help: 'print this' },
} as const;

const FULL: Plan = {
  rounds: 5,
  warmSeconds: 4,
  slowRounds: 3,
  seconds: 1,
  burstSeconds: 0.5,
  counts: [10, 10_000, 100_000],
  matcherCounts: [10, 10_000, 100_000],
};
const QUICK: Plan = { ...FULL, rounds: 2, slowRounds: 1, matcherCounts: [100_000] };
/** Those that the table speaks of, and the other way to forward. */
const QUICK_PEERS = [NGINX, HTTP_PROXY_3, UNDICI, CONSTANT, X402_EXPRESS, FORWARD_AUTH];

export function readOptions(argv: readonly string[]): OptionsResult {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(argv);
  } catch (error) {
    return { ok: false, problems: [error instanceof Error ? error.message : 'the command line cannot be read'] };
  }
  const problems: string[] = [];
  const base = values.quick ? QUICK : FULL;
  const whole = (name: string, text: string | undefined, fallback: number, most: number): number => {
    if (text === undefined) return fallback;
    const number = Number(text);
    if (!Number.isInteger(number) || number < 1 || number > most) problems.push(`--${name}: write 1 to ${most}`);
    return number;
  };
  const names = SCENARIOS.map(({ name }) => name);
  const wanted = values.only ?? [];
  for (const name of wanted)
    if (!names.includes(name)) problems.push(`--only ${name}: is not one of ${names.join(', ')}`);
  const counts = values.routes
    ?.split(',')
    .map((text) => whole('routes', text, 0, 100_000))
    .sort((a, b) => a - b);
  const rounds = whole('rounds', values.rounds, base.rounds, 100);
  const plan: Plan = {
    ...base,
    rounds,
    slowRounds: Math.min(base.slowRounds, rounds),
    seconds: whole('seconds', values.seconds, base.seconds, 600),
    ...(counts === undefined ? {} : { counts, matcherCounts: counts }),
  };
  if (problems.length > 0) return { ok: false, problems };
  const { help = false, peers = false, profile = false, priority = false, json, markdown, against } = values;
  const { checkout = [], peer } = values;
  const compared = checkout.length > 0 || against !== undefined;
  const peersWanted = peer ?? (compared ? [] : values.quick ? QUICK_PEERS : undefined);
  const only = wanted.length === 0 ? names : names.filter((name) => wanted.includes(name));
  return {
    ok: true,
    options: { help, peers, profile, priority, only, json, markdown, against, checkouts: checkout, peersWanted, plan },
  };
}

export function helpText(): string {
  const flags = Object.entries(FLAGS).map(([name, flag]): [string, string] => [
    `--${name}${'value' in flag ? ` ${flag.value}` : ''}`,
    flag.help,
  ]);
  const scenarios = SCENARIOS.map(({ name, summary }): [string, string] => [name, summary]);
  return [
    'npm run bench -- [flags]: measures Tollgate, beside an upstream alone and what else can be measured here',
    '',
    ...columns(flags),
    '',
    'Scenarios:',
    ...columns(scenarios),
    '',
    'Needs Linux, two cores and taskset (util-linux). Answers are checked before speed; see bench/README.md.',
  ].join('\n');
}

function parse(argv: readonly string[]) {
  return parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }).values;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
