// Calls of the registry's endpoints: this origin alone, with the session's cookie and its key in `Tollgate-Desk`. Every outcome
// is a value: what was answered, a problem (RFC 9457), or nobody there.

export type CallProblem = {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[];
  readonly existingId: string | null;
  /** Seconds until it is worth asking again; null if nobody said. */
  readonly retryAfter: number | null;
  /** Ways to sign in, which a 401 of the session names. */
  readonly signIn: readonly string[];
};

type AskOutcome<T> =
  | { readonly kind: 'ok'; readonly value: T; readonly etag: string | null; readonly at: number }
  | { readonly kind: 'problem'; readonly problem: CallProblem }
  /** No answer, or one that no registry gives. */
  | { readonly kind: 'away' }
  /** The caller gave it up. */
  | { readonly kind: 'aborted' };

type CallOptions = {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

type Verb = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export type DeskClient = {
  readonly call: <T>(method: Verb, path: string, options?: CallOptions) => Promise<AskOutcome<T>>;
  /** A response whose body the caller reads as it comes; null if nobody answered. */
  readonly open: (path: string, options: CallOptions) => Promise<Response | null>;
};

type Dependencies = {
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly key: () => string | null;
  /** Called when the registry says that the session is over. */
  readonly signedOut: (problem: CallProblem) => void;
};

export function createClient({ fetch, now, key, signedOut }: Dependencies): DeskClient {
  const ask = async (method: string, path: string, { body, headers = {}, signal }: CallOptions): Promise<Response> => {
    const held = key();
    return fetch(path, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        ...headers,
        ...(held === null ? {} : { 'Tollgate-Desk': held }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  };
  const noticing = (response: Response, problem: CallProblem, path: string): void => {
    if (response.status === 401 && !path.startsWith('/desk/session')) signedOut(problem);
  };
  return {
    call: async (method, path, options = {}) => {
      try {
        const response = await ask(method, path, options);
        const text = await response.text();
        if (response.ok) {
          const value = text === '' ? null : JSON.parse(text);
          return { kind: 'ok', value, etag: response.headers.get('ETag'), at: now() };
        }
        const problem = problemOf(response, text);
        if (problem === null) return { kind: 'away' };
        noticing(response, problem, path);
        return { kind: 'problem', problem };
      } catch {
        return options.signal?.aborted === true ? { kind: 'aborted' } : { kind: 'away' };
      }
    },
    open: async (path, options) => {
      try {
        const response = await ask('GET', path, options);
        if (response.status === 401) noticing(response, problemOf(response, await response.text()) ?? UNNAMED, path);
        return response;
      } catch {
        return null;
      }
    },
  };
}

const UNNAMED: CallProblem = {
  ...{ status: 401, code: 'credentials_invalid', detail: 'Your session has ended.', errors: [], existingId: null },
  ...{ retryAfter: null, signIn: [] },
};

/** The problem in a response; null if it is none of a registry's, such as a gateway's page. */
function problemOf(response: Response, text: string): CallProblem | null {
  const { status, headers } = response;
  const after = Number(headers.get('Retry-After') ?? Number.NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) body = { ...parsed };
  } catch {
    if (status !== 404 && status !== 401) return null;
  }
  return {
    status,
    code: textOf(body['code']) ?? (status === 404 ? 'not_found' : `status_${status}`),
    detail: textOf(body['detail']) ?? `The registry answered ${status}.`,
    errors: Array.isArray(body['errors']) ? body['errors'] : [],
    existingId: textOf(body['existing_id']),
    retryAfter,
    signIn: Array.isArray(body['sign_in']) ? body['sign_in'].filter((way) => typeof way === 'string') : [],
  };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
