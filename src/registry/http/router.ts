// Takes a request of the registry from its path to its answer, by the table of endpoints. It finds the endpoint, checks
// the credential, reads the input and calls the handler. It refuses before it reads: no body of a stranger is parsed.
// After a fault inside, the client gets a problem without details and the log gets them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { match } from 'path-to-regexp';
import { readQuery, unknownParameters } from '../../domain/routing/query.ts';
import { problem, PROBLEMS, renderProblem, type Problem, type ProblemCode } from '../../domain/problem.ts';
import { corsHeaders, preflightHeaders } from '../../host/cors.ts';
import type { Log } from '../../host/log.ts';
import { respond } from '../../host/respond.ts';
import { createWriteBatch, type WriteBatch } from '../../host/write-batch.ts';
import { describePrincipal, type Auth, type Principal } from '../auth/credentials.ts';
import { emptyResponse, fail, type Endpoint, type EndpointOutcome } from './endpoint.ts';
import { readJsonBody, splitUrl } from './request.ts';
import type { RegistryObserver } from './services.ts';
import { StoreUnavailable } from '../store/ports.ts';

export type RouterOptions = {
  readonly authenticate: (auth: Auth, req: IncomingMessage) => Promise<Principal | Problem>;
  readonly corsOrigins: () => readonly string[];
  /** Limit of a request body in bytes; one more is 413. */
  readonly bodyLimit: number;
  /** Headers of every answer at a path in place of the common ones; undefined: those. */
  readonly headersFor?: (req: IncomingMessage) => readonly string[] | undefined;
  readonly log: Log;
  readonly observer?: RegistryObserver | undefined;
};

const MAX_LOGGED_NAMES = 20;
const MAX_LOGGED_LENGTH = 64;
const STORE_RETRY_SECONDS = 5;
const SIGN_IN: ReadonlySet<ProblemCode> = new Set(['credentials_missing', 'credentials_invalid', 'scope_insufficient']);
const EXPOSED = 'ETag, Location, Retry-After, Tollgate-Registry, Tollgate-Revision, WWW-Authenticate';
const ALLOWED = 'Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID';
const SAFE_HEADERS = ['X-Content-Type-Options', 'nosniff'];

export function createRouter<S>(
  api: readonly Endpoint<S>[],
  services: S,
  { authenticate, corsOrigins, bodyLimit, headersFor, log, observer }: RouterOptions,
): (req: IncomingMessage, res: ServerResponse) => void {
  const find = indexPaths(api);
  const writeBatch = createWriteBatch();

  /** Decides on a request. Undefined: the client went away and gets no answer. */
  const decide = async (
    req: IncomingMessage,
    asks: (endpoint: string) => void,
  ): Promise<EndpointOutcome | undefined> => {
    const { path, query } = splitUrl(req.url ?? '');
    const found = find(path);
    if (!found) return fail(problem('not_found', 'There is nothing at this path.'));
    if (req.method === 'OPTIONS') {
      const isPreflight = req.headers['access-control-request-method'] !== undefined;
      return emptyResponse(204, ['Allow', found.allow, ...(isPreflight ? preflightHeaders(found.allow, ALLOWED) : [])]);
    }
    const endpoint = found.endpoints.get(req.method === 'HEAD' ? 'GET' : (req.method ?? ''));
    if (!endpoint) {
      return fail(
        problem('method_not_allowed', `This path takes ${found.allow}.`, { headers: { Allow: found.allow } }),
      );
    }
    asks(endpoint.id);
    const principal = await authenticate(endpoint.auth, req);
    if ('code' in principal) {
      if (SIGN_IN.has(principal.code) && endpoint.auth.kind !== 'none')
        observer?.signInRefused(endpoint.auth.kind === 'api_key' ? 'api_key' : 'jwt');
      return fail(principal);
    }
    const asked = readQuery(query, new Set(Object.keys(endpoint.query.shape)));
    if ('code' in asked) return fail(asked);
    const { unknown } = asked;
    if (unknown.length > 0) {
      if (endpoint.ignoresUnknownQuery === undefined)
        return fail(unknownParameters(unknown, Object.keys(endpoint.query.shape)));
      const parameters = unknown.slice(0, MAX_LOGGED_NAMES).map((name) => name.slice(0, MAX_LOGGED_LENGTH));
      log.warn('query parameters were ignored', { path, parameters, by: describePrincipal(principal) });
    }
    const body =
      endpoint.mediaTypes.length > 0
        ? await readJsonBody(req, endpoint.bodyLimit ?? bodyLimit, endpoint.mediaTypes)
        : { value: undefined };
    if (body === undefined) return undefined;
    if ('code' in body) return fail(body);
    const peer = { address: req.socket.remoteAddress ?? '', localPort: req.socket.localPort };
    const { params } = found;
    const call = { params, query: asked.values, body: body.value, headers: req.headers, principal, peer };
    return endpoint.run(call, services);
  };

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const head = req.method === 'HEAD';
    const headers = headersFor?.(req) ?? [
      ...SAFE_HEADERS,
      ...corsHeaders(req.headers.origin, { origins: corsOrigins(), exposed: EXPOSED }),
    ];
    let endpoint = 'none';
    const answer = (outcome: EndpointOutcome): void => {
      observer?.request(endpoint, statusOf(outcome));
      send(res, outcome, { headers, head, writeBatch });
    };
    try {
      const outcome = await decide(req, (id) => (endpoint = id));
      if (outcome) answer(outcome);
      else res.destroy();
    } catch (error) {
      answer(fail(problemOf(error, req, log)));
    }
  };

  return (req, res) => {
    serve(req, res).catch((error: unknown) => {
      log.error('an answer of the registry could not be sent', { error });
      res.destroy();
    });
  };
}

