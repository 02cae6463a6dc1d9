// The help of the programs beside Tollgate, in the form of its own.
import type { Flags } from '../../src/cli/args.ts';

export function helpLines(usage: readonly string[], flags: Flags): string[] {
  const all: Flags = { ...flags, help: { short: 'h', help: 'print this' } };
  const rows = Object.entries(all).map(([name, { short, value, help }]): [string, string] => [
    `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    help,
  ]);
  const width = Math.max(...rows.map(([left]) => left.length));
  return [...usage, '', ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)];
}
