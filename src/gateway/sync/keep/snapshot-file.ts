// The snapshot file holds the last good set, so that a sidecar that starts while its registry is away has routes.
// Signed with `charges.secrets` over every byte: who can write the folder cannot make a price. The file is whole or not
// there, and one that was changed, belongs to another registry, or is too old is not read. Writing it never delays a
// request, and takes a tenth of the time at most. So of a large set that keeps changing not every state is written.
import { createHash, createHmac, timingSafeEqual, type Hash } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import { z } from 'zod';
import type { Clock, Schedule } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import { makePrivateFolder } from '../../../host/private-folder.ts';
import { feedPieces } from '../../routes/feed-writer.ts';
import { readFeed } from '../follow/feed-reader.ts';
import type { FoundSet } from '../follow/route-source.ts';

export type SnapshotFileOptions = {
  readonly file: string;
  readonly registryUrl: string;
  /** Secrets, at least one: the first signs, all verify. */
  readonly secrets: readonly string[];
  /** Age up to which a file is used, in milliseconds; 0: nothing is kept. */
  readonly maxAgeMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly log: Log;
};

/** Set in the file. `savedAt` is when the registry last confirmed it, milliseconds since the epoch. */
export type StoredSet = { readonly set: FoundSet; readonly savedAt: number };

export type SnapshotFile = {
  /** Reads the file; undefined if it cannot be used, and the log says why. Never rejects. */
  readonly read: () => Promise<StoredSet | undefined>;
  /** Writes `set` soon if it is new, or if what stands there has lived a tenth of its life. */
  readonly keep: (set: FoundSet, confirmedAt: number) => void;
  /** Writes what is to be written now; resolves once nothing is being written. */
  readonly settled: () => Promise<void>;
};

const VERSION = 1;
const PURPOSE = 'tollgate route snapshot v1';
const MAX_BYTES = 512 * 1024 * 1024;
/** A clock that was set back a little is no forgery. */
const MAX_AHEAD_MS = 5 * 60_000;
const LIVES = 10;
const HASHED_AT_ONCE = 1024 * 1024;
/** Rest after a write, as a multiple of what the write took. */
const REST = 9;
/** The file is one JSON object: the head's members, `routes`, and the signature of everything before it. */
const ROUTES = ',"routes":';
const TAIL = /^,"hmac":"([A-Za-z0-9_-]{43})"\}\n$/;
const TAIL_BYTES = ',"hmac":"'.length + 43 + '"}\n'.length;

const headSchema = z.object({
  version: z.literal(VERSION),
  registry_url: z.string(),
  saved_at: z.number(),
  registry_id: z.string().nullable(),
  revision: z.number().nullable(),
  etag: z.string().nullable(),
  digest: z.string(),
});
type Head = z.infer<typeof headSchema>;

export function createSnapshotFile(options: SnapshotFileOptions): SnapshotFile {
  const { file, maxAgeMs, clock, schedule, log } = options;
  const keys = options.secrets.map((secret) => createHmac('sha256', secret).update(PURPOSE).digest());
  const [signer] = keys;
  if (signer === undefined)
    throw new Error('charges.secrets is empty: the snapshot file needs a secret to be signed with');
  /** Set that stands in the file or is on its way there. */
  let kept: StoredSet | undefined;
  let waiting: StoredSet | undefined;
  let working: Promise<void> | undefined;
  let lastError: string | undefined;
  let restsUntil = -Infinity;
  let isLast = false;
  /** Ends the rest before the next write. */
  let hurry = (): void => undefined;

  const rest = (): Promise<void> =>
    new Promise((resolve) => {
      const cancel = schedule(restsUntil - clock.monotonic(), resolve);
      hurry = () => {
        cancel();
        resolve();
      };
    });
  const work = async (): Promise<void> => {
    while (waiting !== undefined) {
      if (!isLast && clock.monotonic() < restsUntil) await rest();
      const startedAt = clock.monotonic();
      const next = waiting;
      waiting = undefined;
      try {
        await write(next, signer, options);
        lastError = undefined;
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown';
        if (reason !== lastError) {
          log.warn('the snapshot file cannot be written; a restart while the registry is away would have no routes', {
            file,
            reason,
          });
        }
        lastError = reason;
        if (kept === next) kept = undefined;
      }
      restsUntil = clock.monotonic() + (clock.monotonic() - startedAt) * REST;
    }
    working = undefined;
  };

  return {
    read: async () => {
      if (maxAgeMs === 0) return undefined;
      const result = await read(file, keys, options.registryUrl).catch((error: unknown) => reasonOf(error));
      if (result === undefined) return undefined;
      const reason = typeof result === 'string' ? result : ageProblem(result.savedAt, clock.now(), maxAgeMs);
      if (reason === undefined && typeof result !== 'string') {
        kept = result;
        return result;
      }
      log.warn('the snapshot file is not used', { file, reason });
      return undefined;
    },
    keep: (set, confirmedAt) => {
      if (maxAgeMs === 0) return;
      if (kept?.set === set && confirmedAt - kept.savedAt < maxAgeMs / LIVES) return;
      kept = waiting = { set, savedAt: confirmedAt };
      working ??= work();
    },
    settled: async () => {
      isLast = true;
      hurry();
      await working;
      isLast = false;
    },
  };
}

