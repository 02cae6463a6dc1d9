// A registry over HTTP. It is asked which set it has, or for the whole set with the tag of ours, and then for its
// stream of changes. Each call names the revision we have, so that no replica answers with an older one. The interface
// is enough: a bare array will do. An answer is believed after its size, its coding and its shape were checked. No
// redirect is followed with our key.
import { createHash } from 'node:crypto';
import type { Schedule } from '../../../host/clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { FEED_LIMITS, readFeed, type FeedLimits } from './feed-reader.ts';
import type { FetchResult, FoundSet, OpenedEvents, RouteSource, SetRequest } from './route-source.ts';
import { createRegistryClient } from './registry-client.ts';

type RegistrySourceOptions = {
  /** URL of the registry, without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  /** The version of Tollgate that User-Agent names. */
  readonly version: string;
  /** The name by which the registry counts its sidecars. */
  readonly instance?: string;
  readonly fetch: typeof globalThis.fetch;
  readonly schedule: Schedule;
  readonly limits?: Partial<RegistrySourceLimits>;
};

export type RegistrySourceLimits = FeedLimits & {
  /** Limit of the set in bytes, decompressed. */
  readonly bodyBytes: number;
  /** Longest wait for the head of an answer, and between two pieces of its body. */
  readonly answerMs: number;
  /** Longest time that the whole set may take. */
  readonly totalMs: number;
  /** Longest silence on the event stream, which has heartbeats. */
  readonly quietMs: number;
};

const SOURCE_LIMITS: RegistrySourceLimits = {
  ...FEED_LIMITS,
  bodyBytes: 128 * 1024 * 1024,
  answerMs: 10_000,
  totalMs: 120_000,
  quietMs: 45_000,
};

const FEED = 'v1/protected-routes/routes';
const EVENTS = 'v1/protected-routes/events';
const LATE = 'the registry did not answer in time';
const MAX_RETRY_AFTER_SECONDS = 300;

export function createRegistrySource(options: RegistrySourceOptions): RouteSource {
  const { schedule } = options;
  const limits = { ...SOURCE_LIMITS, ...options.limits };
  const http = createRegistryClient(options);

  const fetchSet = async ({ known, want }: SetRequest, signal: AbortSignal): Promise<FetchResult> => {
    const deadline = createDeadline(signal, limits.answerMs, schedule);
    const overall = schedule(limits.totalMs, deadline.expire);
    try {
      const tag = want === 'name' ? '*' : want === 'anew' ? undefined : known?.etag;
      const headers = { Accept: 'application/json', ...revisionHeader(known?.revision), ...tagHeader(tag) };
      const response = await deadline.race(http.get(FEED, { headers, signal: deadline.signal }));
      if (response.status === 304 && want === 'name') {
        const { registryId, revision } = nameOf(response.headers);
        return { kind: 'named', registryId, revision };
      }
      if (response.status === 304 && tag !== undefined) return { kind: 'unchanged' };
      if (response.status !== 200) return refusalOf(response);
      return await readSet(response, want === 'anew' ? undefined : known, limits, deadline);
    } catch (error) {
      return unavailable(deadline.passed() ? LATE : reasonOf(error));
    } finally {
      overall();
      deadline.clear();
    }
  };

  const openEvents: RouteSource['openEvents'] = async ({ registryId, revision }, signal) => {
    const deadline = createDeadline(signal, limits.answerMs, schedule);
    try {
      const headers = { Accept: 'text/event-stream', 'Last-Event-ID': String(revision), ...revisionHeader(revision) };
      const response = await deadline.race(http.get(EVENTS, { headers, signal: deadline.signal }));
      const { body } = response;
      const name = nameOf(response.headers).registryId;
      if (response.status === 200 && isEventStream(response.headers) && body !== null && name === registryId)
        return { kind: 'open', chunks: watch(body, deadline, limits.quietMs) };
      deadline.clear();
      discard(response);
      if (response.status === 200 && isEventStream(response.headers) && name !== undefined) return { kind: 'stranger' };
      return noStreamOf(response);
    } catch (error) {
      deadline.clear();
      return { kind: 'unavailable', reason: deadline.passed() ? LATE : reasonOf(error), isThere: false };
    }
  };

  return { fetchSet, openEvents };
}

async function readSet(
  response: Response,
  known: FoundSet | undefined,
  limits: RegistrySourceLimits,
  deadline: Deadline,
): Promise<FetchResult> {
  const name = nameOf(response.headers);
  const body = openBody(response, limits, deadline);
  // Another tag says that the bytes are others. They are read as they come, because 35 MB of them at a time are reason
  // enough for the garbage collector to go through everything. Without a tag they have to be seen whole first.
  const isNew = known === undefined || (name.etag !== undefined && name.etag !== known.etag);
  const held = isNew ? undefined : await hold(body.chunks);
  if (known !== undefined && held !== undefined && !body.isTooLarge() && body.digest() === known.digest) {
    return isSameName(name, known) ? { kind: 'unchanged' } : { kind: 'set', set: { ...known, ...name } };
  }
  const feed = await readFeed(held === undefined ? body.chunks : handOver(held), limits, known?.routes);
  if (body.isTooLarge()) return invalid(`the answer is larger than ${limits.bodyBytes} bytes`);
  if (!feed.ok) return invalid(feed.reason);
  const digest = body.digest();
  return { kind: 'set', set: { ...name, digest, routes: digest === known?.digest ? known.routes : feed.routes } };
}

