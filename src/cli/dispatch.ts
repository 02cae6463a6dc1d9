// Finds the command that the words of the command line name, runs it and returns its exit code. Without a command, or
// with flags alone, it is `serve`.
import { suggest } from '../domain/suggest.ts';
import { HELP, readArgs } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';

export async function runCommandLine(
  argv: readonly string[],
  commands: readonly Command[],
  process: Io,
): Promise<ExitCode> {
  const io = speaking(process);
  const [first, ...others] = argv;
  if (first === 'help' || first === '--help' || first === '-h') return help(others[0], commands, io);
  const named = first === '--version' || first === '-v' ? 'version' : first;
  const implied = named === undefined || named.startsWith('-');
  const name = implied ? 'serve' : named;
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) return refuseName(name, commands, io);
  const result = readArgs(implied ? argv : others, { ...command.flags, ...HELP }, command.words);
  if (!result.ok) {
    for (const problem of result.problems) io.err(problem);
    io.err(`See \`tollgate ${command.name} --help\`.`);
    return EXIT.usage;
  }
  if (result.args.has('help')) return help(command.name, commands, io);
  return command.run(result.args, io);
}

/** Sentences call the program `tollgate`, usage lines begin with it: people read what they have to type. */
function speaking(io: Io): Io {
  if (io.program === 'tollgate') return io;
  const spoken = (line: string): string =>
    line.replaceAll('`tollgate ', `\`${io.program} `).replace(/^( *)tollgate (?=[a-z-])/, `$1${io.program} `);
  return { ...io, out: (line) => io.out(spoken(line)), err: (line) => io.err(spoken(line)) };
}

function refuseName(name: string, commands: readonly Command[], io: Io): ExitCode {
  const meant = suggest(
    name,
    commands.map((candidate) => candidate.name),
  );
  io.err(`${name}: is no command; ${meant === undefined ? '`tollgate help` lists them' : `did you mean ${meant}?`}`);
  return EXIT.usage;
}

function help(name: string | undefined, commands: readonly Command[], io: Io): ExitCode {
  const command = commands.find((candidate) => candidate.name === name);
  if (name !== undefined && command === undefined) return refuseName(name, commands, io);
  for (const line of command ? describeCommand(command) : describeAll(commands)) io.out(line);
  return EXIT.fine;
}

function describeAll(commands: readonly Command[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'tollgate: a sidecar that makes an HTTP API paid per request (HTTP 402, x402)',
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '`tollgate COMMAND --help` says more. Exit codes: 0 fine, 1 the answer is no, 64 usage or configuration, 69 a needed service is away.',
  ];
}

function describeCommand({ usage, flags, examples }: Command): string[] {
  const rows = Object.entries({ ...flags, ...HELP }).map(([name, flag]): [string, string] => [
    `${flag.short === undefined ? '    ' : `-${flag.short}, `}--${name}${flag.value === undefined ? '' : ` ${flag.value}`}`,
    flag.help,
  ]);
  const width = Math.max(...rows.map(([left]) => left.length));
  return [
    ...[...usage, ''],
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    ...['', 'Examples:', ...examples.map((example) => `  ${example}`)],
  ];
}
