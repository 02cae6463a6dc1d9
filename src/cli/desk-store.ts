// The desk of a configured registry as commands beside it use it: its store, opened for a moment, and where it is served.
import { formatListen } from '../config/addresses.ts';
import type { RegistryConfig } from '../config/config.ts';
import { createRandom } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { makeDeskLink } from '../registry/desk/desk-links.ts';
import type { DeskRole, DeskStore } from '../registry/store/desk-ports.ts';
import { storeAt } from '../registry/store/store-kinds.ts';

type DeskOwner = Pick<RegistryConfig, 'store' | 'listen' | 'desk'>;

/** Origin under which the desk of a registry is opened from this machine. */
function deskOriginOf({ desk, listen }: DeskOwner): string {
  return desk?.publicUrl ?? `http://${formatListen(listen)}`;
}

/** Rejects with a sentence if the store cannot be used. */
export async function withDeskStore<T>(
  registry: DeskOwner,
  log: Log,
  use: (desk: DeskStore) => Promise<T>,
): Promise<T> {
  const place = await storeAt(registry.store);
  const store = await place.open({ random: createRandom(), now: Date.now, log, as: 'command' });
  try {
    return await use(store.desk);
  } finally {
    await store.close();
  }
}

/** A one-time link; undefined if too many wait to be opened. */
export async function makeLocalLink(
  registry: DeskOwner,
  log: Log,
  who: { readonly subject: string; readonly role: DeskRole },
): Promise<string | undefined> {
  const link = await withDeskStore(registry, log, (store) =>
    makeDeskLink({ store, random: createRandom(), now: Date.now }, deskOriginOf(registry), who),
  );
  return link === 'full' ? undefined : link.url;
}
