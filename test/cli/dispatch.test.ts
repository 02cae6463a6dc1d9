// The command line without a process: words to a command, help, and every mistake told at once.
import { describe, expect, test } from 'vitest';
import { readArgs } from '../../src/cli/args.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import type { Command } from '../../src/cli/command.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from './support.ts';

const FLAGS = {
  config: { value: 'FILE', short: 'c', help: '' },
  route: { value: 'ROUTE', multiple: true, help: '' },
  json: { help: '' },
} as const;
const ANY = { min: 0, max: 1 };

describe('flags', () => {
  test('behaviour: the command line is read as values, repeated values, switches and words', () => {
    const result = readArgs(['-c', 'a.yaml', '--route', 'GET /a 1', '--route=GET /b 2', '--json', 'word'], FLAGS, ANY);
    if (!result.ok) throw new Error(result.problems.join());
    const { args } = result;
    expect(args.text('config')).toBe('a.yaml');
    expect(args.all('route')).toEqual(['GET /a 1', 'GET /b 2']);
    expect([args.has('json'), args.has('config'), args.has('other')]).toEqual([true, true, false]);
    expect(args.words).toEqual(['word']);
    expect(readArgs(['--', '--json'], FLAGS, ANY)).toMatchObject({ ok: true, args: { words: ['--json'] } });
  });

  test.each<[string, string[], string[]]>([
    ['an unknown flag', ['--rout', 'x'], ['--rout: is not known here; did you mean --route?']],
    ['an unknown short flag', ['-x'], ['-x: is not known here; --help lists what is']],
    [
      'a word that begins with a dash, as the end of a charge id may',
      ['-2GYQ'],
      ['-2: is not known here; write -- before a word that begins with -'],
    ],
    [
      'a flag of an object',
      ['--__proto__', '--toString'],
      ['--__proto__: is not known here; --help lists what is', '--toString: is not known here; --help lists what is'],
    ],
    ['a missing value', ['--config'], ['--config: needs a value; write --config FILE']],
    ['an empty value', ['--config='], ['--config: needs a value; write --config FILE']],
    ['a flag for a value', ['--config', '--json'], ['--config: needs a value; write --config FILE']],
    ['a value for a switch', ['--json=yes'], ['--json: takes no value; write it alone']],
    ['a flag twice', ['-c', 'a', '--config', 'b'], ['--config: is given twice; keep one']],
    ['a word too many', ['a', 'b'], ['takes at most 1 words; quote a word that holds spaces']],
    [
      'all of them',
      ['--jsn', '--config', 'a', 'b', '--route'],
      ['--jsn: is not known here; did you mean --json?', '--route: needs a value; write --route ROUTE'],
    ],
  ])('refuses: a command line with %s', (_name, argv, problems) => {
    expect(readArgs(argv, FLAGS, ANY)).toEqual({ ok: false, problems });
  });

  test('refuses: a missing word, but not from who asks for help', () => {
    const words = { min: 2, max: 2 };
    expect(readArgs(['a'], FLAGS, words)).toEqual({
      ok: false,
      problems: ['words are missing; see the usage in --help'],
    });
    expect(readArgs(['--help'], { ...FLAGS, help: { help: '' } }, words)).toMatchObject({ ok: true });
  });
});

describe('commands', () => {
  const ran: string[] = [];
  const fake = (name: string): Command => ({
    name,
    summary: `does ${name}`,
    usage: [`tollgate ${name}`],
    examples: [`tollgate ${name}`],
    flags: FLAGS,
    words: ANY,
    run: async (args) => {
      ran.push(`${name} ${args.text('config') ?? ''}`);
      return 0;
    },
  });
  const commands = [fake('serve'), fake('check'), fake('version')];

  test.each<[string[], string]>([
    [[], 'serve '],
    [['-c', 'a'], 'serve a'],
    [['--config', 'a'], 'serve a'],
    [['check', '-c', 'b'], 'check b'],
    [['--version'], 'version '],
    [['-v'], 'version '],
  ])('behaviour: %j runs %s', async (argv, expected) => {
    ran.length = 0;
    expect(await runCommandLine(argv, commands, fakeIo())).toBe(0);
    expect(ran).toEqual([expected]);
  });

  test.each([[['help']], [['--help']], [['-h']]])('behaviour: %j lists the commands', async (argv) => {
    const io = fakeIo();
    expect(await runCommandLine(argv, commands, io)).toBe(0);
    expect(io.stdout()).toContain('serve    does serve');
  });

  test.each(COMMANDS.map(({ name }) => [name]))('behaviour: %s --help shows its usage and every flag', async (name) => {
    const io = fakeIo();
    expect(await runCommandLine([name, '--help'], COMMANDS, io)).toBe(0);
    expect(io.stdout()).toContain(`tollgate ${name}`);
    for (const flag of Object.keys(COMMANDS.find((command) => command.name === name)?.flags ?? {}))
      expect(io.stdout()).toContain(`--${flag}`);
    expect(io.stderr()).toBe('');
  });

  test('refuses: an unknown command, with the one that is meant', async () => {
    const io = fakeIo();
    expect(await runCommandLine(['chek'], commands, io)).toBe(64);
    expect(io.stderr()).toBe('chek: is no command; did you mean check?\n');
  });

  test('refuses: help for an unknown command, in a sentence and not by the list of all', async () => {
    const io = fakeIo();
    expect(await runCommandLine(['help', 'chek'], commands, io)).toBe(64);
    expect([io.stdout(), io.stderr()]).toEqual(['', 'chek: is no command; did you mean check?\n']);
    const other = fakeIo();
    expect(await runCommandLine(['help', 'foo'], commands, other)).toBe(64);
    expect([other.stdout(), other.stderr()]).toEqual(['', 'foo: is no command; `tollgate help` lists them\n']);
  });

  test('refuses: an unknown flag, pointing at the help', async () => {
    const io = fakeIo();
    expect(await runCommandLine(['check', '--jsno'], commands, io)).toBe(64);
    expect(io.stderr()).toBe('--jsno: is not known here; did you mean --json?\nSee `tollgate check --help`.\n');
  });
});
