// The command line of `npm run test:endurance`.
import { parseArgs } from 'node:util';
import { FULL, type Plan } from './plan.ts';

export type Options = { readonly plan: Plan; readonly only: readonly string[] };
export type OptionsResult =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

const FLAGS = {
  only: { type: 'string', multiple: true },
  unpaid: { type: 'string' },
  idle: { type: 'string' },
  slow: { type: 'string' },
  rounds: { type: 'string' },
  help: { type: 'boolean' },
} as const;

export function readOptions(argv: readonly string[], scenarios: readonly string[]): OptionsResult {
  const problems: string[] = [];
  let values: ReturnType<typeof parse>;
  try {
    values = parse(argv);
  } catch (error) {
    return { kind: 'wrong', problems: [error instanceof Error ? error.message : 'the command line cannot be read'] };
  }
  if (values.help === true) return { kind: 'help' };
  const whole = (name: string, text: string | undefined, fallback: number, most: number): number => {
    const number = text === undefined ? fallback : Number(text);
    if (!Number.isInteger(number) || number < 1 || number > most) problems.push(`--${name}: write 1 to ${most}`);
    return number;
  };
  const wanted = values.only ?? [];
  for (const name of wanted)
    if (!scenarios.includes(name)) problems.push(`--only ${name}: is not one of ${scenarios.join(', ')}`);
  const plan: Plan = {
    ...FULL,
    idle: whole('idle', values.idle, FULL.idle, 16_000),
    slow: whole('slow', values.slow, FULL.slow, 8000),
    unpaid: { ...FULL.unpaid, count: whole('unpaid', values.unpaid, FULL.unpaid.count, 10_000_000) },
    stall: { ...FULL.stall, rounds: whole('rounds', values.rounds, FULL.stall.rounds, 100) },
  };
  if (problems.length > 0) return { kind: 'wrong', problems };
  return {
    kind: 'run',
    options: { plan, only: wanted.length === 0 ? scenarios : scenarios.filter((name) => wanted.includes(name)) },
  };
}

export function helpText(scenarios: readonly string[]): string {
  return [
    'npm run test:endurance -- [flags]: what strangers can use up, with load in other processes; exit code 1 where a bound is broken',
    '',
    `  --unpaid N   unpaid requests on paths of their own (${FULL.unpaid.count})`,
    `  --idle N     idle connections (${FULL.idle})`,
    `  --slow N     connections that send their headers a byte at a time (${FULL.slow})`,
    `  --rounds N   rounds in which free requests beside a stalled facilitator are compared (${FULL.stall.rounds})`,
    `  --only NAME  one scenario; may be repeated: ${scenarios.join(', ')}`,
  ].join('\n');
}

function parse(argv: readonly string[]) {
  return parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }).values;
}
