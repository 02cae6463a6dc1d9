// One JSON call to a service that an operator named: a facilitator or a node. It is made once, follows no redirect, reads
// a bounded answer within one time limit that covers everything, and says of a failure whether a byte of the call may
// have left, because only then may another service be asked to move the same money. Never logs: URLs and headers of
// these services are secrets. What a payment waits for goes over connections of our own (post-json.ts).
import { readJson, type JsonLimits } from './bounded-json.ts';

export type Fetch = typeof globalThis.fetch;

export type JsonCall = {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON; undefined sends none. */
  readonly body: unknown;
  /** Ends the call, whatever it is doing. */
  readonly signal: AbortSignal;
  readonly maxBytes: number;
  readonly limits: JsonLimits;
};

export type JsonReply =
  /** `slow`: whoever asks next may have to wait, for a service that stalls, is overloaded or cannot be reached. */
  | { readonly kind: 'reply'; readonly status: number; readonly body: unknown; readonly slow: boolean }
  /**
   * `sent` false: it is certain that nothing of the call reached the service. `status`: of an answer that arrived whole and
   * holds no JSON.
   */
  | {
      readonly kind: 'failed';
      readonly why: string;
      readonly sent: boolean;
      readonly slow: boolean;
      readonly status?: number | undefined;
    };

export async function callJson(call: JsonCall, fetch: Fetch): Promise<JsonReply> {
  const { method, url, headers, body, signal, maxBytes, limits } = call;
  // Loaded with the first call: it brings the whole of fetch along, which most processes never use.
  const { default: ky } = await import('ky');
  let response: Response;
  try {
    response = await ky(url, {
      fetch: (input, init) => fetch(input, init),
      method,
      headers: { accept: 'application/json', ...headers },
      ...(body === undefined ? {} : { json: body }),
      signal,
      timeout: false,
      retry: 0,
      // A redirect would carry the operator's credentials, and the payment, to wherever it points.
      redirect: 'manual',
      throwHttpErrors: false,
    });
  } catch (error) {
    if (signal.aborted) return failed('it did not answer in time', { slow: true });
    return neverSent(error)
      ? failed('it cannot be reached', { sent: false, slow: true })
      : failed('the connection was lost');
  }
  const { status } = response;
  const bytes = await readBody(response, maxBytes);
  if (bytes === 'too_long') return failed(`status ${status} with more than ${maxBytes} bytes`);
  if (bytes === 'lost') {
    return signal.aborted
      ? failed('its answer did not end in time', { slow: true })
      : failed('the connection was lost');
  }
  return readReply(status, bytes, limits);
}

/** What an answer that arrived whole says. */
export function readReply(status: number, bytes: Uint8Array, limits: JsonLimits): JsonReply {
  if (status >= 300 && status < 400) return failed(`status ${status}: it redirects, which is not followed`);
  const json = readJson(bytes, limits);
  // Overload and gateways in front of a dead service: asking again soon does not help.
  const slow = status === 429 || status === 502 || status === 503 || status === 504;
  if (json.ok) return { kind: 'reply', status, body: json.value, slow };
  // What is JSON and more than we read may say anything.
  return failed(`status ${status}, and its answer ${json.why}`, { slow, ...(json.isJson ? {} : { status }) });
}

function failed(
  why: string,
  { sent = true, slow = false, status }: { sent?: boolean; slow?: boolean; status?: number } = {},
): JsonReply {
  return { kind: 'failed', why, sent, slow, status };
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array | 'too_long' | 'lost'> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    if (Number(response.headers.get('content-length') ?? 0) > maxBytes) {
      await response.body?.cancel();
      return 'too_long';
    }
    // Leaving the loop cancels the body.
    for await (const chunk of response.body ?? []) {
      if ((length += chunk.length) > maxBytes) return 'too_long';
      chunks.push(chunk);
    }
  } catch {
    return 'lost';
  }
  return Buffer.concat(chunks, length);
}

/** Failures of TLS that end the handshake, before a request could be written. */
const TLS =
  /^(?:ERR_TLS_CERT_ALTNAME_INVALID|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_SSL_(?:WRONG_VERSION|SSLV3_ALERT|TLSV1_ALERT))/;

/** Whether `error` can only come from before the first byte of a request: name resolution, connecting, TLS. */
function neverSent(error: unknown): boolean {
  for (let cause = error, depth = 0; depth < 6 && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(neverSent);
    const code = textOf(cause, 'code');
    const syscall = textOf(cause, 'syscall');
    // A code alone is not enough: EHOSTUNREACH and ETIMEDOUT also end connections that have carried bytes.
    if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
    if (code === 'UND_ERR_CONNECT_TIMEOUT' || TLS.test(code)) return true;
  }
  return false;
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
}
