// `tollgate routes delete ID`: deletes a route from a store that several processes share. There no start deletes a
// route because its file lacks it: another process's file may still declare it.
import { declaredOf } from '../compose/declared-routes.ts';
import type { LoadedConfig } from '../config/config.ts';
import { suggest } from '../domain/suggest.ts';
import type { Route } from '../domain/routing/route.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { routeName } from '../domain/routing/pattern.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import type { Store } from '../registry/store/ports.ts';
import type { Args } from './args.ts';
import { commandCause } from './command-cause.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor, registryOf, talk } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';

const ACTIONS = ['delete'] as const;

export const routes: Command = {
  name: 'routes',
  summary: 'delete a route that no file declares any more',
  usage: [
    'tollgate routes delete ID [--config FILE]',
    '',
    'On a PostgreSQL store, also while it is served: in force at every process at once. Exit code 1 if no route has the id.',
    'On a SQLite store a route goes when it is taken out of the file, or on the dashboard.',
  ],
  examples: ['tollgate routes delete 7b6ff2a8-3c34-4c55-9d8e-2f3b1c0a9d11 --config postgres.yaml'],
  actions: ACTIONS,
  flags: CONFIG_FLAG,
  words: { min: 2, max: 2 },
  run: runRoutes,
};

async function runRoutes(args: Args, io: Io): Promise<ExitCode> {
  const [action = '', id = ''] = args.words;
  if (!ACTIONS.some((known) => known === action)) {
    const meant = suggest(action, ACTIONS);
    io.err(`routes: is followed by delete${meant === undefined ? '' : `; did you mean ${meant}?`}`);
    return EXIT.usage;
  }
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const registry = registryOf(loaded.config, io);
  if (!registry) return EXIT.usage;
  const place = await storeAt(registry.store);
  if (!place.isShared) {
    io.err('The store is a SQLite file: take the route out of `routes` and reload, or delete it on the dashboard.');
    return EXIT.usage;
  }
  let store: Store | undefined;
  try {
    store = await place.open({ random: createRandom(), now: Date.now, log: talk(io), as: 'command' });
    return await deleteRoute(store, id, loaded.config, io);
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  } finally {
    await store?.close();
  }
}

async function deleteRoute(store: Store, id: string, config: LoadedConfig, io: Io): Promise<ExitCode> {
  const [{ openRoutes }, { TOKEN_SUBJECT }] = await Promise.all([
    import('../registry/routes/registry-routes.ts'),
    import('../registry/auth/dashboard-tokens.ts'),
  ]);
  const opened = await openRoutes({
    ...{
      store: store.routes,
      isShared: store.isShared,
      maxRoutes: Infinity,
      clock: systemClock,
      random: createRandom(),
      log: talk(io),
    },
    // The registry makes no routes here, so these rules stay empty.
    ...{ receivers: () => new Map(), unknownReceiver: () => 'refuse', methods: () => new Set() },
  });
  try {
    const by = { writer: `dashboard:${TOKEN_SUBJECT}`, cause: commandCause() } as const;
    const removed = await opened.remove(id, by, () => true);
    if (removed.kind !== 'removed') {
      io.err('no route has this id; the log and the dashboard name those that there are');
      return EXIT.no;
    }
    const { method, pattern, amount, currency } = removed.route;
    io.out(`deleted ${method} ${pattern}, ${amount} ${currency}`);
    if (isDeclared(config, removed.route))
      io.err('the configuration declares it, so the next start makes it again; take it out of `routes`');
    return EXIT.fine;
  } finally {
    opened.close();
  }
}

function isDeclared(config: LoadedConfig, { method, pattern }: Pick<Route, 'method' | 'pattern'>): boolean {
  const name = routeName(method, pattern);
  return config.routes.map(declaredOf).some((declared) => routeName(declared.method, declared.route_pattern) === name);
}