function ageProblem(savedAt: number, now: number, maxAgeMs: number): string | undefined {
  const ageMs = now - savedAt;
  if (ageMs < -MAX_AHEAD_MS) return 'it comes from the future: is the clock of this machine right?';
  return ageMs > maxAgeMs ? `it is ${Math.round(ageMs / 1000)} s old, older than sync.snapshot_max_age` : undefined;
}

/** Reads the set; a sentence says why it cannot be used, and undefined that there is no file. */
async function read(
  file: string,
  keys: readonly Buffer[],
  registryUrl: string,
): Promise<StoredSet | string | undefined> {
  const bytes = await readBounded(file);
  if (!Buffer.isBuffer(bytes)) return bytes;
  const signedBytes = bytes.length - TAIL_BYTES;
  const hmac = signedBytes > 0 ? TAIL.exec(bytes.toString('latin1', signedBytes))?.[1] : undefined;
  if (hmac === undefined) return 'it is not whole';
  const signed = bytes.subarray(0, signedBytes);
  const presented = Buffer.from(hmac, 'base64url');
  const digest = await digestOf(signed);
  if (!keys.some((key) => timingSafeEqual(sign(key, digest), presented))) {
    return 'its signature does not verify: it was changed, or charges.secrets were';
  }
  // The rest is our own writing. No string of the head can hold the marker: its quotes would be escaped.
  const mark = signed.indexOf(ROUTES);
  const head = headSchema.safeParse(parse(`${signed.toString('utf8', 0, mark)}}`));
  if (!head.success) return 'another version of Tollgate wrote it';
  const { registry_url, registry_id, revision, etag, saved_at } = head.data;
  if (registry_url !== registryUrl) return `it is of another registry, ${registry_url}`;
  const feed = await readFeed([signed.subarray(mark + ROUTES.length)]);
  if (!feed.ok) return `its routes are not valid: ${feed.reason}`;
  const name = { registryId: registry_id ?? undefined, revision: revision ?? undefined, etag: etag ?? undefined };
  return { set: { ...name, digest: head.data.digest, routes: feed.routes }, savedAt: saved_at };
}

async function readBounded(file: string): Promise<Buffer | string | undefined> {
  try {
    const { size } = await stat(file);
    return size > MAX_BYTES ? `it is larger than ${MAX_BYTES} bytes` : await readFile(file);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

async function write(
  { set, savedAt }: StoredSet,
  key: Buffer,
  { file, registryUrl }: SnapshotFileOptions,
): Promise<void> {
  const head: Head = {
    version: VERSION,
    registry_url: registryUrl,
    saved_at: savedAt,
    registry_id: set.registryId ?? null,
    revision: set.revision ?? null,
    etag: set.etag ?? null,
    digest: set.digest,
  };
  makePrivateFolder(dirname(file));
  // The draft has one name, so that what a crash left behind does not pile up; it is made anew, so that no other file
  // is written to.
  const draft = `${file}.draft`;
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    const append = async (text: string): Promise<void> => {
      const bytes = Buffer.from(text);
      hash.update(bytes);
      await handle.writeFile(bytes);
    };
    await append(JSON.stringify(head).slice(0, -1) + ROUTES);
    for (const piece of feedPieces(set.routes)) await append(piece);
    await handle.writeFile(`,"hmac":"${sign(key, hash.digest()).toString('base64url')}"}\n`);
    await handle.sync();
  } catch (error) {
    await handle.close();
    await rm(draft, { force: true });
    throw error;
  }
  await handle.close();
  await rename(draft, file);
  await syncFolder(dirname(file));
}

/** Writes the folder to the disk, so that no crash forgets the file's new name. Some file systems cannot. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

async function digestOf(bytes: Buffer): Promise<Buffer> {
  const hash: Hash = createHash('sha256');
  for (let start = 0; start < bytes.length; start += HASHED_AT_ONCE) {
    hash.update(bytes.subarray(start, start + HASHED_AT_ONCE));
    await breathe();
  }
  return hash.digest();
}

function sign(key: Buffer, digest: Buffer): Buffer {
  return createHmac('sha256', key).update(digest).digest();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it cannot be read';
}
