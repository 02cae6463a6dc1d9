// Fills a registry's store with the routes of the bench: `node bench/seed.ts ROOT FILE COUNT`. Writes through the store of
// the revision under ROOT, in one transaction, because 100,000 routes through the configuration or the API would take
// minutes and measure nothing. A process of its own, so that no other revision's modules are ever loaded beside it.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import type * as clockModule from '../src/host/clock.ts';
import type * as patternModule from '../src/domain/pattern.ts';
import type * as storeModule from '../src/registry/store/sqlite/store.ts';
import { makeRoutes } from './routes.ts';

const [root = '', file = '', count = '0'] = process.argv.slice(2);
const from = (name: string): string => pathToFileURL(path.join(root, 'src', name)).href;
const { openStore }: typeof storeModule = await import(
  from(
    existsSync(path.join(root, 'src/registry/store/sqlite'))
      ? 'registry/store/sqlite/store.ts'
      : 'registry/store/store.ts',
  )
);
const { parsePattern }: typeof patternModule = await import(from('domain/pattern.ts'));
const { createRandom }: typeof clockModule = await import(from('host/clock.ts'));

const store = openStore(file, { random: createRandom(), now: Date.now });
try {
  store.routes.batch(() => {
    for (const route of makeRoutes(Number(count))) {
      const parsed = parsePattern(route.pattern);
      if (!parsed.ok) throw new Error(`${route.pattern}: ${parsed.reason}`);
      store.routes.insert({ ...route, writtenBy: 'config' }, parsed.pattern.key);
    }
  });
} finally {
  store.close();
}
