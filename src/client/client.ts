// `tollgate/client`: calls of a registry's endpoints, typed by its OpenAPI document. For browsers and for Node from version 20 on;
// it needs nothing but fetch. An outcome is a value: what was answered, or a problem (RFC 9457). If nobody answers, or the caller
// gives it up, a call rejects as fetch does.
import { openEvents, type EventOf } from './events.ts';
import { readPages, type ListPage } from './pages.ts';
import { problemOf, type ClientProblem } from './problem.ts';
import type { Operations, Schemas } from './schema.ts';
import { writeTarget, type Query } from './target.ts';

export { TollgateError, type ClientProblem } from './problem.ts';
export type { Operations, Schemas };

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
type Path = keyof Operations;
/** Paths that have this method and are no stream. */
type PathsOf<M extends Method> = {
  [P in Path]: Operations[P] extends Readonly<Record<M, { answer: unknown }>> ? P : never;
}[Path];
type Row<P extends Path, M extends Method> = M extends keyof Operations[P] ? Operations[P][M] : never;
/** Paths of streams. */
type StreamPath = { [P in Path]: Row<P, 'GET'> extends { events: unknown } ? P : never }[Path];
/** Paths of lists that come a page at a time. */
type ListPath = {
  [P in PathsOf<'GET'>]: Row<P, 'GET'> extends { answer: { next_cursor: string | null } } ? P : never;
}[PathsOf<'GET'>];
/** Paths whose answer may be that nothing changed. */
type ConditionalPath = {
  [P in PathsOf<'GET'>]: Row<P, 'GET'> extends { unchanged: true } ? P : never;
}[PathsOf<'GET'>];

type Common = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};
type Taken<R> = Common & Readonly<Pick<R, Extract<keyof R, 'params' | 'query' | 'body'>>>;
/** The options of a call may be left out if none of them is needed. */
type Rest<O> = Common extends O ? [options?: O] : [options: O];
type AnswerOf<R> = R extends { answer: infer A } ? A : never;

/** What became of a call: `data`, or `error`. */
export type ClientOutcome<T> =
  | { readonly data: T; readonly error?: undefined; readonly response: Response }
  | { readonly data?: undefined; readonly error: ClientProblem; readonly response: Response };
/** The answer 304 to a call with `If-None-Match`. */
export type Unchanged = { readonly data?: undefined; readonly error?: undefined; readonly response: Response };

type Conditional = { readonly 'If-None-Match': string } | { readonly 'if-none-match': string };

type Get = {
  <P extends ConditionalPath>(
    path: P,
    options: Taken<Row<P, 'GET'>> & { readonly headers: Conditional },
  ): Promise<ClientOutcome<AnswerOf<Row<P, 'GET'>>> | Unchanged>;
  <P extends PathsOf<'GET'>>(
    path: P,
    ...rest: Rest<Taken<Row<P, 'GET'>>>
  ): Promise<ClientOutcome<AnswerOf<Row<P, 'GET'>>>>;
};
type Call<M extends Method> = <P extends PathsOf<M>>(
  path: P,
  ...rest: Rest<Taken<Row<P, M>>>
) => Promise<ClientOutcome<AnswerOf<Row<P, M>>>>;

export type TollgateClient = {
  readonly GET: Get;
  readonly POST: Call<'POST'>;
  readonly PATCH: Call<'PATCH'>;
  readonly DELETE: Call<'DELETE'>;
  /** The pages of a list, one after the other, from `query.cursor` on. Throws a TollgateError at a problem. */
  readonly pages: <P extends ListPath>(
    path: P,
    ...rest: Rest<Taken<Row<P, 'GET'>>>
  ) => AsyncGenerator<ListPage<AnswerOf<Row<P, 'GET'>>>, void, undefined>;
  /**
   * The events of a stream. One that breaks off is opened again where it ended; it is over when `signal` says so, the loop is
   * left, or the registry refuses: then it throws a TollgateError.
   */
  readonly events: <P extends StreamPath>(
    path: P,
    ...rest: Rest<Taken<Row<P, 'GET'>>>
  ) => AsyncGenerator<EventOf<Row<P, 'GET'> extends { events: infer E } ? E : never>, void, undefined>;
};

export type TollgateOptions = {
  /** Where the registry answers, such as `https://registry.example.com`; `''` in a page of its own. */
  readonly baseUrl: string | URL;
  /** A dashboard token or an API key, or what gives one for each call. Left out: none is sent. */
  readonly token?: string | (() => string | Promise<string>);
  /** In place of the global one. */
  readonly fetch?: typeof globalThis.fetch;
};

/** Options of a call as they are sent, whatever the path. */
type Sent = Common & {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Query;
  readonly body?: unknown;
};

export function createTollgate({ baseUrl, token, fetch = globalThis.fetch }: TollgateOptions): TollgateClient {
  const base = String(baseUrl).replace(/\/+$/, '');
  const send = async (
    method: Method,
    path: string,
    { params, query, body, headers, signal }: Sent,
  ): Promise<Response> => {
    const credential = typeof token === 'function' ? await token() : token;
    const all = new Headers({ Accept: 'application/json, application/problem+json;q=0.9, */*;q=0.1' });
    if (credential !== undefined) all.set('Authorization', `Bearer ${credential}`);
    if (body !== undefined) all.set('Content-Type', 'application/json');
    for (const [name, value] of Object.entries(headers ?? {})) all.set(name, value);
    return fetch(base + writeTarget(path, params, query), {
      ...{ method, headers: all, redirect: 'error' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  };
  const call =
    (method: Method) =>
    async (path: string, sent: Sent = {}): Promise<ClientOutcome<unknown> | Unchanged> => {
      const response = await send(method, path, sent);
      if (response.status === 304) return { response };
      if (!response.ok) return { error: await problemOf(response), response };
      return { data: await contentOf(response), response };
    };
  const get = call('GET');
  // The document says what each path answers: its types are put on here, once.
  return {
    GET: get,
    POST: call('POST') as Call<'POST'>,
    PATCH: call('PATCH') as Call<'PATCH'>,
    DELETE: call('DELETE') as Call<'DELETE'>,
    pages: ((path: string, sent: Sent = {}) =>
      readPages((query) => get(path, { ...sent, query }), sent.query)) as TollgateClient['pages'],
    events: ((path: string, sent: Sent = {}) =>
      openEvents(
        (headers, signal) => send('GET', path, { ...sent, headers, signal }),
        sent,
      )) as TollgateClient['events'],
  };
}

/** JSON as a value, anything else as text; undefined if there is nothing. */
async function contentOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === '') return undefined;
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(response.headers.get('Content-Type') ?? '')
    ? JSON.parse(text)
    : text;
}
