// The type of an endpoint: a row of the table in api.ts. The row's schemas check what comes in before its handler sees
// it, and describe it in the OpenAPI document. Knows no socket: a handler turns a call into an outcome.
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { problem, type FieldError, type Problem, type ProblemCode } from '../../domain/problem.ts';
import { badQuery, sentence } from '../../domain/routing/query.ts';
import type { OwnResponse } from '../../host/respond.ts';
import type { Auth, Principal } from '../auth/credentials.ts';

export type EndpointOutcome =
  /** Answer of an endpoint. `sent` is called once when the response has left, or its client has. */
  | ({ readonly kind: 'response'; readonly sent?: () => void } & OwnResponse)
  | { readonly kind: 'problem'; readonly problem: Problem }
  /** Takes the response over once its status line and `headers` are written; HEAD never gets that far. */
  | {
      readonly kind: 'stream';
      readonly headers: readonly string[];
      readonly open: (res: ServerResponse) => void;
      /** Called in place of `open` if nobody takes the stream. */
      readonly unopened?: () => void;
    };

export type EndpointCall<P = unknown, Q = unknown, B = unknown> = {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Members of the body that the schema dropped, as they were named. */
  readonly ignored: readonly string[];
  readonly headers: IncomingHttpHeaders;
  readonly principal: Principal;
  readonly peer: Peer;
};

/** Where a request came from, and through which port. */
type Peer = { readonly address: string; readonly localPort: number | undefined };

type RawCall = {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
  readonly principal: Principal;
  readonly peer: Peer;
};

export type ResponseSpec = {
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly mediaType?: string;
  /** Events of a stream by their type, each with the schema of its data. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: readonly string[];
};

type Description = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path of the endpoint; `{name}` fills one segment. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly auth: Auth;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** Beyond those that follow from the rest of the row. */
  readonly problems: readonly ProblemCode[];
  readonly requestHeaders?: readonly string[];
  /** Query parameters that are not known are logged; elsewhere they are 400, because they are mistyped. */
  readonly ignoresUnknownQuery?: true;
  /** Limit of a body in bytes, if it may be larger than elsewhere. */
  readonly bodyLimit?: number;
};

/** Media types of a body; empty if the endpoint takes none. */
type Input<P, Q, B> = {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly mediaTypes: readonly string[];
};

type Handler<P, Q, B, S> = (call: EndpointCall<P, Q, B>, services: S) => EndpointOutcome | Promise<EndpointOutcome>;

export type Endpoint<S> = Description &
  Input<z.ZodObject, z.ZodObject, z.ZodObject> & {
    readonly run: (call: RawCall, services: S) => EndpointOutcome | Promise<EndpointOutcome>;
  };

export const JSON_TYPE = 'application/json';
export const MERGE_PATCH_TYPE = 'application/merge-patch+json';

export function endpoint<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject, S>(
  row: Description & Input<P, Q, B> & { readonly handler: Handler<z.output<P>, z.output<Q>, z.output<B>, S> },
): Endpoint<S> {
  const { handler, ...description } = row;
  return {
    ...description,
    run: (call, services) => {
      const params = row.params.safeParse(call.params);
      if (!params.success) return fail(problem('not_found', 'There is nothing with this id.'));
      const query = row.query.safeParse(call.query);
      if (!query.success) return fail(badQuery(query.error));
      const body = row.body.safeParse(row.mediaTypes.length > 0 ? call.body : {});
      if (!body.success) return fail(badBody(body.error, call.body));
      const ignored = isObject(call.body)
        ? Object.keys(call.body).filter((name) => !Object.hasOwn(row.body.shape, name))
        : [];
      const { headers, principal, peer } = call;
      return handler(
        { params: params.data, query: query.data, body: body.data, ignored, headers, principal, peer },
        services,
      );
    },
  };
}

export function jsonResponse(status: number, value: unknown, headers: readonly string[] = []): EndpointOutcome {
  return { kind: 'response', status, headers: ['Content-Type', JSON_TYPE, ...headers], body: JSON.stringify(value) };
}

export function emptyResponse(status: 204 | 304, headers: readonly string[] = []): EndpointOutcome {
  return { kind: 'response', status, headers, body: '' };
}

export function fail(problem: Problem): EndpointOutcome {
  return { kind: 'problem', problem };
}

/** Refuses a body with 422. `detail` repeats the first error, because clients show `detail` alone. */
export function invalidBody(errors: readonly FieldError[]): Problem {
  const first = errors[0];
  const where = first?.pointer ? `${first.pointer.slice(1)}: ` : '';
  return problem('invalid', `The body is not valid. ${where}${first?.detail ?? ''}`, { errors });
}

const MAX_ERRORS = 20;

function badBody(error: z.ZodError, body: unknown): Problem {
  const errors = error.issues.flatMap((issue): FieldError[] => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        pointer: pointerOf([key]),
        detail: 'This member is not known here or cannot be written.',
      }));
    }
    const absent = issue.path.length === 1 && isObject(body) && !Object.hasOwn(body, issue.path[0] ?? '');
    return [{ pointer: pointerOf(issue.path), detail: absent ? 'This member is required.' : sentence(issue.message) }];
  });
  return invalidBody(errors.slice(0, MAX_ERRORS));
}

const MAX_NAME = 64;

function pointerOf(path: readonly PropertyKey[]): string {
  return path
    .map((part) => `/${String(part).slice(0, MAX_NAME).toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
