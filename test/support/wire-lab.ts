// A gateway between clients that ask with a token each and a strict upstream that answers by the token: so that bytes
// which reach the wrong client, requests that nobody decided on, and connections that should not have been used again
// show. `check` holds at the end of every test, whatever the test was about. The upstream alone can stand behind a
// Tollgate of another process.
import { expect } from 'vitest';
import { startSmallGateway, type SmallGateway, type SmallGatewayOptions } from './small-gateway.ts';
import { startStrictUpstream, type StrictRequest, type StrictUpstream } from './strict-upstream.ts';

/** What the upstream does with a request that was read whole. */
export type Plan = (request: StrictRequest) => void;

export type TokenUpstream = {
  readonly upstream: StrictUpstream;
  readonly plan: (token: string, plan: Plan) => void;
  /** A request that the upstream may see twice: its connection closed before a byte of an answer. */
  readonly mayRepeat: (token: string) => void;
  readonly requestsOf: (token: string) => readonly StrictRequest[];
  /** Requests that are there for the first time. */
  readonly total: () => number;
  /** Nothing wrong with any request, and none twice that may not be. */
  readonly check: () => void;
};

export type WireLab = TokenUpstream & {
  readonly gateway: SmallGateway;
  /** A token of eight characters that nobody had before. */
  readonly token: () => string;
  readonly close: () => Promise<void>;
};

const TOKEN = /k\d{7}/;
const TOKENS = /k\d{7}/g;
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

export function answerWith(body: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** The tokens in `text` that are not `own`. */
export function foreignTokens(text: string, own: readonly string[]): readonly string[] {
  return (text.match(TOKENS) ?? []).filter((token) => !own.includes(token));
}

export function tokenIn(target: string): string {
  return TOKEN.exec(target)?.[0] ?? 'no token';
}

export function createTokens(): () => string {
  let made = 0;
  return () => `k${String(++made).padStart(7, '0')}`;
}

/** Answers every request with its token, and a handshake with 101, where there is no plan for the token. */
export async function startTokenUpstream(): Promise<TokenUpstream> {
  const plans = new Map<string, Plan>();
  const repeatable = new Set<string>();
  const byToken = new Map<string, StrictRequest[]>();
  const upstream = await startStrictUpstream((request) => {
    const token = tokenIn(request.target);
    const plan = plans.get(token);
    if (plan !== undefined) {
      plan(request);
    } else if (request.headers.some(([name]) => name.toLowerCase() === 'upgrade')) {
      request.connection.tunnel(() => undefined);
      request.connection.socket.write(SWITCH);
    } else {
      request.connection.socket.write(answerWith(request.method === 'HEAD' ? '' : token));
    }
  });
  upstream.onHead((request) => {
    const token = tokenIn(request.target);
    const seen = byToken.get(token);
    if (seen === undefined) byToken.set(token, [request]);
    else seen.push(request);
  });
  const most = (token: string): number => (repeatable.has(token) ? 2 : 1);
  return {
    upstream,
    plan: (token, plan) => void plans.set(token, plan),
    mayRepeat: (token) => void repeatable.add(token),
    requestsOf: (token) => byToken.get(token) ?? [],
    total: () =>
      [...byToken].reduce((sum, [token, { length }]) => sum + length - (most(token) === 2 ? length - 1 : 0), 0),
    check: () => {
      expect(upstream.violations).toEqual([]);
      for (const [token, requests] of byToken)
        expect(
          requests.length,
          requests.map(({ head, connection }) => `${connection.number}: ${head}`).join(''),
        ).toBeLessThanOrEqual(most(token));
    },
  };
}

export async function startWireLab(options: Partial<SmallGatewayOptions> = {}): Promise<WireLab> {
  const tokens = await startTokenUpstream();
  const { upstream } = tokens;
  const gateway = await startSmallGateway({
    upstream: upstream.url,
    timeouts: { connectMs: 2000, headersMs: 1500, idleMs: 1500 },
    ...options,
  });
  return {
    ...tokens,
    gateway,
    token: createTokens(),
    check: () => {
      tokens.check();
      expect(tokens.total(), 'requests seen and forwarded').toBe(gateway.forwards());
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
 * everywhere up to 1,024.
 */
export function cuts(length: number, everywhere: number, sampled: number): readonly number[] {
  const dense = Math.min(length - 1, LONG ? 1024 : everywhere);
  const places = new Set<number>();
  for (let at = 1; at <= dense; at++) places.add(at);
  const rest = Math.max(0, length - 1 - dense);
  for (let i = 1; i <= Math.min(sampled, rest); i++) places.add(dense + Math.max(1, Math.floor((i * rest) / sampled)));
  return [...places];
}

export const LONG = process.env['TOLLGATE_WIRE'] === 'long';
/** For a test that does as much as it was told to. */
export const LONG_MS = LONG ? 300_000 : undefined;
