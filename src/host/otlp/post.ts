// Posts a batch of spans to a collector over HTTP: one connection, no redirect, a bounded answer, one deadline. Which
// answers are worth another try is OTLP's rule (specification 1, "OTLP/HTTP Response"): 429, 502, 503, 504 and none at all.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Schedule } from '../clock.ts';
import { http } from '../node-http.ts';
import type { Post, PostResult } from './exporter.ts';

type PostOptions = {
  /** URL of the collector, its path included. */
  readonly url: string;
  /** Headers that the operator wrote, credentials among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly userAgent: string;
  readonly schedule: Schedule;
  /** The time, for a Retry-After that is a date. */
  readonly now: () => number;
  readonly timeoutMs?: number;
};

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export type PostClient = { readonly post: Post; readonly close: () => void };

export function createPost(options: PostOptions): PostClient {
  const { headers, userAgent, schedule, now, timeoutMs = TIMEOUT_MS } = options;
  const url = new URL(options.url);
  const isTls = url.protocol === 'https:';
  const agent = isTls ? new HttpsAgent({ keepAlive: true }) : new http.Agent({ keepAlive: true });
  const request = isTls ? httpsRequest : http.request;
  const own = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'user-agent': userAgent };

  const post: Post = (body, signal) =>
    new Promise((resolve) => {
      const end = (result: PostResult): void => {
        cancel();
        signal.removeEventListener('abort', stop);
        resolve(result);
      };
      const lost = (why: string): void => {
        end({ kind: 'again', waitMs: undefined, why });
        sent.destroy();
      };
      const stop = (): void => lost('it was stopped');
      const cancel = schedule(timeoutMs, () => lost('the collector did not answer in time'));
      const sent: ClientRequest = request(url, {
        agent,
        method: 'POST',
        headers: { ...headers, ...own, 'content-length': String(body.length) },
      });
      sent.on('error', (error: NodeJS.ErrnoException) => lost(`the collector cannot be reached (${error.code ?? ''})`));
      sent.on('response', (response) => {
        readText(response).then(
          (text) => end(judge(response, text, now())),
          () => lost('the answer broke off'),
        );
      });
      signal.addEventListener('abort', stop, { once: true });
      if (signal.aborted) stop();
      else sent.end(body);
    });
  return { post, close: () => agent.destroy() };
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    if (!(chunk instanceof Buffer)) continue;
    length += chunk.length;
    if (length > MAX_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function judge({ statusCode = 0, headers }: IncomingMessage, text: string, nowMs: number): PostResult {
  if (statusCode >= 200 && statusCode < 300) return { kind: 'taken', rejected: rejectedIn(text) };
  const why = `the collector answered ${statusCode}`;
  if (!AGAIN.has(statusCode)) return { kind: 'refused', why };
  return { kind: 'again', waitMs: readRetryAfter(headers['retry-after'], nowMs), why };
}

/** Milliseconds that a Retry-After says (RFC 9110 section 10.2.3); undefined if it says nothing that can be read. */
function readRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const trimmed = value.trim();
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed) * 1000;
  const at = Date.parse(trimmed);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Spans that a collector says it did not take, though it took the rest. */
function rejectedIn(text: string): number {
  try {
    const answer: unknown = JSON.parse(text);
    const partial: unknown =
      typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'partialSuccess') : null;
    const rejected =
      typeof partial === 'object' && partial !== null ? Number(Reflect.get(partial, 'rejectedSpans')) : 0;
    return Number.isInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    return 0;
  }
}