type Body = {
  /** Chunks of the body, to be read once; they end early if the body is too large. */
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly isTooLarge: () => boolean;
  /** Digest of the chunks that were read; asked for when they all were. */
  readonly digest: () => string;
};

function openBody(response: Response, limits: RegistrySourceLimits, deadline: Deadline): Body {
  const hash = createHash('sha256');
  let size = 0;
  let digest: string | undefined;
  async function* read(): Body['chunks'] {
    if (response.body === null) return;
    for await (const chunk of deadline.read(response.body, limits.answerMs)) {
      size += chunk.length;
      if (size > limits.bodyBytes) return;
      hash.update(chunk);
      yield chunk;
    }
  }
  return {
    chunks: read(),
    isTooLarge: () => size > limits.bodyBytes,
    digest: () => (digest ??= hash.digest('base64url')),
  };
}

async function hold(chunks: Body['chunks']): Promise<Uint8Array[]> {
  const held: Uint8Array[] = [];
  for await (const chunk of chunks) held.push(chunk);
  return held;
}

/** Hands each chunk over once, and holds it no longer: the text of a large set is as large as its routes. */
function* handOver(chunks: Uint8Array[]): Generator<Uint8Array, void, undefined> {
  for (const [index, chunk] of chunks.entries()) {
    chunks[index] = NO_BYTES;
    yield chunk;
  }
}

const NO_BYTES = new Uint8Array(0);

async function* watch(
  body: ReadableStream<Uint8Array>,
  deadline: Deadline,
  quietMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* deadline.read(body, quietMs);
  } finally {
    deadline.clear();
  }
}

type Name = Omit<FoundSet, 'routes' | 'digest'>;

function isSameName(a: Name, b: Name): boolean {
  return a.registryId === b.registryId && a.revision === b.revision && a.etag === b.etag;
}

function nameOf(headers: Headers): Name {
  const id = headers.get('tollgate-registry');
  const revision = headers.get('tollgate-revision');
  const etag = headers.get('etag');
  return {
    registryId: id !== null && /^[\x21-\x7e]{1,128}$/.test(id) ? id : undefined,
    revision: revision !== null && /^\d{1,15}$/.test(revision) ? Number(revision) : undefined,
    etag: etag !== null && /^(W\/)?"[\x21\x23-\x7e]{0,256}"$/.test(etag) ? etag : undefined,
  };
}

function refusalOf(response: Response): FetchResult {
  discard(response);
  const { status, headers } = response;
  if (isDenied(status)) {
    return { kind: 'unauthorized', reason: `the registry refuses sync.api_key (${status}); it needs the scope sdk` };
  }
  if (status >= 300 && status < 400) {
    return unavailable(`the registry redirects (${status}); write where it is into sync.registry_url`);
  }
  if (status === 404) return unavailable('the registry has no feed of routes (404); is sync.registry_url right?');
  return { kind: 'unavailable', reason: `the registry answered ${status}`, retryAfterMs: retryAfterOf(headers) };
}

function noStreamOf({ status, headers }: Response): OpenedEvents {
  const reason = `the registry answered ${status}`;
  if (status >= 500 || isDenied(status)) return { kind: 'unavailable', reason, isThere: true };
  if (status === 429) return { kind: 'refused', reason, retryAfterMs: retryAfterOf(headers) };
  return { kind: 'not_offered' };
}

function isEventStream(headers: Headers): boolean {
  return headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() === 'text/event-stream';
}

function retryAfterOf(headers: Headers): number | undefined {
  const after = headers.get('retry-after');
  return after !== null && /^\d{1,9}$/.test(after)
    ? Math.min(Number(after), MAX_RETRY_AFTER_SECONDS) * 1000
    : undefined;
}

function revisionHeader(revision: number | undefined): Record<string, string> {
  return revision === undefined ? {} : { 'Tollgate-Revision': String(revision) };
}

function tagHeader(tag: string | undefined): Record<string, string> {
  return tag === undefined ? {} : { 'If-None-Match': tag };
}

/** Lets go of the connection; what is left of the body is of no use. */
function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

function isDenied(status: number): boolean {
  return status === 401 || status === 403;
}

function invalid(reason: string): FetchResult {
  return { kind: 'invalid', reason };
}

function unavailable(reason: string): FetchResult {
  return { kind: 'unavailable', reason, retryAfterMs: undefined };
}

/** Finds the reason of an error: `fetch` hides what happened in its cause. */
function reasonOf(error: unknown): string {
  let deepest: unknown = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (!(deepest instanceof Error)) return 'the registry could not be reached';
  const code = 'code' in deepest && typeof deepest.code === 'string' ? deepest.code : deepest.name;
  return `the registry could not be reached (${code})`;
}
