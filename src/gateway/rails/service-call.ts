// Makes one JSON call over ky to a service that an operator named: a facilitator or a node. It follows no redirect,
// because that would carry the signed payment and the operator's credentials elsewhere. It reads a bounded response,
// and one deadline covers everything. A failure says whether a byte may have been sent. Only if none was sent may
// another facilitator be asked to move the same money. It never logs: URLs and headers of these services are secrets.
import { isUtf8 } from 'node:buffer';

export type Fetch = typeof globalThis.fetch;

export type ServiceCall = {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON; undefined sends none. */
  readonly body: string | undefined;
  /** Time for everything: both attempts, the pause between them and the response's last byte. */
  readonly timeoutMs: number;
  /** Asked when the connection broke: true makes the call once more. Absent: it is made once. */
  readonly mayRepeat?: () => boolean | Promise<boolean>;
  /** Ends the call earlier. */
  readonly signal?: AbortSignal | undefined;
  readonly maxBytes: number;
  readonly limits: JsonLimits;
};

export type ReplyHeaders = Pick<Headers, 'get'>;

export type JsonReply =
  /**
   * The service replied. `slow`: the next caller may have to wait as long, for one that stalls, is overloaded or cannot
   * be reached.
   */
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly body: unknown;
      readonly slow: boolean;
      readonly headers?: ReplyHeaders | undefined;
    }
  /**
   * Why the call failed. `sent` false: nothing of it reached the service. `status` is that of a response that arrived
   * whole and holds no JSON. `why` is a phrase for the log, without any of what was sent or answered.
   */
  | {
      readonly kind: 'failed';
      readonly why: string;
      readonly sent: boolean;
      readonly slow: boolean;
      readonly status?: number | undefined;
      readonly headers?: ReplyHeaders | undefined;
    };

/** Headers that the client writes, whatever is configured: they frame the call. */
const FRAMING =
  /^(?:host|connection|keep-alive|content-length|content-type|transfer-encoding|accept-encoding|expect|upgrade)$/i;
/** Phrases for the log of what a caller may want to tell apart. */
export const LATE = 'it did not answer in time';
export const LOST = 'the connection was lost';
const PAUSE_MS = 100;
const NO_BYTES = new Uint8Array(0);
/** Loads ky at the first call: it brings in the whole of fetch, 14 MB, which most processes never use. */
const load = () => import('ky');
let loaded: ReturnType<typeof load> | undefined;

