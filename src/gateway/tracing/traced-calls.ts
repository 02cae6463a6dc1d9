// Calls to services of others, each with a span of kind CLIENT: facilitators and nodes over `fetch`, the ledger of a
// registry over our own client. A span lasts until the last byte of the answer. Nothing is added to what is sent.
import type { JsonCall } from '../../http/json-call.ts';
import type { Fetch } from '../rails/service-call.ts';
import type { CallScope } from './call-scope.ts';
import { aboutCall, type CallSpan } from './request-span.ts';

/** A part of a URL's path this long may be a key, as of a node; a shorter one is a name. */
const KEY_IN_PATH = 12;

function shownPath(pathname: string): string {
  return pathname
    .split('/')
    .map((part) => (part.length >= KEY_IN_PATH ? 'REDACTED' : part))
    .join('/');
}

/** Traces `fetch`. `named`: what a call at this path is for. */
export function traceFetch(fetch: Fetch, scope: CallScope, named: (pathname: string) => string): Fetch {
  return async (input, init) => {
    const method = init?.method ?? 'GET';
    if (scope.span() === undefined || typeof input !== 'string') return fetch(input, init);
    const url = new URL(input);
    const attributes = aboutCall(method, url, shownPath(url.pathname));
    const span = scope.begin({ kind: 'client', name: `${method} ${named(url.pathname)}`, attributes });
    if (span === undefined) return fetch(input, init);
    try {
      return endWithBody(await fetch(input, init), span);
    } catch (error) {
      span.end({ error: faultOf(error) });
      throw error;
    }
  };
}

/** A response like `response` that ends `span` with its last byte. */
function endWithBody(response: Response, span: CallSpan): Response {
  const { status, headers, body } = response;
  if (body === null) {
    span.end({ status });
    return response;
  }
  const reader = body.getReader();
  const read = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        span.end({ status });
        controller.close();
      } catch (error) {
        span.end({ status, error: faultOf(error) });
        controller.error(error);
      }
    },
    cancel: async (reason) => {
      span.end({ status, error: 'cancelled' });
      await reader.cancel(reason);
    },
  });
  return new Response(read, { status, headers });
}

/** One word for what went wrong: nothing of it is a service's. */
function faultOf(error: unknown): string {
  for (let cause = error, depth = 0; depth < 4 && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause.name === 'AbortError' || cause.name === 'TimeoutError') return 'timeout';
    const code: unknown = Reflect.get(cause, 'code');
    if (typeof code === 'string' && /^[A-Z_]{3,40}$/.test(code)) return code;
  }
  return 'failed';
}

/** Traces calls of the ledger of `registry`. */
export function traceLedgerCalls(call: JsonCall, scope: CallScope, registry: URL): JsonCall {
  return async (request) => {
    if (scope.span() === undefined) return call(request);
    const [path = '/'] = request.target.split('?', 1);
    const attributes = aboutCall(request.method, registry, shownPath(path));
    const span = scope.begin({ kind: 'client', name: `${request.method} ledger`, attributes });
    const response = await call(request);
    span?.end(response.kind === 'failed' ? { error: 'failed' } : { status: response.status });
    return response;
  };
}
