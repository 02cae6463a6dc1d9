// Calls to one Ethereum JSON-RPC node. A node is asked for facts about money, so an answer that is not exactly what the
// caller's schema expects is no answer, and "the node says no" stays apart from "nobody knows". Nothing of a node's text
// leaves this file, and its URL, which often holds a key, is never logged.
import { z } from 'zod';
import type { Schedule } from '../../host/clock.ts';
import { callJson, type Fetch } from './http-json.ts';

export type RpcResult<T> =
  | { readonly kind: 'result'; readonly value: T }
  /** The node answered with an error: it would not, or could not, do this. */
  | { readonly kind: 'error'; readonly code: number }
  | { readonly kind: 'unavailable'; readonly detail: string };

/** `signal` ends the call before its own time is over. */
export type Rpc = <T>(
  method: string,
  params: readonly unknown[],
  schema: z.ZodType<T>,
  signal?: AbortSignal,
) => Promise<RpcResult<T>>;

/** How nodes write numbers, words of 32 bytes and addresses. */
export const quantity = z
  .string()
  .regex(/^0x(?:0|[1-9a-f][0-9a-f]{0,15})$/i)
  .transform(BigInt);
export const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .toLowerCase();
export const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/i)
  .toLowerCase();

export type RpcDeps = { readonly fetch: Fetch; readonly schedule: Schedule };

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;
const LIMITS = { depth: 12, nodes: 200_000, string: 1024 * 1024 } as const;

export function createRpc(url: string, { fetch, schedule }: RpcDeps): Rpc {
  let id = 0;
  return async (method, params, schema, signal) => {
    const unavailable = (why: string) => ({ kind: 'unavailable', detail: `${method}: ${why}` }) as const;
    const deadline = new AbortController();
    const cancel = schedule(TIMEOUT_MS, () => deadline.abort());
    const body = { jsonrpc: '2.0', id: ++id, method, params };
    const call = {
      method: 'POST',
      url,
      headers: {},
      body,
      signal: signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]),
      maxBytes: MAX_BYTES,
      limits: LIMITS,
    } as const;
    const reply = await callJson(call, fetch).finally(cancel);
    if (reply.kind === 'failed') return unavailable(reply.why);
    if (reply.slow) return unavailable(`status ${reply.status}`);
    const { body: answer } = reply;
    if (typeof answer !== 'object' || answer === null) return unavailable('not a JSON-RPC answer');
    if (Reflect.get(answer, 'id') !== body.id) return unavailable('an answer to another call');
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
