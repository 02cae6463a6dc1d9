// JSON-RPC calls to one node. A node is asked for facts about money, so an answer counts only if it is exactly what the
// caller's schema expects. "The node says no" stays apart from "not known". Nothing of a node's text leaves this file, and
// its URL, which often holds a key, is never logged.
import type { z } from 'zod';
import { type Fetch, callService } from './service-call.ts';

export type RpcResult<T> =
  | { readonly kind: 'result'; readonly value: T }
  /** The node answered with an error: it would not, or could not, do this. */
  | { readonly kind: 'error'; readonly code: number }
  | { readonly kind: 'unavailable'; readonly detail: string };

export type Rpc = <T>(
  method: string,
  params: readonly unknown[],
  schema: z.ZodType<T>,
  options?: RpcOptions,
) => Promise<RpcResult<T>>;

/**
 * Options of a call. `signal` ends it before its own time is over. `mayRepeat` is asked when its connection broke; by
 * default it may.
 */
type RpcOptions = { readonly signal?: AbortSignal; readonly mayRepeat?: () => Promise<boolean> };

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;
const LIMITS = { depth: 12, nodes: 200_000, string: 1024 * 1024 } as const;

export function createRpc(url: string, fetch: Fetch): Rpc {
  let lastId = 0;
  return async (method, params, schema, { signal, mayRepeat = () => true } = {}) => {
    const unavailable = (why: string) => ({ kind: 'unavailable', detail: `${method}: ${why}` }) as const;
    const id = ++lastId;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const reply = await callService(
      {
        ...{ method: 'POST', url, headers: {}, body, mayRepeat, signal },
        ...{ timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, limits: LIMITS },
      },
      fetch,
    );
    if (reply.kind === 'failed') return unavailable(reply.why);
    if (reply.slow) return unavailable(`status ${reply.status}`);
    const { body: answer } = reply;
    if (typeof answer !== 'object' || answer === null) return unavailable('not a JSON-RPC answer');
    if (Reflect.get(answer, 'id') !== id) return unavailable('an answer to another call');
    const error: unknown = Reflect.get(answer, 'error');
    if (error !== undefined && error !== null) {
      const code: unknown = typeof error === 'object' ? Reflect.get(error, 'code') : undefined;
      return { kind: 'error', code: typeof code === 'number' ? code : 0 };
    }
    if (reply.status !== 200) return unavailable(`status ${reply.status}`);
    const { success, data } = schema.safeParse(Reflect.get(answer, 'result'));
    return success ? { kind: 'result', value: data } : unavailable('an answer of another form');
  };
}
