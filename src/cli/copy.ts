// `tollgate copy FROM TO`: moves a SQLite store into PostgreSQL, once and whole. The configurations that serve the two
// stores name them, so passwords stay in their files.
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { LoadedConfig } from '../config/config.ts';
import { resolveSecrets, secretsFileOf } from '../config/first-start.ts';
import { loadConfig } from '../config/load.ts';
import type { StoreSettings } from '../domain/store-settings.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import { createRandom } from '../host/clock.ts';
import type { CopyMark, CopySource, CopyTarget } from '../registry/store/copy-ports.ts';
import type { CopyProgress, CopyResult } from '../registry/store/copy.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import type { StorePlace } from '../registry/store/ports.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { reportProblems, talk } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';
import { tableOf } from './table.ts';

/** Interval between two lines that say how far a copy is. */
const TOLD_MS = 10_000;

export const copy: Command = {
  name: 'copy',
  summary: 'move a SQLite store into PostgreSQL',
  usage: [
    'tollgate copy FROM TO [--dry-run] [--json]',
    'tollgate copy --thaw FROM TO',
    '',
    'FROM and TO are configuration files: the store of FROM is a SQLite file that no process serves or has open, that of TO an',
    'empty schema of PostgreSQL, or none yet. Routes with their history, API keys, charges with credentials and kept',
    'answers, sums and the identity of the registry go over in one transaction, are read back and compared. From its start on',
    '`serve` refuses FROM. If it is interrupted, the same command does it again, or finds it done.',
    'Exit code 1: TO holds something already, or what was read back differs; 69: a store cannot be used.',
  ],
  examples: ['tollgate copy tollgate.yaml postgres.yaml --dry-run', 'tollgate copy tollgate.yaml postgres.yaml'],
  flags: {
    'dry-run': { help: 'do all of it, also beside a running server, and undo it' },
    thaw: { help: 'let FROM be served again, as long as TO is empty or gone' },
    json: { help: 'one JSON object on standard output' },
  },
  words: { min: 2, max: 2 },
  run: runCopy,
};

async function runCopy(args: Args, io: Io): Promise<ExitCode> {
  if (args.has('thaw') && args.has('dry-run')) {
    io.err('copy: takes --thaw or --dry-run, not both');
    return EXIT.usage;
  }
  const [fromFile = '', toFile = ''] = args.words;
  const [from, to] = [load(fromFile, io), load(toFile, io)];
  if (from === undefined || to === undefined) return EXIT.usage;
  const places = await placesOf(from, to, io);
  if (places === undefined) return EXIT.usage;
  const { openSource, openTarget } = places;
  const rehearses = args.has('dry-run');
  let source: CopySource | undefined;
  let target: CopyTarget | undefined;
  try {
    source = openSource(rehearses ? undefined : holder());
    target = openTarget();
    if (args.has('thaw')) return await thaw(source, target, args, io);
    warnOfSecrets(from, to, io);
    const since = performance.now();
    const result = await copyWithWord(source, target, { rehearses, io });
    return report(result, { name: target.name, seconds: (performance.now() - since) / 1000, args, io });
  } catch (error) {
    io.err(messageOf(error));
    if (source?.mark() !== undefined && !args.has('thaw'))
      io.err('FROM is marked and is not served: run the same command again, or `tollgate copy --thaw` to go back.');
    return EXIT.away;
  } finally {
    source?.close();
    await target?.close();
  }
}

function load(file: string, io: Io): LoadedConfig | undefined {
  const result = loadConfig(file, io.env, io.folder, NETWORKS);
  if (result.ok) return result.config;
  reportProblems(result.problems, io.err);
  return undefined;
}

type Places = Required<Pick<StorePlace, 'openSource' | 'openTarget'>>;

/** Complaints were written if it is undefined. */
async function placesOf(from: LoadedConfig, to: LoadedConfig, io: Io): Promise<Places | undefined> {
  const { openSource } = (await placeOf(from)) ?? {};
  const { openTarget } = (await placeOf(to)) ?? {};
  if (openSource === undefined)
    io.err('FROM keeps nothing in a SQLite file; its registry.store or charges.store is copied');
  if (openTarget === undefined) io.err('TO keeps nothing in PostgreSQL; write store: postgres://user@host/database');
  if (openSource === undefined || openTarget === undefined) return undefined;
  if ((from.registry === undefined) === (to.registry === undefined)) return { openSource, openTarget };
  io.err('One of them keeps the charges of a sidecar, the other a registry; both have to keep the same');
  return undefined;
}

async function placeOf({ registry, charges }: LoadedConfig): Promise<Partial<StorePlace> | undefined> {
  const named: StoreSettings | undefined = charges.store ?? registry?.store;
  return named && storeAt(named);
}

