// `tollgate migrate`: brings the schema of the configured store up to date. A start does the same. This command is for
// operators who let another user of the database do it, so that a sidecar's user has no more rights than it needs.
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { UPGRADE_TAKES, type StorePlace } from '../registry/store/ports.ts';
import { CONFIG_FLAG, loadFor, registryOf } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';

export const migrate: Command = {
  name: 'migrate',
  summary: "bring the store's schema up to date",
  usage: [
    'tollgate migrate [--check] [--config FILE]',
    'tollgate migrate --grants NAME [--config FILE]',
    '',
    'Makes the store where there is none. A start migrates too. --check: exit code 1 if there is something to do.',
    '--grants prints what lets a user of PostgreSQL keep charges and nothing else, which is what a sidecar with',
    'charges.store needs; run it as the user who migrates: tollgate migrate --grants NAME | psql DATABASE',
  ],
  examples: ['tollgate migrate --check', 'tollgate migrate --grants sidecar --config postgres.yaml'],
  flags: {
    ...CONFIG_FLAG,
    check: { help: 'only say whether there is something to do' },
    grants: { value: 'NAME', help: 'print the statements for a database user that keeps charges alone' },
  },
  words: { min: 0, max: 0 },
  run: runMigrate,
};

async function runMigrate(args: Args, io: Io): Promise<ExitCode> {
  const user = args.text('grants');
  if (user !== undefined && args.has('check')) {
    io.err('migrate: takes --check or --grants, not both');
    return EXIT.usage;
  }
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const named = loaded.config.charges.store ?? registryOf(loaded.config, io)?.store;
  if (!named) return EXIT.usage;
  const store = await storeAt(named);
  if (user !== undefined) return printGrants(store, user, io);
  try {
    return await (args.has('check') ? checkSchema(store, io) : bringUp(store, io));
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  }
}

async function bringUp(store: StorePlace, io: Io): Promise<ExitCode> {
  const applied = await store.migrate(({ from, to }) => {
    io.err(`from schema ${from} to ${to}; ${UPGRADE_TAKES}`);
  });
  io.out(applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`);
  return EXIT.fine;
}

async function checkSchema(store: StorePlace, io: Io): Promise<ExitCode> {
  const isDone = await store.isMigrated();
  io.out(isDone ? 'up to date' : 'there is something to do: run `tollgate migrate`');
  return isDone ? EXIT.fine : EXIT.no;
}

function printGrants(store: StorePlace, user: string, io: Io): ExitCode {
  try {
    const statements = store.grants(user);
    if (statements !== undefined) {
      for (const statement of statements) io.out(statement);
      return EXIT.fine;
    }
    io.err('--grants: is for PostgreSQL; this store is a SQLite file and has no users');
  } catch (error) {
    io.err(`--grants: ${messageOf(error)}`);
  }
  return EXIT.usage;
}
