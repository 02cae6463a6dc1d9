// Traefik and Envoy as far as a decision is concerned: neither comes as a package, so a small server does with their shipped files what
// their sources do with them. It reads each header and directive from the file; a key that it does not know is an error, so that no
// line of a file stands there unheld.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { RunningProxy } from './shipped-proxy.ts';

type Pairs = readonly (readonly [name: string, value: string])[];
type Message = { readonly headers: Pairs; readonly body: Buffer };
type Asked = Message & { readonly method: string; readonly target: string };
type Answer = Message & { readonly status: number };
type Send = (asked: Asked) => Promise<Answer>;
type Reach = { readonly decision: Send; readonly api: Send };

/** What a proxy does with one request. */
export type ProxyModel = (asked: Asked, reach: Reach) => Promise<Answer>;

const HOP = new Set(['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length']);
const EMPTY = Buffer.alloc(0);

const valueOf = (pairs: Pairs, name: string): string | undefined =>
  pairs.find(([known]) => known.toLowerCase() === name.toLowerCase())?.[1];
const without = (pairs: Pairs, names: readonly string[]): Pairs => {
  const gone = new Set(names.map((name) => name.toLowerCase()));
  return pairs.filter(([name]) => !gone.has(name.toLowerCase()));
};
const withSet = (pairs: Pairs, set: Readonly<Record<string, string>>): Pairs => [
  ...without(pairs, Object.keys(set)),
  // An empty value takes the header away.
  ...Object.entries(set).filter(([, value]) => value !== ''),
];

const TRAEFIK = z.strictObject({
  http: z.strictObject({
    routers: z.strictObject({
      api: z.strictObject({ rule: z.string(), service: z.literal('api'), middlewares: z.array(z.string()) }),
    }),
    services: z.unknown(),
    middlewares: z.record(
      z.string(),
      z.union([
        z.strictObject({
          headers: z.strictObject({
            customRequestHeaders: z.record(z.string(), z.string()),
            customResponseHeaders: z.record(z.string(), z.string()).default({}),
          }),
        }),
        // Asks the API again if it could not be reached; this one always can.
        z.strictObject({
          retry: z.strictObject({ attempts: z.number().int().positive(), initialInterval: z.string() }),
        }),
        z.strictObject({
          forwardAuth: z.strictObject({
            address: z.literal('http://127.0.0.1:8404/'),
            trustForwardHeader: z.literal(false),
            authResponseHeaders: z.array(z.string()),
          }),
        }),
      ]),
    ),
  }),
});

/** Headers of clients that an entry point of Traefik takes out: it knows them one by one. */
const TAKEN_OUT =
  /^x[^a-z0-9]forwarded[^a-z0-9](?:proto|for|host|port|server|uri|method|prefix|tls[^a-z0-9]client[^a-z0-9]cert(?:[^a-z0-9]info)?)$/i;

/** The middlewares of the shipped router, in their order; an entry point that trusts nobody stands in front of them. */
export function modelTraefik(file: unknown): ProxyModel {
  const { routers, middlewares } = TRAEFIK.parse(file).http;
  return async (asked, reach) => {
    const run = async (index: number, { headers, ...rest }: Asked): Promise<Answer> => {
      const name = routers.api.middlewares[index];
      if (name === undefined) return reach.api({ ...rest, headers });
      const middleware = middlewares[name];
      if (middleware === undefined) throw new Error(`no middleware ${name}`);
      if ('retry' in middleware) return run(index + 1, { ...rest, headers });
      if ('headers' in middleware) {
        const { customRequestHeaders, customResponseHeaders } = middleware.headers;
        const answer = await run(index + 1, { ...rest, headers: withSet(headers, customRequestHeaders) });
        return { ...answer, headers: withSet(answer.headers, customResponseHeaders) };
      }
      const { authResponseHeaders } = middleware.forwardAuth;
      const answer = await reach.decision({
        ...{ method: 'GET', target: '/', body: EMPTY },
        headers: withSet(without(headers, [...HOP, 'host']), {
          ...{ host: 'tollgate', 'X-Forwarded-Method': rest.method, 'X-Forwarded-Uri': rest.target },
          ...{ 'X-Forwarded-Host': valueOf(headers, 'host') ?? '', 'X-Forwarded-Proto': 'http' },
          'X-Forwarded-For': '127.0.0.1',
        }),
      });
      if (answer.status < 200 || answer.status > 299) return answer;
      const facts = authResponseHeaders.flatMap((each): [string, string][] => {
        const value = valueOf(answer.headers, each);
        return value === undefined ? [] : [[each, value]];
      });
      return run(index + 1, { ...rest, headers: [...without(headers, authResponseHeaders), ...facts] });
    };
    const isForwarded = (name: string): boolean => TAKEN_OUT.test(name);
    return run(0, { ...asked, headers: asked.headers.filter(([name]) => !isForwarded(name)) });
  };
}

