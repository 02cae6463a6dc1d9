// A store by its URL, as a server opens it.
import { createRandom } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { storeAt } from '../../src/registry/store/store-kinds.ts';
import { settingsOf } from '../postgres/store.ts';

export async function openStoreAt(url: string): Promise<Store> {
  const place = await storeAt(
    url.startsWith('postgres:') ? settingsOf(url) : { kind: 'sqlite', name: url, file: url.replace('sqlite:', '') },
  );
  const log = createLog('error', () => undefined, Date.now);
  return place.open({ random: createRandom(), now: Date.now, log, as: 'server' });
}
