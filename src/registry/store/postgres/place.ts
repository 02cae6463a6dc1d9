// PostgreSQL as a kind of store: a schema of its own in a database that any number of processes share. It needs no lock
// of a process: the database decides row by row which of them may write. Every connection looks at the schema before it
// is used, and makes it if it may.
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { setTimeout as wait } from 'node:timers/promises';
import type { PostgresSettings } from '../../../domain/store-settings.ts';
import { createLog } from '../../../host/log.ts';
import { createRandom } from '../../../host/clock.ts';
import type { ChargesOptions, Store, StorePlace } from '../ports.ts';
import { text } from '../rows.ts';
import { createApiKeys } from './api-keys.ts';
import { createAttentionStore } from './attention-store.ts';
import { createAudit } from './audit-store.ts';
import { chargeGrants } from './charge-grants.ts';
import { openPostgresCharges, type PostgresChargesOptions } from './charge-store.ts';
import { createCommonSettings } from './common-settings.ts';
import { messageOf, PostgresRefusal, type Session } from './connection.ts';
import { openCopyTarget } from './copy-target.ts';
import { createDeskStore } from './desk-store.ts';
import { diagnose } from './diagnosis.ts';
import { openLinks, type Links, type PostgresPlace } from './links.ts';
import { isCurrent, lacksRights, migrateSchema, readVersion } from './migrations.ts';
import { createRoutes } from './route-store.ts';
import { createChangeWatch } from './change-watch.ts';

const TOLD_MS = 30_000;
const PAUSE_MS = 1000;

export function postgresPlace(settings: PostgresSettings): StorePlace {
  const place = placeOf(settings);
  return {
    isShared: true,
    // Whether anything is in it only it can say.
    exists: () => true,
    lock: () => ({ release: () => undefined }),
    migrate: () => migrate(place),
    isMigrated: () => once(place, async (session) => isCurrent(await readVersion(session, place.schema))),
    grants: (user) => chargeGrants(place.schema, user),
    examine: (use) => diagnose(place, use, (work) => once(place, work)),
    readRoutes: () => readRoutes(place),
    open: (options) => openPostgres(place, options, options.as === 'server' ? { waits: options.waits ?? NOTHING } : {}),
    openCharges: (options) => openPostgresCharges(openUpToDate(place, options), options),
    openTarget: () => openCopyTarget(place),
    stats: async () => undefined,
  };
}

function placeOf({ host, port, user, database, password, pooler, tls, ...rest }: PostgresSettings): PostgresPlace {
  const { schema, connections, timeoutMs } = rest;
  return {
    address: { host, port, user, database, pooler, password: () => passwordOf(password), tls: () => tlsOf(tls) },
    ...{ schema, connections, timeoutMs },
  };
}

/** Password as it is now. */
function passwordOf(password: PostgresSettings['password']): string | undefined {
  if (password === undefined || 'value' in password) return password?.value;
  return readFileSync(password.file, 'utf8').replace(/\r?\n$/, '');
}

function tlsOf({ mode, caFile }: PostgresSettings['tls']): ConnectionOptions | false {
  if (mode === 'off') return false;
  return { rejectUnauthorized: mode === 'verify', ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }) };
}

export type PostgresStoreOptions = PostgresChargesOptions & {
  readonly changesKept?: number;
  /** Waits for the database for as long as it takes, where waiting may help, and tells why; left out, it does not wait. */
  readonly waits?: (because: string) => void;
  /** Milliseconds between two lines of its log that say that it cannot be used yet. */
  readonly tellMs?: number;
  /** Pause between two looks for changes that nothing told of; Infinity: there are none. */
  readonly pollMs?: number;
};

type OpenerPart = Pick<ChargesOptions, 'now' | 'log' | 'observe'>;

