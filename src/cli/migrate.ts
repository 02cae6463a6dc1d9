// `tollgate migrate`: brings the schema of the configured store up to date. A start does the same; this is for people who
// want it to happen before.
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { storeAt } from '../registry/store/open.ts';
import { UPGRADE_TAKES } from '../registry/store/ports.ts';
import { CONFIG_FLAG, loadFor, messageOf, registryOf } from './configuration.ts';

export const migrate: Command = {
  name: 'migrate',
  summary: "bring the store's schema up to date",
  usage: ['tollgate migrate [--config FILE]', '', 'Makes the store where there is none. A start migrates too.'],
  flags: { ...CONFIG_FLAG },
  words: { min: 0, max: 0 },
  run: runMigrate,
};

async function runMigrate(args: Args, io: Io): Promise<ExitCode> {
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const registry = registryOf(loaded.config, io);
  if (!registry) return EXIT.usage;
  const store = await storeAt(registry.store);
  try {
    const applied = await store.migrate(({ from, to }) => {
      io.err(`from schema ${from} to ${to}; ${UPGRADE_TAKES}`);
    });
    io.out(applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`);
    return EXIT.fine;
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  }
}
