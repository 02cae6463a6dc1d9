// Tells how long calls of the database took, and how they ended, as their callers saw it: waiting for a connection
// included.
import type { ObserveStore, StoreOperation, StoreResult } from '../ports.ts';
import { ConnectionLost, type Link } from './connection.ts';

/** A link that works as `link` does and tells how long each call over it took, as `operation`. */
export function timedLink(link: Link, operation: StoreOperation, { call }: ObserveStore): Link {
  return {
    ...link,
    use: async (deadline, work) => {
      const since = performance.now();
      let sent = false;
      const tell = (result: StoreResult): void => call(operation, result, (performance.now() - since) / 1000);
      try {
        const done = await link.use(deadline, (session) => {
          sent = true;
          return work(session);
        });
        tell('ok');
        return done;
      } catch (error) {
        if (!sent) tell('failed');
        else tell(error instanceof ConnectionLost ? 'unknown' : 'refused');
        throw error;
      }
    },
  };
}

/** Tells how long `claim` took, over all batches that it went out with. */
export async function timedClaim<T>(
  { call }: ObserveStore,
  claim: () => Promise<T>,
  isWritten: (result: T) => boolean,
): Promise<T> {
  const since = performance.now();
  let ended: StoreResult = 'failed';
  try {
    const result = await claim();
    ended = isWritten(result) ? 'ok' : 'refused';
    return result;
  } finally {
    call('claim', ended, (performance.now() - since) / 1000);
  }
}
