// The watch for changes: tells when other processes may have written routes or API keys. A notification says so. Because
// one can be lost, both numbers are also read every half second, and as soon as the connection that heard was lost. The
// listener reads what has changed.
import type { Log } from '../../../host/log.ts';
import type { Head } from '../ports.ts';
import { readHead } from '../route-values.ts';
import { integer, type Row } from '../rows.ts';
import { ConnectionLost } from './connection.ts';
import type { Links } from './links.ts';

export type ChangeWatch = {
  /** Calls `hint` when the routes are no longer those of the head that was seen last; returns how to stop. */
  readonly routes: (hint: () => void) => () => void;
  readonly keys: (hint: () => void) => () => void;
  /** Calls `hear` with the row that holds them whenever it was read. */
  readonly settings: (hear: (row: Row) => void) => () => void;
  /** Takes note of a write of this process, which is no news. */
  readonly seen: (head: Head) => void;
  readonly close: () => void;
};

const EVERY_MS = 500;
/** Pause before a look that failed is repeated. */
const AGAIN_MS = 500;

export function createChangeWatch(
  { control, schema, pooler, onControl, timeoutMs }: Links,
  log: Log,
  pollMs = EVERY_MS,
): ChangeWatch {
  const routes = new Set<() => void>();
  const keys = new Set<() => void>();
  const settings = new Set<(row: Row) => void>();
  let head: string | undefined;
  let keysRevision: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let looking = false;
  let again = false;
  let closed = false;

  const look = async (): Promise<void> => {
    if (closed) return;
    again = true;
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    let failed = false;
    while (again) {
      again = false;
      failed = false;
      try {
        const { rows } = await control.use(performance.now() + timeoutMs, (session) =>
          session.query(
            {
              name: 'tollgate_heads',
              text: `SELECT revision, stamp, keys_revision, receivers_sha256, api_keys_sha256, webhooks_sha256 FROM ${schema}.meta`,
            },
            [],
          ),
        );
        const found = nameOf(readHead(rows[0]));
        const foundKeys = integer(rows[0] ?? {}, 'keys_revision');
        if (found !== head) for (const hint of routes) hint();
        if (foundKeys !== keysRevision) for (const hint of keys) hint();
        for (const hear of settings) hear(rows[0] ?? {});
        [head, keysRevision] = [found, foundKeys];
      } catch (error) {
        failed = true;
        // A store that is away is told of by what needs it.
        if (!(error instanceof ConnectionLost)) log.error('changes of other processes could not be read', { error });
      }
    }
    looking = false;
    if (!closed) start(failed ? AGAIN_MS : pollMs);
  };
  const start = (pauseMs: number): void => {
    if (pauseMs === Infinity) return;
    timer = setTimeout(() => void look(), pauseMs);
    timer.unref();
  };
  onControl(async (session, { onNotification, onLost }) => {
    if (pooler) return;
    onNotification(() => void look());
    await session.simple(`LISTEN ${schema}_changes`);
    // The connection is made anew by the look, which finds what nobody told of meanwhile.
    onLost(() => void look());
  });

  const listen = <T>(all: Set<T>, hint: T): (() => void) => {
    if (timer === undefined && !looking) start(pollMs);
    all.add(hint);
    return () => void all.delete(hint);
  };
  return {
    routes: (hint) => {
      // The watch was not told of what was read before it listened.
      head = undefined;
      return listen(routes, hint);
    },
    keys: (hint) => listen(keys, hint),
    settings: (hear) => listen(settings, hear),
    seen: (written) => void (head = nameOf(written)),
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function nameOf({ revision, stamp }: Head): string {
  return `${revision} ${stamp}`;
}