const patterns = z.strictObject({
  patterns: z.array(
    z.union([
      z.strictObject({ exact: z.string() }),
      z.strictObject({ prefix: z.string() }),
      z.strictObject({ safe_regex: z.strictObject({ regex: z.string() }) }),
    ]),
  ),
});
const typed = { '@type': z.string() };
const EXT_AUTHZ = z.strictObject({
  ...typed,
  failure_mode_allow: z.literal(false),
  status_on_error: z.strictObject({ code: z.literal('ServiceUnavailable') }),
  allowed_headers: patterns,
  http_service: z.strictObject({
    server_uri: z.strictObject({ uri: z.string(), cluster: z.literal('tollgate'), timeout: z.string() }),
    path_prefix: z.string().default(''),
    authorization_request: z.strictObject({
      headers_to_add: z.array(z.strictObject({ key: z.string(), value: z.string() })),
    }),
    authorization_response: z.strictObject({
      allowed_upstream_headers: patterns,
      allowed_client_headers_on_success: patterns,
    }),
  }),
});
const LUA = z.strictObject({ ...typed, default_source_code: z.strictObject({ inline_string: z.string() }) });
const MANAGER = z.strictObject({
  ...typed,
  stat_prefix: z.string(),
  use_remote_address: z.literal(true),
  normalize_path: z.literal(false),
  merge_slashes: z.literal(false),
  common_http_protocol_options: z.strictObject({ headers_with_underscores_action: z.literal('REJECT_REQUEST') }),
  max_request_headers_kb: z.number().min(20),
  route_config: z.strictObject({
    virtual_hosts: z.tuple([
      z.strictObject({
        ...{ name: z.string(), domains: z.tuple([z.literal('*')]) },
        routes: z.tuple([
          z.strictObject({
            match: z.strictObject({ prefix: z.literal('/') }),
            route: z.strictObject({
              cluster: z.literal('api'),
              // Nothing that an API may have seen is sent again.
              retry_policy: z.strictObject({ retry_on: z.literal('connect-failure'), num_retries: z.number() }),
            }),
            response_headers_to_remove: z.array(z.string()),
          }),
        ]),
      }),
    ]),
  }),
  http_filters: z.tuple([
    z.strictObject({ name: z.literal('envoy.filters.http.ext_authz'), typed_config: EXT_AUTHZ }),
    z.strictObject({ name: z.literal('envoy.filters.http.lua'), typed_config: LUA }),
    z.strictObject({ name: z.literal('envoy.filters.http.router'), typed_config: z.strictObject(typed) }),
  ]),
});
const ENVOY = z.strictObject({
  static_resources: z.strictObject({
    listeners: z.tuple([
      z.strictObject({
        address: z.unknown(),
        filter_chains: z.tuple([
          z.strictObject({
            filters: z.tuple([
              z.strictObject({
                name: z.literal('envoy.filters.network.http_connection_manager'),
                typed_config: MANAGER,
              }),
            ]),
          }),
        ]),
      }),
    ]),
    clusters: z.unknown(),
  }),
});

function matches(name: string, { patterns: all }: z.infer<typeof patterns>): boolean {
  return all.some((each) => {
    if ('exact' in each) return name === each.exact;
    return 'prefix' in each ? name.startsWith(each.prefix) : new RegExp(`^(?:${each.safe_regex.regex})$`).test(name);
  });
}

const PRIVATE = { 'cache-control': 'private, no-store', 'cdn-cache-control': '', 'surrogate-control': '' };