type EndpointMatch<S> = {
  readonly endpoints: ReadonlyMap<string, Endpoint<S>>;
  readonly allow: string;
  /** Parameters as they stand in the path, percent-encoded. */
  readonly params: Readonly<Record<string, string>>;
};

/** The table writes paths as OpenAPI does, with `{name}` for one segment; path-to-regexp matches them, case and all. */
function indexPaths<S>(api: readonly Endpoint<S>[]): (path: string) => EndpointMatch<S> | undefined {
  const paths = [...Map.groupBy(api, ({ path }) => path)].map(([path, endpoints]) => {
    const byMethod = new Map<string, Endpoint<S>>(endpoints.map((endpoint) => [endpoint.method, endpoint]));
    const methods = [...byMethod.keys(), ...(byMethod.has('GET') ? ['HEAD'] : []), 'OPTIONS'];
    const template = path.replaceAll(/\{(\w+)\}/g, ':$1');
    const read = match<Record<string, string>>(template, { sensitive: true, trailing: false, decode: false });
    return { read, endpoints: byMethod, allow: methods.join(', ') };
  });
  return (path) => {
    for (const { read, endpoints, allow } of paths) {
      const matched = read(path);
      if (matched !== false) return { endpoints, allow, params: matched.params };
    }
    return undefined;
  };
}

type SendOptions = { readonly headers: readonly string[]; readonly head: boolean; readonly writeBatch: WriteBatch };

function send(res: ServerResponse, outcome: EndpointOutcome, { headers, head, writeBatch }: SendOptions): void {
  switch (outcome.kind) {
    case 'response':
      if (outcome.sent !== undefined) {
        if (res.destroyed) outcome.sent();
        else res.once('close', outcome.sent);
      }
      return respond(res, { ...outcome, headers: [...headers, ...withCaching(outcome.headers)] }, head, [], writeBatch);
    case 'problem': {
      const rendered = renderProblem(outcome.problem);
      return respond(res, { ...rendered, headers: [...headers, ...rendered.headers] }, head, [], writeBatch);
    }
    case 'stream':
      if (res.destroyed || head) outcome.unopened?.();
      if (res.destroyed) return;
      res.writeHead(200, [...headers, ...outcome.headers]);
      if (head) res.end();
      else {
        res.flushHeaders();
        outcome.open(res);
      }
      return;
    default:
      outcome satisfies never;
  }
}

function statusOf(outcome: EndpointOutcome): number {
  if (outcome.kind === 'stream') return 200;
  return outcome.kind === 'response' ? outcome.status : PROBLEMS[outcome.problem.code].status;
}

function withCaching(headers: readonly string[]): readonly string[] {
  return headers.includes('Cache-Control') ? headers : ['Cache-Control', 'no-store', ...headers];
}

function problemOf(error: unknown, req: IncomingMessage, log: Log): Problem {
  const fields = { method: req.method, path: splitUrl(req.url ?? '').path, error };
  if (error instanceof StoreUnavailable) {
    log.error('the store of the registry failed', fields);
    return problem('registry_unavailable', 'The store of this registry does not answer; try again later.', {
      retryAfter: STORE_RETRY_SECONDS,
    });
  }
  log.error('a request to the registry failed', { ...fields, stack: error instanceof Error ? error.stack : undefined });
  return problem('internal', 'Something went wrong here; the log of this registry says more.');
}
