// A registry over HTTP: asks for the whole set with the tag of the one we have, and opens the stream of changes where
// there is one. Expects nothing beyond the interface: a bare array is enough. Nothing that comes back is believed
// before its size, its coding and its shape were checked, and a redirect is never followed with our key.
import { createHash } from 'node:crypto';
import type { Schedule } from '../../host/clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { FEED_LIMITS, readFeed, type FeedLimits } from './feed.ts';
import type { Found, FoundSet, OpenedEvents, RouteSource } from './source.ts';
import { createRegistryClient } from './registry-client.ts';

export type RemoteOptions = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  /** Named to the registry. */
  readonly version: string;
  readonly fetch: typeof globalThis.fetch;
  readonly schedule: Schedule;
  readonly limits?: Partial<RemoteLimits>;
};

export type RemoteLimits = FeedLimits & {
  /** Of the set, decompressed. */
  readonly bodyBytes: number;
  /** For the head of an answer, and between two pieces of its body. */
  readonly answerMs: number;
  /** For the whole set. */
  readonly totalMs: number;
  /** Without a byte on the event stream, heartbeats included. */
  readonly quietMs: number;
};

export const REMOTE_LIMITS: RemoteLimits = {
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

export function createRemote(options: RemoteOptions): RouteSource {
  const { schedule } = options;
  const limits = { ...REMOTE_LIMITS, ...options.limits };
  const http = createRegistryClient(options);

  const fetchSet = async (known: FoundSet | undefined, signal: AbortSignal): Promise<Found> => {
    const deadline = createDeadline(signal, limits.answerMs, schedule);
    const overall = schedule(limits.totalMs, deadline.expire);
    try {
      const etag = known?.etag;
      const headers = { Accept: 'application/json', ...(etag === undefined ? {} : { 'If-None-Match': etag }) };
      const response = await deadline.race(http.get(FEED, { headers, signal: deadline.signal }));
      if (response.status === 304 && etag !== undefined) return { kind: 'unchanged' };
      if (response.status !== 200) return refusalOf(response);
      const body = await readBody(response, limits, deadline);
      if (body === undefined) return invalid(`the answer is larger than ${limits.bodyBytes} bytes`);
      deadline.clear();
      const name = nameOf(response.headers);
      if (known !== undefined && body.digest === known.digest) {
        return isSameName(name, known) ? { kind: 'unchanged' } : { kind: 'set', set: { ...known, ...name } };
      }
      const feed = await readFeed(body.chunks, limits, known?.routes);
      if (!feed.ok) return invalid(feed.reason);
      return { kind: 'set', set: { ...name, digest: body.digest, routes: feed.routes } };
    } catch (error) {
      return unavailable(deadline.passed() ? LATE : reasonOf(error));
    } finally {
      overall();
      deadline.clear();
    }
  };

  const openEvents = async (lastEventId: string | undefined, signal: AbortSignal): Promise<OpenedEvents> => {
    const deadline = createDeadline(signal, limits.answerMs, schedule);
    try {
      const resume = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
      const headers = { Accept: 'text/event-stream', ...resume };
      const response = await deadline.race(http.get(EVENTS, { headers, signal: deadline.signal }));
      const type = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
      if (response.status === 200 && type === 'text/event-stream' && response.body !== null) {
        return { kind: 'open', chunks: watch(response.body, deadline, limits.quietMs) };
      }
      deadline.clear();
      discard(response);
      const passing = response.status === 429 || response.status >= 500 || isDenied(response.status);
      return passing
        ? { kind: 'unavailable', reason: `the registry answered ${response.status}` }
        : { kind: 'not_offered' };
    } catch (error) {
      deadline.clear();
      return { kind: 'unavailable', reason: deadline.passed() ? LATE : reasonOf(error) };
    }
  };

  return { fetchSet, openEvents };
}

type Body = { readonly chunks: readonly Uint8Array[]; readonly digest: string };

/** The whole body, or undefined where it is too large: then it is not read on. */
async function readBody(response: Response, limits: RemoteLimits, deadline: Deadline): Promise<Body | undefined> {
  const hash = createHash('sha256');
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body === null) return { chunks, digest: hash.digest('base64url') };
  for await (const chunk of deadline.read(response.body, limits.answerMs)) {
    size += chunk.length;
    if (size > limits.bodyBytes) return undefined;
    hash.update(chunk);
    chunks.push(chunk);
  }
  return { chunks, digest: hash.digest('base64url') };
}

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

function refusalOf(response: Response): Found {
  discard(response);
  const { status, headers } = response;
  if (isDenied(status)) {
    return { kind: 'unauthorized', reason: `the registry refuses sync.api_key (${status}); it needs the scope sdk` };
  }
  if (status >= 300 && status < 400) {
    return unavailable(`the registry redirects (${status}); write where it is into sync.registry_url`);
  }
  if (status === 404) return unavailable('the registry has no feed of routes (404); is sync.registry_url right?');
  const after = headers.get('retry-after');
  const seconds =
    after !== null && /^\d{1,9}$/.test(after) ? Math.min(Number(after), MAX_RETRY_AFTER_SECONDS) : undefined;
  return { kind: 'unavailable', reason: `the registry answered ${status}`, retryAfterMs: seconds && seconds * 1000 };
}

/** Lets go of the connection; what is left of the body is of no use. */
function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

function isDenied(status: number): boolean {
  return status === 401 || status === 403;
}

function invalid(reason: string): Found {
  return { kind: 'invalid', reason };
}

function unavailable(reason: string): Found {
  return { kind: 'unavailable', reason, retryAfterMs: undefined };
}

/** `fetch` hides what happened in the cause of its error. */
function reasonOf(error: unknown): string {
  let deepest: unknown = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (!(deepest instanceof Error)) return 'the registry could not be reached';
  const code = 'code' in deepest && typeof deepest.code === 'string' ? deepest.code : deepest.name;
  return `the registry could not be reached (${code})`;
}