export async function openPostgres(
  place: PostgresPlace,
  by: OpenerPart,
  { changesKept, waits, tellMs = TOLD_MS, pollMs, ...options }: PostgresStoreOptions = {},
): Promise<Store> {
  const { log } = by;
  const links = openUpToDate(place, by);
  // The watch comes before the first connection: what is to listen must be known when it is made.
  const watch = createChangeWatch(links, log, pollMs);
  try {
    const registryId = await untilUsable(links, waits, tellMs, async (session) => {
      const { rows } = await session.simple(`SELECT registry_id FROM ${place.schema}.meta`);
      return text(rows[0] ?? {}, 'registry_id');
    });
    const charges = openPostgresCharges(links, options);
    const kept = changesKept === undefined ? {} : { changesKept };
    return {
      isShared: true,
      routes: createRoutes({ links, watch, random: links.random, registryId, ...kept }),
      apiKeys: createApiKeys(links, watch),
      desk: createDeskStore(links),
      audit: createAudit(links),
      attention: createAttentionStore(links),
      share: createCommonSettings(links, watch),
      charges,
      stats: async () => undefined,
      close: async () => {
        watch.close();
        await charges.close();
      },
    };
  } catch (error) {
    watch.close();
    await links.close();
    throw error;
  }
}

function openUpToDate(place: PostgresPlace, { now, log, observe }: OpenerPart): Links {
  return openLinks(place, {
    now,
    log,
    random: createRandom(),
    observe,
    prepare: (session) => upToDate(session, place.schema),
  });
}

async function migrate(place: PostgresPlace): Promise<readonly number[]> {
  return once(place, (session) => migrateSchema(session, place.schema, createRandom()));
}

async function readRoutes(place: PostgresPlace): ReturnType<StorePlace['readRoutes']> {
  const isMade = await once(place, async (session) => (await readVersion(session, place.schema)) > 0);
  if (!isMade) return [];
  const links = openLinks(place, { now: Date.now, log: QUIET, random: createRandom(), prepare: async () => undefined });
  try {
    const watch = {
      routes: () => () => undefined,
      keys: () => () => undefined,
      settings: () => () => undefined,
      seen: () => undefined,
      close: () => undefined,
    };
    const store = createRoutes({ links, watch, random: links.random, registryId: '' });
    return (await store.load()).routes;
  } finally {
    await links.close();
  }
}

async function once<T>(place: PostgresPlace, work: (session: Session) => Promise<T>): Promise<T> {
  const links = openLinks(place, { now: Date.now, log: QUIET, random: createRandom(), prepare: async () => undefined });
  try {
    return await links.control.use(performance.now() + place.timeoutMs, work);
  } catch (error) {
    throw lacksRights(error) ? new Error(`this user may not make the schema ${place.schema}`, { cause: error }) : error;
  } finally {
    await links.close();
  }
}

const NOTHING = (): void => undefined;
const QUIET = createLog('error', () => undefined, Date.now);

async function upToDate(session: Session, schema: string): Promise<void> {
  try {
    if (!isCurrent(await readVersion(session, schema))) await migrateSchema(session, schema, createRandom());
  } catch (error) {
    if (!lacksRights(error)) throw error;
    const message = `this user may not make or read the schema ${schema}: run \`tollgate migrate\` as one who may`;
    throw new Error(message, { cause: error });
  }
}

async function untilUsable<T>(
  { control, timeoutMs, log }: Links,
  waits: PostgresStoreOptions['waits'],
  tellMs: number,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  let toldAt = -Infinity;
  for (;;) {
    try {
      return await control.use(performance.now() + timeoutMs, work);
    } catch (error) {
      const refused = refusalIn(error);
      if (refused !== undefined || waits === undefined) throw refused ?? error;
      waits(messageOf(error));
      if (performance.now() - toldAt > tellMs) {
        toldAt = performance.now();
        log.error('the store cannot be used yet', { error: messageOf(error) });
      }
      await wait(PAUSE_MS);
    }
  }
}

function refusalIn(error: unknown): PostgresRefusal | undefined {
  if (error instanceof PostgresRefusal) return error;
  return error instanceof Error && error.cause !== undefined ? refusalIn(error.cause) : undefined;
}