/** Throws if a configured header cannot be written; any other failure is a reply. */
export async function callService(call: ServiceCall, fetch: Fetch): Promise<JsonReply> {
  const { method, url, body, timeoutMs, mayRepeat, signal, maxBytes, limits } = call;
  const headers = writeHeaders(call);
  const { default: ky, isNetworkError, isTimeoutError } = await (loaded ??= load());
  const attempt: { reading?: BodyReading } = {};
  const stop = (): void => attempt.reading?.stop();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const { status, headers: answered } = await ky(url, {
      // The body is read in here, so that the deadline covers it. Through a Request of ky's it would be copied once more.
      fetch: async (request) => {
        const ended = request instanceof Request ? request.signal : null;
        const response = await fetch(url, { method, headers, body: body ?? null, redirect: 'manual', signal: ended });
        attempt.reading = readBody(response, maxBytes);
        await attempt.reading.content;
        return response;
      },
      method,
      ...(signal === undefined ? {} : { signal }),
      throwHttpErrors: false,
      timeout: false,
      totalTimeout: timeoutMs,
      retry:
        mayRepeat === undefined
          ? 0
          : {
              limit: 1,
              methods: [method],
              delay: () => PAUSE_MS,
              // A kept connection may have died unnoticed. A service that cannot be reached is away.
              shouldRetry: ({ error }) => isNetworkError(error) && !neverSent(error) && mayRepeat(),
            },
    });
    const content = (await attempt.reading?.content) ?? NO_BYTES;
    return content === 'too_long'
      ? failed(`status ${status} with more than ${maxBytes} bytes`)
      : { ...readReply(status, content, limits), headers: answered };
  } catch (error) {
    stop();
    if (isTimeoutError(error) || signal?.aborted === true) return failed(LATE, { slow: true });
    return neverSent(error) ? failed('it cannot be reached', { sent: false, slow: true }) : failed(LOST);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** Joins `name` to the path of `url`, without its query and fragment. */
export function urlBelow(url: string, name: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, '')}/${name}`;
}

function writeHeaders({ headers, body }: ServiceCall): Headers {
  const written = new Headers({
    accept: 'application/json',
    // An encoded response could grow past its limit while it is decoded.
    'accept-encoding': 'identity',
    'user-agent': 'tollgate',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  });
  for (const [name, value] of Object.entries(headers)) if (!FRAMING.test(name)) written.set(name, value);
  return written;
}

/** Reads a response that arrived whole. */
function readReply(status: number, bytes: Uint8Array, limits: JsonLimits): JsonReply {
  const json = readJson(bytes, limits);
  if (status >= 300 && status < 400 && !json.ok) return failed(`status ${status}: it redirects, which is not followed`);
  // Overload and gateways in front of a dead service: asking again soon does not help.
  const slow = status === 429 || status === 502 || status === 503 || status === 504;
  if (json.ok) return { kind: 'reply', status, body: json.value, slow };
  // JSON beyond our limits may say anything: its status proves nothing.
  return failed(`status ${status}, and its answer ${json.why}`, { slow, ...(json.isJson ? {} : { status }) });
}

function failed(
  why: string,
  { sent = true, slow = false, status }: { sent?: boolean; slow?: boolean; status?: number } = {},
): JsonReply {
  return { kind: 'failed', why, sent, slow, status };
}

type BodyReading = {
  readonly content: Promise<Uint8Array | 'too_long'>;
  /** Ends it. `fetch` holds its signal weakly: after a garbage collection an abort may not reach a body that is read. */
  readonly stop: () => void;
};

function readBody({ body, headers }: Response, maxBytes: number): BodyReading {
  const reader = body?.getReader();
  let stopped = false;
  const stop = (): void => {
    stopped = true;
    reader?.cancel().catch(() => undefined);
  };
  const read = async (): Promise<Uint8Array | 'too_long'> => {
    if (reader === undefined) return NO_BYTES;
    const chunks: Uint8Array[] = [];
    let length = Number(headers.get('content-length') ?? 0) > maxBytes ? Infinity : 0;
    while (length <= maxBytes) {
      const { done, value } = await reader.read();
      if (stopped) throw new Error('stopped');
      const [only = NO_BYTES] = chunks;
      if (done) return chunks.length <= 1 ? only : Buffer.concat(chunks, length);
      length += value.length;
      chunks.push(value);
    }
    stop();
    return 'too_long';
  };
  return { content: read(), stop };
}

/** Failures that end the TLS handshake, before a request can be written. */
const TLS =
  /^(?:ERR_TLS_CERT_ALTNAME_INVALID|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_.*_ALERT_(?:HANDSHAKE_FAILURE|PROTOCOL_VERSION)|ERR_SSL_TLSV1_(?:ALERT_)?UNRECOGNIZED_NAME)/;

/** Whether `error` can only come from before the first byte of a request: name resolution, connecting, TLS. */
function neverSent(error: unknown): boolean {
  for (let cause = error, depth = 0; depth < 6 && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(neverSent);
    const code = textOf(cause, 'code');
    const syscall = textOf(cause, 'syscall');
    // A code alone is not enough: EHOSTUNREACH and ETIMEDOUT also end connections that have carried bytes.
    if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
    if (code === 'UND_ERR_CONNECT_TIMEOUT' || TLS.test(code)) return true;
    // A close in the handshake, and a port that fetch never connects to, have no code of their own.
    if (cause.message.includes('before secure TLS connection was established') || cause.message === 'bad port') {
      return true;
    }
  }
  return false;
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
}

// Reads JSON of another party. A value that nests deeper, or is longer or larger than its reader expects, is refused as
// a whole. So are member names with a meaning of their own in JavaScript (`__proto__`). So code may copy, walk and log
// the result safely. Schemas check what it means.

type JsonLimits = {
  /** Objects and arrays inside each other; a bare value has depth 0. */
  readonly depth: number;
  /** Members and items, all together. */
  readonly nodes: number;
  /** UTF-16 units of one string or member name. */
  readonly string: number;
};

type BoundedJson =
  | { readonly ok: true; readonly value: unknown }
  /** The body cannot be used. `isJson`: it is JSON, and exceeds the limits. */
  | { readonly ok: false; readonly why: string; readonly isJson: boolean };

const NOT_JSON: BoundedJson = { ok: false, why: 'is not JSON in UTF-8', isJson: false };
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);

/** The value that `bytes` write, or `why` not: a phrase without any of their content. */
export function readJson(bytes: Uint8Array, limits: JsonLimits): BoundedJson {
  let value: unknown;
  try {
    if (!isUtf8(bytes)) return NOT_JSON;
    // A byte order mark stays, and is no JSON.
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    return NOT_JSON;
  }
  const why = findExcess(value, limits);
  return why === undefined ? { ok: true, value } : { ok: false, why, isJson: true };
}

/** Stops at the first excess, so that a bomb costs no more than its limit; and goes no deeper than the limit allows. */
function findExcess(root: unknown, { depth, nodes, string }: JsonLimits): string | undefined {
  let seen = 0;
  const walk = (value: unknown, above: number): string | undefined => {
    if (typeof value === 'string') {
      return value.length > string ? `holds a string longer than ${string} characters` : undefined;
    }
    if (typeof value !== 'object' || value === null) return undefined;
    if (above >= depth) return `nests deeper than ${depth}`;
    if (Array.isArray(value)) {
      if ((seen += value.length) > nodes) return `holds more than ${nodes} values`;
      for (const item of value) {
        const why = walk(item, above + 1);
        if (why !== undefined) return why;
      }
      return undefined;
    }
    for (const name of Object.keys(value)) {
      if (RESERVED.has(name)) return `holds a member named ${name}`;
      if (name.length > string) return `holds a name longer than ${string} characters`;
      if (++seen > nodes) return `holds more than ${nodes} values`;
      const why = walk(Reflect.get(value, name), above + 1);
      if (why !== undefined) return why;
    }
    return undefined;
  };
  return walk(root, 0);
}