function holder(): { readonly pid: number; readonly host: string; readonly started: string } {
  return { pid: process.pid, host: hostname(), started: new Date().toISOString() };
}

async function copyWithWord(
  source: CopySource,
  target: CopyTarget,
  { rehearses, io }: { readonly rehearses: boolean; readonly io: Io },
): Promise<CopyResult> {
  let progress: CopyProgress | undefined;
  const timer = setInterval(() => {
    const { doing, rows, of } = progress ?? { doing: 'written', rows: 0, of: 0 };
    io.err(progress === undefined ? 'waiting for the database' : `${rows} of ${of} rows ${doing}`);
  }, TOLD_MS);
  try {
    const { copyStore } = await import('../registry/store/copy.ts');
    return await copyStore(source, target, { now: Date.now, rehearses, onProgress: (next) => (progress = next) });
  } finally {
    clearInterval(timer);
  }
}

type ReportContext = { readonly name: string; readonly seconds: number; readonly args: Args; readonly io: Io };

function report(result: CopyResult, { name, seconds, args, io }: ReportContext): ExitCode {
  switch (result.kind) {
    case 'copied':
    case 'found':
    case 'rehearsed': {
      const tables = [...result.tables].map(([table, { rows, sha256 }]) => ({ table, rows, sha256 }));
      if (args.has('json')) {
        io.out(JSON.stringify({ result: result.kind, to: name, seconds: Number(seconds.toFixed(3)), tables }));
        return EXIT.fine;
      }
      for (const line of tableOf(
        ['table', 'rows', 'sha256'],
        tables.map(({ table, rows, sha256 }) => [table, String(rows), sha256]),
      ))
        io.out(line);
      io.out(`${DONE[result.kind]} ${name}, in ${seconds.toFixed(1)} s`);
      return EXIT.fine;
    }
    case 'occupied':
      io.err(`${name} holds something already, or a server ran on it; nothing was copied. Name an empty schema.`);
      return EXIT.no;
    case 'elsewhere':
      sayElsewhere(result.mark, name, io);
      return EXIT.no;
    case 'differs':
      io.err(
        result.written
          ? `${result.table}: what was read back from ${name} differs; all of it was undone. Run the same command again.`
          : `${result.table}: ${name} was copied into and differs by now, as it does once it is served. FROM stays as it is.`,
      );
      return EXIT.no;
    default:
      return result satisfies never;
  }
}

const DONE = {
  copied: 'copied to',
  found: 'was copied already, and is whole, in',
  rehearsed: 'would be copied to',
} as const;

async function thaw(source: CopySource, target: CopyTarget, args: Args, io: Io): Promise<ExitCode> {
  const { thawStore } = await import('../registry/store/copy.ts');
  const result = await thawStore(source, target);
  if (result.kind === 'elsewhere') {
    sayElsewhere(result.mark, target.name, io);
    return EXIT.no;
  }
  if (result.kind === 'used') {
    io.err(`${target.name} is not empty, so FROM stays marked: of the two one at most may be served.`);
    return EXIT.no;
  }
  const said = result.kind === 'thawed' ? 'the mark is taken away; FROM may be served' : 'FROM is not marked';
  io.out(args.has('json') ? JSON.stringify({ result: result.kind }) : said);
  return EXIT.fine;
}

function sayElsewhere({ target, since }: CopyMark, name: string, io: Io): void {
  io.err(`FROM is being copied to ${target} since ${since}, not to ${name}; name that one, or thaw it with that one.`);
}

/** Charge ids, tokens and keys of payers, dashboards and SDKs are good at TO only with the same secrets. */
function warnOfSecrets(from: LoadedConfig, to: LoadedConfig, io: Io): void {
  const had = resolveSecrets(from, { random: createRandom(), log: talk(io) });
  if (!had.ok) {
    io.err(had.problem);
    return;
  }
  const { charges, registry } = had.config;
  const known = to.charges.secrets;
  const missing = [
    ...(known !== undefined && !charges.secrets.every((secret) => known.includes(secret))
      ? ['charges.secrets: without those of FROM, payers cannot fetch what they paid for there and did not get yet']
      : []),
    ...(registry !== undefined && !isDeepStrictEqual(registry.jwt, to.registry?.jwt)
      ? ['registry.jwt: dashboard tokens of FROM are not good at TO']
      : []),
    ...(registry?.apiKeys ?? [])
      .filter(({ key }) => !(to.registry?.apiKeys ?? []).some((other) => other.key === key))
      .map(({ name }) => `registry.api_keys: TO does not know ${name}`),
  ];
  for (const each of missing) io.err(`TO differs from FROM: ${each}`);
  if (missing.length > 0 && from.registry !== undefined && secretsFileOf(from.registry.store) !== undefined)
    io.err('What FROM does not configure stands in secrets.json beside its store.');
}
