// Notes in the store in which hour each API key was used last: one write for each key, hour and process, outside of the request
// that used it. A write that fails is tried again with the next use.
import type { Problem } from '../../domain/problem.ts';
import type { Log } from '../../host/log.ts';
import type { ApiKeyStore } from '../store/ports.ts';
import type { Principal } from './credentials.ts';

const HOUR_MS = 3_600_000;

type KeyUses = {
  /** Notes that a principal was let in, and hands on what it was given. */
  readonly saw: <T extends Principal | Problem>(found: T) => T;
};

/** Name of a stored key in the table of uses. */
export function storedHolder(id: string): string {
  return `store:${id}`;
}

/** Name of a key of the configuration in the table of uses. */
export function configuredHolder(name: string): string {
  return `configuration:${name}`;
}

export function createKeyUses(store: Pick<ApiKeyStore, 'use'>, now: () => number, log: Log): KeyUses {
  const written = new Map<string, number>();
  return {
    saw: (found) => {
      if (!('kind' in found) || found.kind !== 'api_key') return found;
      const holder = found.id === undefined ? configuredHolder(found.name) : storedHolder(found.id);
      const hour = Math.floor(now() / HOUR_MS) * HOUR_MS;
      if (written.get(holder) === hour) return found;
      written.set(holder, hour);
      store.use(holder, hour).catch((error: unknown) => {
        written.delete(holder);
        log.debug('the use of an API key was not noted', { holder, error });
      });
      return found;
    },
  };
}
