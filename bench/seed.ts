// Fills a registry's store with the routes of the bench: `node bench/seed.ts ROOT FILE COUNT`. Writes through the store of
// the revision under ROOT, in one transaction, because 100,000 routes through the configuration or the API would take
// minutes and measure nothing. A process of its own, so that no other revision's modules are ever loaded beside it.
import type * as clockModule from '../src/host/clock.ts';
import type * as patternModule from '../src/domain/routing/pattern.ts';
import type { NewRoute } from '../src/registry/store/ports.ts';
import type * as storeModule from '../src/registry/store/sqlite/store.ts';
import { importFrom } from './modules.ts';
import { makeRoutes } from './routes.ts';

const [root = '', file = '', count = '0'] = process.argv.slice(2);
const { parsePattern } = (await importFrom(
  root,
  'domain/routing/pattern.ts',
  'domain/pattern.ts',
)) as typeof patternModule;
const { createRandom } = (await importFrom(root, 'host/clock.ts')) as typeof clockModule;

/** The store of a revision in which a write did not wait. */
type Waitless = {
  readonly routes: {
    readonly batch: (run: () => void) => void;
    readonly insert: (route: NewRoute, key: string) => unknown;
  };
  readonly close: () => void;
};

const routes = makeRoutes(Number(count)).map((route): { route: NewRoute; key: string } => {
  const parsed = parsePattern(route.pattern);
  if (!parsed.ok) throw new Error(`${route.pattern}: ${parsed.reason}`);
  return { route: { ...route, writtenBy: 'config', declared: null }, key: parsed.pattern.key };
});
const { openStore } = (await importFrom(
  root,
  'registry/store/sqlite/store.ts',
  'registry/store/store.ts',
)) as typeof storeModule;
const store = openStore(file, { random: createRandom(), ...{ now: Date.now } });
try {
  if ('batch' in store.routes) {
    const waitless = store as unknown as Waitless;
    waitless.routes.batch(() => routes.forEach(({ route, key }) => waitless.routes.insert(route, key)));
  } else {
    const writes = routes.map((each) => ({ kind: 'insert' as const, ...each }));
    await store.routes.write(writes, { maxRoutes: Infinity });
  }
} finally {
  store.close();
}
