// PostgreSQL as a kind of store: a schema of its own in a database that any number of processes share. Its lock is none: who may
// do what is decided in it, row by row.
import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../../../host/log.ts';
import { createRandom } from '../../../host/clock.ts';
import type { Store } from '../ports.ts';
import { text } from '../rows.ts';
import { createApiKeys } from './api-keys.ts';
import { openPostgresCharges, type PostgresChargesOptions } from './charges.ts';
import { messageOf, Refused, type Session } from './connection.ts';
import { openLinks, type Links, type PostgresPlace } from './links.ts';
import { isCurrent, lacksRights, migrateSchema, readVersion } from './migrate.ts';
import { createRoutes } from './routes.ts';
import { createWatch } from './watch.ts';

/** How often it is told that the database cannot be used yet. */
const TOLD_MS = 30_000;
const PAUSE_MS = 1000;

export type PostgresStoreOptions = PostgresChargesOptions & { readonly changesKept?: number };

/** Migrated; waits for the database for as long as it takes. Rejects if waiting does not help. */
export async function openPostgres(
  place: PostgresPlace,
  { now, log }: { readonly now: () => number; readonly log: Log },
  { changesKept, ...options }: PostgresStoreOptions = {},
): Promise<Store> {
  const links = openLinks(place, now, log);
  const random = createRandom();
  try {
    await untilUsable(links, log, (session) => upToDate(session, place.schema));
    const { rows } = await links.control.use(performance.now() + place.timeoutMs, (session) =>
      session.simple(`SELECT registry_id FROM ${place.schema}.meta`),
    );
    const watch = createWatch(links, log);
    const charges = openPostgresCharges(links, options);
    const kept = changesKept === undefined ? {} : { changesKept };
    return {
      routes: createRoutes({ links, watch, random, registryId: text(rows[0] ?? {}, 'registry_id'), ...kept }),
      apiKeys: createApiKeys(links, watch),
      charges,
      stats: async () => undefined,
      close: async () => {
        watch.close();
        await charges.close();
      },
    };
  } catch (error) {
    await links.close();
    throw error;
  }
}

async function upToDate(session: Session, schema: string): Promise<void> {
  try {
    if (!isCurrent(await readVersion(session, schema))) await migrateSchema(session, schema, createRandom());
  } catch (error) {
    if (lacksRights(error))
      throw new Error(`this user may not make or read the schema ${schema}: run \`tollgate migrate\` as one who may`, {
        cause: error,
      });
    throw error;
  }
}

async function untilUsable(links: Links, log: Log, work: (session: Session) => Promise<void>): Promise<void> {
  let toldAt = -Infinity;
  for (;;) {
    try {
      return await links.control.use(performance.now() + links.timeoutMs, work);
    } catch (error) {
      const refused = refusalIn(error);
      if (refused !== undefined) throw refused;
      if (performance.now() - toldAt > TOLD_MS) {
        toldAt = performance.now();
        log.error('the store cannot be used yet', { error: messageOf(error) });
      }
      await wait(PAUSE_MS);
    }
  }
}

function refusalIn(error: unknown): Refused | undefined {
  if (error instanceof Refused) return error;
  return error instanceof Error && error.cause !== undefined ? refusalIn(error.cause) : undefined;
}
