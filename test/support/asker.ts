// A proxy that asks a decision listener, as far as it is bytes: the question of each dialect as that proxy sends it, and what came
// back.
import { openRaw, headerOf, type RawAnswer } from './raw-client.ts';

export const SECRET = 'a-secret-of-the-proxy';
export const DIALECTS = ['nginx', 'nginx_accel', 'caddy', 'traefik', 'envoy', 'haproxy'] as const;
export type Dialect = (typeof DIALECTS)[number];

export type AskedQuestion = {
  readonly method?: string;
  readonly target: string;
  /** Further headers, and those that replace the usual ones; undefined takes one away. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly requestId?: string;
  readonly path?: string;
};

/** The bytes of a question. */
export function questionOf(dialect: Dialect, asked: AskedQuestion): string {
  const { method = 'GET', target, headers = {}, requestId, path = '/_tg' } = asked;
  const original = dialect === 'nginx' || dialect === 'nginx_accel';
  const own: Record<string, string | undefined> = {
    host: dialect === 'envoy' ? 'api.example' : 'tollgate',
    'tollgate-secret': SECRET,
    ...(dialect === 'envoy'
      ? {}
      : original
        ? { 'x-original-method': method, 'x-original-uri': target }
        : { 'x-forwarded-method': method, 'x-forwarded-uri': target }),
    ...(dialect === 'envoy' ? {} : { 'x-forwarded-host': 'api.example' }),
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '203.0.113.9',
    ...(requestId === undefined ? {} : { [dialect === 'envoy' ? 'x-request-id' : 'tollgate-request-id']: requestId }),
    ...headers,
  };
  const line = dialect === 'envoy' ? `${method} ${path === '/_tg' ? '/ask' : ''}${target}` : `GET ${path}`;
  const lines = Object.entries(own).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return `${line} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Sends bytes on a connection of their own; resolves with the answer. */
export async function send(port: number, bytes: string, head = false): Promise<RawAnswer> {
  const client = await openRaw(port);
  try {
    client.send(bytes);
    return await client.answer(head);
  } finally {
    client.close();
  }
}

/** An answer as the client of the proxy sees it, whatever the dialect carries it in. */
export type Decided = {
  /** The status of the sub-request's answer. */
  readonly raw: number;
  readonly status: number;
  readonly body: string;
  readonly header: (name: string) => string | undefined;
  readonly names: readonly string[];
  readonly allows: boolean;
};

export function decidedOf(dialect: Dialect, answer: RawAnswer): Decided {
  const header = (name: string): string | undefined => headerOf(answer, name);
  const inHeaders = dialect === 'nginx' && answer.status === 403 && header('tollgate-status') !== undefined;
  const carried = Buffer.from(header('tollgate-body') ?? '', 'latin1').toString();
  return {
    raw: answer.status,
    status: inHeaders ? Number(header('tollgate-status')) : answer.status,
    body: inHeaders ? carried : answer.body.toString(),
    header,
    names: answer.headers.map(([name]) => name),
    allows: answer.status === 200 && header('tollgate-decision') === 'allow',
  };
}

export async function ask(port: number, dialect: Dialect, question: AskedQuestion): Promise<Decided> {
  const isHead = dialect === 'envoy' && question.method === 'HEAD';
  return decidedOf(dialect, await send(port, questionOf(dialect, question), isHead));
}
