// `tollgate completion`: the scripts in the shells that they are for. bash is the one of this machine, with the words that it hands
// to a completion; zsh and fish are asked where they are installed.
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { temporaryFolder } from '../support/process.ts';
import { fakeIo } from './support.ts';

const files = temporaryFolder();
afterAll(files.remove);
const NAMES = COMMANDS.map(({ name }) => name);

async function scriptFor(shell: string): Promise<string> {
  const io = fakeIo();
  expect(await runCommandLine(['completion', shell], COMMANDS, io)).toBe(0);
  return io.stdout();
}

beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) files.write(`tollgate.${shell}`, await scriptFor(shell));
  mkdirSync(path.join(files.folder, 'own files'));
  writeFileSync(path.join(files.folder, 'own files/a b.yaml'), '');
  writeFileSync(path.join(files.folder, 'staging.yaml'), '');
});

function runShell(program: string, argv: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, argv, { cwd: files.folder, timeout: 30_000 }, (error, stdout, stderr) => {
      if (error !== null) reject(new Error(`${error.message}: ${stderr}`));
      else if (stderr !== '') reject(new Error(stderr));
      else resolve(stdout);
    });
  });
}

const isThere = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

/** What each shell offers for the last word of a line, asked in one process for all lines. */
const OFFERS: Readonly<Record<string, (lines: readonly string[]) => Promise<string[][]>>> = {
  bash: async (lines) => {
    // Words as readline breaks them: `=` is a word of its own.
    const asked = lines.map((line) => {
      const words = line.split(' ').flatMap((word) => word.split(/(=)/).filter((part, at) => part !== '' || at === 0));
      const quoted = words.map((word) => `'${word}'`).join(' ');
      return `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _tollgate; printf '%s\\n' "\${COMPREPLY[@]}"; echo ==`;
    });
    const told = await runShell('bash', ['--norc', '-c', `source ./tollgate.bash; ${asked.join('; ')}`]);
    return told
      .split('==\n')
      .slice(0, -1)
      .map((each) => each.split('\n').filter((word) => word !== ''));
  },
  fish: async (lines) => {
    const asked = lines.map((line) => `complete -C '${line}'; echo ==`).join('; ');
    const told = await runShell('fish', ['--no-config', '-c', `source ./tollgate.fish; ${asked}`]);
    return told
      .split('==\n')
      .slice(0, -1)
      .map((each) => each.split('\n').flatMap((word) => (word === '' ? [] : [word.split('\t', 1)[0] ?? ''])));
  },
};

const CASES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['tollgate ke', ['keys']],
  ['tollgate c', ['check', 'charges', 'completion', 'copy']],
  ['tollgate keys ', ['create', 'list', 'revoke']],
  ['tollgate keys r', ['revoke']],
  ['tollgate keys create --sc', ['--scope']],
  ['tollgate keys create --scope l', ['ledger']],
  ['tollgate charges --config x.yaml sh', ['show']],
  ['tollgate completion ', ['bash', 'fish', 'zsh']],
  ['tollgate help prob', ['probe']],
  ['tollgate --upst', ['--upstream']],
  ['tollgate --upstream http://localhost --pay', ['--pay-to']],
  ['tollgate check --config stag', ['staging.yaml']],
  ['tollgate desk --role ', ['admin', 'viewer']],
  ['tollgate match --js', ['--json']],
  ['tollgate nothing ', []],
];

