// What can be completed on the command line: the table of commands as shells need it, the help of each flag cut to what fits a line.
import { HELP, type Flags } from './args.ts';
import type { Command } from './command.ts';

export type CompletableFlag = {
  readonly name: string;
  readonly short: string | undefined;
  readonly help: string;
  readonly isRepeatable: boolean;
  /** Undefined: a switch. */
  readonly value:
    | { readonly name: string; readonly kind: 'file' | 'folder' | 'other'; readonly choices: readonly string[] }
    | undefined;
};
export type CompletableCommand = {
  readonly name: string;
  readonly summary: string;
  /** Words that may come first after the command. */
  readonly actions: readonly string[];
  readonly flags: readonly CompletableFlag[];
};

/** Kinds of values by the name that the help gives them. */
const KINDS: Readonly<Record<string, 'file' | 'folder'>> = { FILE: 'file', DIR: 'folder' };

export function completable(commands: readonly Command[]): readonly CompletableCommand[] {
  const own = commands.map(({ name, summary, actions = [], flags }) => ({
    ...{ name, summary: plain(summary), actions },
    flags: flagsOf({ ...flags, ...HELP }),
  }));
  const help = { name: 'help', summary: 'list the commands, or say more of one', actions: own.map(({ name }) => name) };
  return [...own, { ...help, flags: [] }];
}

function flagsOf(flags: Flags): readonly CompletableFlag[] {
  return Object.entries(flags).map(([name, { short, help, multiple = false, value, choices = [] }]) => ({
    ...{ name, short, help: plain(help), isRepeatable: multiple },
    value: value === undefined ? undefined : { name: value, kind: KINDS[value] ?? 'other', choices },
  }));
}

const LONGEST = 72;

/** A sentence without what shells take for more than letters. */
function plain(text: string): string {
  const words = text.replaceAll(/[`'"\\$]/g, '');
  return words.length <= LONGEST ? words : `${words.slice(0, words.lastIndexOf(' ', LONGEST))} ...`;
}
