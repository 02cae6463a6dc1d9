// A gateway between clients that ask with a token each and a strict upstream that answers by the token: so that bytes
// which reach the wrong client, requests that nobody decided on, and connections that should not have been used again
// show. `check` holds at the end of every test, whatever the test was about.
import { expect } from 'vitest';
import { startSmallGateway, type SmallGateway, type SmallGatewayOptions } from './small-gateway.ts';
import { startStrictUpstream, type StrictRequest, type StrictUpstream } from './strict-upstream.ts';

/** What the upstream does with a request that was read whole. */
export type Plan = (request: StrictRequest) => void;

export type WireLab = {
  readonly upstream: StrictUpstream;
  readonly gateway: SmallGateway;
  /** A token of eight characters that nobody had before. */
  readonly token: () => string;
  readonly plan: (token: string, plan: Plan) => void;
  /** A request that the upstream may see twice: its connection closed before a byte of an answer. */
  readonly mayRepeat: (token: string) => void;
  readonly requestsOf: (token: string) => readonly StrictRequest[];
  /** Nothing wrong with any request, none too many, and none that was not decided on. */
  readonly check: () => void;
  readonly close: () => Promise<void>;
};

const TOKEN = /k\d{7}/;
const TOKENS = /k\d{7}/g;

export function answerWith(body: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** The tokens in `text` that are not `own`. */
export function foreignTokens(text: string, own: readonly string[]): readonly string[] {
  return (text.match(TOKENS) ?? []).filter((token) => !own.includes(token));
}

export async function startWireLab(options: Partial<SmallGatewayOptions> = {}): Promise<WireLab> {
  const plans = new Map<string, Plan>();
  const repeatable = new Set<string>();
  const byToken = new Map<string, StrictRequest[]>();
  const tokenOf = (request: StrictRequest): string => TOKEN.exec(request.target)?.[0] ?? 'no token';
  let made = 0;
  const upstream = await startStrictUpstream((request) => {
    const token = tokenOf(request);
    const plan = plans.get(token);
    if (plan === undefined) request.connection.socket.write(answerWith(request.method === 'HEAD' ? '' : token));
    else plan(request);
  });
  upstream.onHead((request) => {
    const token = tokenOf(request);
    const seen = byToken.get(token);
    if (seen === undefined) byToken.set(token, [request]);
    else seen.push(request);
  });
  const gateway = await startSmallGateway({
    upstream: upstream.url,
    timeouts: { connectMs: 2000, headersMs: 1500, idleMs: 1500 },
    ...options,
  });
  return {
    upstream,
    gateway,
    token: () => `k${String(++made).padStart(7, '0')}`,
    plan: (token, plan) => void plans.set(token, plan),
    mayRepeat: (token) => void repeatable.add(token),
    requestsOf: (token) => byToken.get(token) ?? [],
    check: () => {
      expect(upstream.violations).toEqual([]);
      let repeated = 0;
      for (const [token, requests] of byToken) {
        const most = repeatable.has(token) ? 2 : 1;
        expect(requests.length, `requests with ${token}`).toBeLessThanOrEqual(most);
        repeated += requests.length - 1;
      }
      expect(upstream.requests.length - repeated, 'requests seen and forwarded').toBe(gateway.forwards());
    },
    close: async () => {
      await gateway.close();
      await upstream.close();
    },
  };
}

/** The loop has polled its sockets in between: two writes with a turn in between are two reads. */
export async function turn(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

/** Runs `task` over `items`, `width` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  task: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items.values();
  const work = async (): Promise<void> => {
    for (const item of iterator) await task(item);
  };
  await Promise.all(Array.from({ length: width }, work));
}

/**
 * Where to cut `length` bytes in two: everywhere up to `everywhere`, and `sampled` places beyond. With TOLLGATE_WIRE=long
 * everywhere up to 4,096.
 */
export function cuts(length: number, everywhere: number, sampled: number): readonly number[] {
  const dense = Math.min(length - 1, LONG ? 4096 : everywhere);
  const places = new Set<number>();
  for (let at = 1; at <= dense; at++) places.add(at);
  const rest = Math.max(0, length - 1 - dense);
  for (let i = 1; i <= Math.min(sampled, rest); i++) places.add(dense + Math.max(1, Math.floor((i * rest) / sampled)));
  return [...places];
}

export const LONG = process.env['TOLLGATE_WIRE'] === 'long';
