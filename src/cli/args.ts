// Reads the words after a command. Everything wrong with them is told at once, and an unknown flag with the one that was
// probably meant. A flag's value is never repeated.
import { parseArgs } from 'node:util';
import { suggest } from '../domain/suggest.ts';

type Flag = {
  /** Name of the flag's value in the help; a flag without one is a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly multiple?: true;
  /** Values that a shell completes. */
  readonly choices?: readonly string[];
  readonly help: string;
};
export type Flags = Readonly<Record<string, Flag>>;

/** The flag that every command has. */
export const HELP: Flags = { help: { short: 'h', help: 'print this' } };

export type Args = {
  /** The value of a flag, or undefined if it was not given. */
  readonly text: (flag: string) => string | undefined;
  /** Returns every value of a flag that may be given several times. */
  readonly all: (flag: string) => readonly string[];
  readonly has: (flag: string) => boolean;
  readonly words: readonly string[];
};
type ArgsResult =
  | { readonly ok: true; readonly args: Args }
  | { readonly ok: false; readonly problems: readonly string[] };

export function readArgs(
  argv: readonly string[],
  flags: Flags,
  words: { readonly min: number; readonly max: number },
): ArgsResult {
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, toOption(flag)])),
    // Strict parsing stops at the first mistake.
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const problems: string[] = [];
  const unknown = new Set<number>();
  const values = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    if (flag === undefined) {
      // Letters behind one dash are read as a group of short flags: the first one is told.
      if (unknown.has(token.index)) continue;
      unknown.add(token.index);
      const isGroup = (argv[token.index] ?? '').length > 2 && !token.rawName.startsWith('--');
      const meant = isGroup ? undefined : suggest(token.name, Object.keys(flags));
      const advice = isGroup && words.max > 0 ? 'write -- before a word that begins with -' : '--help lists what is';
      problems.push(
        `${token.rawName}: is not known here; ${meant === undefined ? advice : `did you mean --${meant}?`}`,
      );
      continue;
    }
    const name = `--${token.name}`;
    const given = values.get(token.name);
    if (given !== undefined && !flag.multiple) problems.push(`${name}: is given twice; keep one`);
    if (flag.value === undefined && token.value !== undefined) problems.push(`${name}: takes no value; write it alone`);
    const swallowed = token.inlineValue === false && (token.value ?? '').startsWith('-');
    if (flag.value !== undefined && (!token.value || swallowed))
      problems.push(`${name}: needs a value; write ${name} ${flag.value}`);
    values.set(token.name, [...(given ?? []), token.value ?? '']);
  }
  if (positionals.length > words.max) {
    problems.push(
      words.max === 0
        ? 'takes flags only, no further words'
        : `takes at most ${words.max} words; quote a word that holds spaces`,
    );
  }
  // The help is shown even if words are missing.
  if (positionals.length < words.min && !values.has('help'))
    problems.push('words are missing; see the usage in --help');
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    args: {
      text: (flag) => values.get(flag)?.[0],
      all: (flag) => values.get(flag) ?? [],
      has: (flag) => values.has(flag),
      words: positionals,
    },
  };
}

function toOption(flag: Flag): { type: 'string' | 'boolean'; short?: string; multiple?: boolean } {
  return {
    type: flag.value === undefined ? 'boolean' : 'string',
    multiple: true,
    ...(flag.short === undefined ? {} : { short: flag.short }),
  };
}