describe.each(Object.entries(OFFERS))('%s', (shell, offer) => {
  test.skipIf(!isThere(shell))(
    `behaviour: ${shell} completes commands, their words, their flags and the values of these`,
    async () => {
      const offered = await offer(CASES.map(([line]) => line));
      const sorted = CASES.map(([line], at) => [line, (offered[at] ?? []).toSorted()]);
      expect(sorted).toEqual(CASES.map(([line, wanted]) => [line, wanted.toSorted()]));
    },
  );

  test.skipIf(!isThere(shell))(`behaviour: ${shell} is offered every command and every flag of each`, async () => {
    const lines = ['tollgate ', ...NAMES.map((name) => `tollgate ${name} -${shell === 'fish' ? '-' : ''}`)];
    const [commands = [], ...flags] = await offer(lines);
    expect(commands.toSorted()).toEqual(['help', ...NAMES].toSorted());
    for (const [at, { name, flags: own }] of COMMANDS.entries())
      expect([name, ...(flags[at] ?? []).filter((each) => each.startsWith('--')).toSorted()]).toEqual([
        name,
        ...[...Object.keys(own), 'help'].map((flag) => `--${flag}`).toSorted(),
      ]);
  });
});

test('behaviour: bash completes a value behind = and names of files that hold spaces', async () => {
  const [scope, file] = await OFFERS['bash']!(['tollgate keys create --scope=sdk', 'tollgate check -c own']);
  expect(scope).toEqual(['sdk', 'sdk,ledger']);
  expect(file).toEqual(['own files']);
});

/** Types each line and a tab into a zsh of its own, as a person does, and prints what stands there then. */
const ZSH = String.raw`
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='> '; unset zle_bracketed_paste; autoload -U compinit; compinit -u -D; source ./tollgate.zsh; echo LOAD''ED"
zpty -r -m shell got '*LOADED*'
for line in "$@"; do
  zpty -w -n shell "$line"$'\t'$'\x01'"echo 'DO''NE:'"$'\x05'$'\n'
  zpty -r -m shell got '*DONE:*'$'\n'
  print -r -- "$got"
done
`;

test.skipIf(!isThere('zsh'))(
  'behaviour: zsh completes commands, their words, their flags and the values of these',
  async () => {
    const wanted = [
      ['tollgate ke', 'tollgate keys'],
      ['tollgate keys r', 'tollgate keys revoke'],
      ['tollgate keys create --sc', 'tollgate keys create --scope'],
      ['tollgate keys create --scope le', 'tollgate keys create --scope ledger'],
      ['tollgate charges --config x.yaml sh', 'tollgate charges --config x.yaml show'],
      ['tollgate completion z', 'tollgate completion zsh'],
      ['tollgate --upst', 'tollgate --upstream'],
      ['tollgate check --config stag', 'tollgate check --config staging.yaml'],
      ['tollgate match --js', 'tollgate match --json'],
    ] as const;
    files.write('ask.zsh', ZSH);
    const told = await runShell('zsh', ['-f', 'ask.zsh', ...wanted.map(([line]) => line)]);
    const lines = [...told.matchAll(/DONE:([^\r\n]+)/g)].map(([, line = '']) => line);
    expect(lines).toEqual(wanted.map(([, line]) => line));
  },
);

test('refuses: a shell that is not known, and none', async () => {
  const io = fakeIo();
  expect(await runCommandLine(['completion', 'tcsh'], COMMANDS, io)).toBe(64);
  expect([io.stdout(), io.stderr()]).toEqual(['', 'completion: is followed by bash, zsh or fish\n']);
  expect(await runCommandLine(['completion'], COMMANDS, fakeIo())).toBe(64);
});

test('behaviour: the words that a command offers first are those of its usage, and the other way round', () => {
  const wrong = COMMANDS.flatMap(({ name, usage, actions = [] }) => {
    const lines = usage.filter((line) => line.startsWith(`tollgate ${name} `));
    const told = new Set(
      lines.flatMap(
        (line) =>
          line
            .split(' ')[2]
            ?.match(/^[a-z]+(?:\|[a-z]+)*$/)?.[0]
            .split('|') ?? [],
      ),
    );
    return [
      ...[...told].filter((word) => !actions.includes(word)).map((word) => `${name} lacks \`${word}\` in its actions`),
      ...actions.filter((word) => !told.has(word)).map((word) => `the usage of ${name} lacks its action \`${word}\``),
    ];
  });
  expect(wrong).toEqual([]);
});