/** The filters of the shipped listener; names of headers are lower case in Envoy. */
export function modelEnvoy(file: unknown): ProxyModel {
  const [{ filter_chains: chains }] = ENVOY.parse(file).static_resources.listeners;
  const manager = chains[0].filters[0].typed_config;
  const [{ typed_config: authz }, { typed_config: lua }] = manager.http_filters;
  const [{ response_headers_to_remove: removed }] = manager.route_config.virtual_hosts[0].routes;
  const { authorization_request: question, authorization_response: rules, path_prefix: prefix } = authz.http_service;
  const marksOwn =
    /get\("tollgate-access"\) or "observed"[^]*get\("tollgate-charge-id"\) or access ~= "observed"[^]*replace\("cache-control", "private, no-store"\)[^]*remove\("cdn-cache-control"\)[^]*remove\("surrogate-control"\)/.test(
      lua.default_source_code.inline_string,
    );
  return async (asked, reach) => {
    if (asked.headers.some(([name]) => name.includes('_'))) return { status: 400, headers: [], body: EMPTY };
    const lower = asked.headers.map(([name, value]) => [name.toLowerCase(), value] as const);
    const headers = withSet(lower, {
      ...{ 'x-request-id': randomUUID(), 'x-forwarded-proto': 'http', 'x-forwarded-for': '127.0.0.1' },
    });
    const added = Object.fromEntries(question.headers_to_add.map(({ key, value }) => [key, value]));
    const always = new Set(['host', 'authorization']);
    const sent = without(headers, [...HOP]).filter(
      ([name]) => always.has(name) || matches(name, authz.allowed_headers),
    );
    const answer = await reach.decision({
      ...{ method: asked.method, target: prefix + asked.target, body: EMPTY },
      headers: [...withSet(sent, added), ['content-length', '0']],
    });
    if (answer.status >= 500) return { status: 503, headers: [], body: EMPTY };
    if (answer.status !== 200) return answer;
    const said = answer.headers.map(([name, value]) => [name.toLowerCase(), value] as const);
    const facts = said.filter(([name]) => matches(name, rules.allowed_upstream_headers));
    const orders = valueOf(said, 'x-envoy-auth-headers-to-remove')?.split(', ') ?? [];
    const onward = without(withSet(headers, Object.fromEntries(facts)), orders);
    const got = await reach.api({ ...asked, headers: onward });
    const isOwn =
      valueOf(onward, 'tollgate-charge-id') !== undefined ||
      (valueOf(onward, 'tollgate-access') ?? 'observed') !== 'observed';
    // The router takes away before the filters add.
    const kept = without(got.headers, removed);
    return {
      ...got,
      headers: [
        ...(marksOwn && isOwn ? withSet(kept, PRIVATE) : kept),
        ...said.filter(([name]) => matches(name, rules.allowed_client_headers_on_success)),
      ],
    };
  };
}

/** Serves a model between clients, the decision listener and the API. */
export async function startModelledProxy(
  model: ProxyModel,
  { decision, upstream }: { readonly decision: number; readonly upstream: number },
): Promise<RunningProxy> {
  const reach: Reach = { decision: (asked) => ask(decision, asked), api: (asked) => ask(upstream, asked) };
  const server = createServer();
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { method = '', url = '' } = req;
    const body = await buffer(req);
    const made = await model({ method, target: url, headers: pairsOf(req), body }, reach);
    res.writeHead(made.status, without(made.headers, [...HOP]).flat());
    res.end(made.body);
  };
  server.on('request', (req, res) => {
    answer(req, res).catch(() => req.socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    ...{ port, url: `http://127.0.0.1:${port}` },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function pairsOf({ rawHeaders: raw }: IncomingMessage): Pairs {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ''] as const] : []));
}

async function ask(port: number, { method, target, headers, body }: Asked): Promise<Answer> {
  const length: Pairs = body.length === 0 ? [] : [['content-length', String(body.length)]];
  const sent = [...without(headers, body.length === 0 ? ['connection'] : [...HOP]), ...length].flat();
  const req = send({ host: '127.0.0.1', port, method, path: target, headers: sent, agent: false });
  req.end(body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  return { status: res.statusCode ?? 0, headers: pairsOf(res), body: await buffer(res) };
}
