// Rules that need more than one key: which sections go together and what must differ. They look at raw data that may
// still be wrong in any way, so that everything wrong is reported at once. The schema complains about what they cannot
// read.
import { http } from '../host/node-http.ts';
import { allowedMethods, refuseMethod } from '../domain/routing/method.ts';
import { parsePattern } from '../domain/routing/pattern.ts';
import type { Networks } from '../domain/payment/network.ts';
import { METHOD } from '../domain/routing/route-fields.ts';
import { isLoopback, listensClash, parseListen, type Listen } from './addresses.ts';
import { hostOf, isSafeUrl, parseUrl } from './fields.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';
import { storeIssues } from './store.ts';
import { receiverIssues } from './receiver-issues.ts';
import { findUnpayable, type Receiver } from '../domain/payment/offer.ts';
import { receiverSchema, toReceiver } from './receivers.ts';
import { configRouteSchema } from './route-keys.ts';
import { suggest } from '../domain/suggest.ts';

type Raw = Readonly<Record<string, unknown>>;

export function combinationIssues(raw: Raw, networks: Networks): Issue[] {
  return [
    ...shapeIssues(raw),
    ...jwtIssues(raw),
    ...syncIssues(raw),
    ...listenIssues(raw),
    ...receiverIssues(raw['receivers'], networks),
    ...repeated(raw, ['registry', 'api_keys'], 'name', 'is the name of an earlier key; every key needs its own'),
    ...repeated(raw, ['registry', 'api_keys'], 'key', 'is the same as an earlier key; every key needs its own'),
    ...repeated(raw, ['receivers'], 'id', 'is the id of an earlier receiver; every receiver needs its own'),
    ...routeIssues(raw),
    ...methodIssues(raw),
    ...payableIssues(raw, networks),
    ...storeIssues(raw),
    ...workerIssues(raw),
  ];
}

function shapeIssues(raw: Raw): Issue[] {
  const has = (section: string): boolean => Object.hasOwn(raw, section);
  const [proxy, registry, sync] = [has('proxy'), has('registry'), has('sync')];
  const issues: Issue[] = [];
  if (sync && !proxy) {
    issues.push({
      path: ['sync'],
      at: 'key',
      message: 'stands without `proxy`; only a proxy syncs its routes, so add `proxy` or take `sync` out',
    });
  } else if (!proxy && !registry) {
    issues.push({
      path: [],
      message: 'has nothing to run; write `proxy` with `registry` or `sync`, or `registry` alone',
    });
  } else if (proxy && registry && sync) {
    issues.push({
      path: ['sync'],
      at: 'key',
      message: 'stands beside `registry`; routes come from one of them, so take the other out',
    });
  } else if (proxy && !registry && !sync) {
    issues.push({
      path: ['proxy'],
      at: 'key',
      message: 'needs routes; add `registry` to keep them here, or `sync` to take them from a remote registry',
    });
  }
  if (proxy && sync && !registry) {
    if (valueAt(raw, ['charges', 'secrets']) === undefined) {
      const message =
        'is missing; a sidecar needs the secrets of its charges, the same on every replica: write secrets or secrets_file';
      issues.push({ path: ['charges', 'secrets'], message });
    }
    const { routes } = raw;
    if (Array.isArray(routes) && routes.length > 0) {
      issues.push({
        path: ['routes'],
        at: 'key',
        message: 'cannot stand in a sidecar, whose routes come from its registry; register them there',
      });
    }
  }
  if (registry && valueAt(raw, ['charges', 'store']) !== undefined) {
    issues.push({
      path: ['charges', 'store'],
      at: 'key',
      message: 'stands beside `registry`, whose store holds the charges; take it out',
    });
  }
  return issues;
}

function workerIssues(raw: Raw): Issue[] {
  const { workers } = raw;
  const several =
    workers === 'auto' || ((typeof workers === 'number' || typeof workers === 'string') && Number(workers) > 1);
  if (!several || Object.hasOwn(raw, 'proxy')) return [];
  return [{ path: ['workers'], message: 'stands without `proxy`, which is what workers serve; take it out' }];
}

function jwtIssues(raw: Raw): Issue[] {
  const path = ['registry', 'jwt'];
  const jwt = valueAt(raw, path);
  if (!isMap(jwt)) return [];
  const given = ['secret', 'public_key', 'jwks_url'].filter((key) => jwt[key] !== undefined);
  if (given.length === 1) return [];
  const wrong = given.length === 0 ? 'says nothing to check tokens with' : `has ${given.join(' and ')}`;
  return [{ path, at: 'key', message: `${wrong}; write exactly one of secret, public_key and jwks_url` }];
}

function syncIssues(raw: Raw): Issue[] {
  const path = ['sync', 'registry_url'];
  const value = valueAt(raw, path);
  const insecure = valueAt(raw, ['sync', 'insecure']);
  if (typeof value !== 'string' || parseUrl(value) === undefined || isSafeUrl(value)) return [];
  if (insecure === true || insecure === 'true') return [];
  return [
    {
      path,
      message:
        'is plain http beyond loopback and private addresses; write https, or insecure: true if you trust every network in between',
    },
  ];
}

const LISTENERS: readonly { readonly path: Path; readonly fallback: string | undefined }[] = [
  { path: ['proxy', 'listen'], fallback: '0.0.0.0:8402' },
  { path: ['registry', 'listen'], fallback: '127.0.0.1:8403' },
  { path: ['sync', 'listen'], fallback: undefined },
  { path: ['admin', 'listen'], fallback: '127.0.0.1:9402' },
];

function listenIssues(raw: Raw): Issue[] {
  const issues: Issue[] = [];
  const bound: { path: Path; listen: Listen; written: boolean }[] = [];
  for (const { path, fallback } of LISTENERS) {
    const section = path[0];
    if (section === undefined || (section !== 'admin' && !Object.hasOwn(raw, section))) continue;
    const value = valueAt(raw, path);
    const listen =
      typeof value === 'string'
        ? parseListen(value)
        : value === undefined && fallback
          ? parseListen(fallback)
          : undefined;
    if (listen === undefined) continue;
    const own = { path, listen, written: value !== undefined };
    const other = bound.find((earlier) => listensClash(earlier.listen, listen));
    if (other) {
      // The reader of the message can only change what was written.
      const [blamed, kept] = own.written || !other.written ? [own, other] : [other, own];
      issues.push({
        path: blamed.path,
        message: `takes the address of ${kept.path.join('.')}; give each listener a port of its own`,
      });
    }
    bound.push(own);
  }
  const upstream = valueAt(raw, ['proxy', 'upstream']);
  const parsed = typeof upstream === 'string' ? parseUrl(upstream) : undefined;
  if (parsed) {
    const host = hostOf(parsed);
    const target = { host, port: Number(parsed.port || (parsed.protocol === 'https:' ? 443 : 80)) };
    const self = bound.find(({ listen }) => listensClash(listen, target) && (isLoopback(host) || listen.host === host));
    if (self) {
      issues.push({
        path: ['proxy', 'upstream'],
        message: `is Tollgate's own listener ${self.path.join('.')}; write the address of your API`,
      });
    }
  }
  return issues;
}

/** Complaints about every item of the list at `path` whose `field` an earlier item has too. */
function repeated(raw: Raw, path: Path, field: string, message: string): Issue[] {
  const items = valueAt(raw, path);
  if (!Array.isArray(items)) return [];
  const seen = new Set<string>();
  return items.flatMap((item: unknown, index): Issue[] => {
    const value = isMap(item) ? item[field] : undefined;
    if (typeof value !== 'string' || value === '' || !seen.has(value)) {
      if (typeof value === 'string') seen.add(value);
      return [];
    }
    return [{ path: [...path, index, field], message }];
  });
}

/** The proxy answers a method that it does not let in with 501: a route for it would leave the one that is meant free. */
function methodIssues(raw: Raw): Issue[] {
  const { proxy, routes } = raw;
  if (!Array.isArray(routes)) return [];
  const added: unknown = isMap(proxy) ? proxy['methods'] : http.METHODS;
  const allowed = allowedMethods(
    Array.isArray(added)
      ? added.flatMap((name: unknown) => (typeof name === 'string' ? [name.toUpperCase()] : []))
      : [],
  );
  return routes.flatMap((route: unknown, index): Issue[] => {
    if (!isMap(route) || typeof route['method'] !== 'string') return [];
    const method = route['method'].toUpperCase();
    const wrong = METHOD.test(method) ? refuseMethod(method, allowed) : undefined;
    return wrong === undefined ? [] : [{ path: ['routes', index, 'method'], message: wrong }];
  });
}

/** Two routes with one method and one pattern key cannot exist. */
function routeIssues(raw: Raw): Issue[] {
  const { routes } = raw;
  if (!Array.isArray(routes)) return [];
  const seen = new Map<string, number>();
  return routes.flatMap((route: unknown, index): Issue[] => {
    if (!isMap(route) || typeof route['route_pattern'] !== 'string') return [];
    const parsed = parsePattern(route['route_pattern']);
    if (!parsed.ok) return [];
    const method = typeof route['method'] === 'string' ? route['method'].toUpperCase() : '*';
    const key = `${method} ${parsed.pattern.key}`;
    const earlier = seen.get(key);
    seen.set(key, earlier ?? index);
    if (earlier === undefined) return [];
    return [
      {
        path: ['routes', index, 'route_pattern'],
        message: `means the same as routes[${earlier}]; one method and pattern is one route`,
      },
    ];
  });
}

// Routes that cannot be paid with the receivers: each would answer 503 for ever, so it is refused before anything starts.

/** Looks only at receivers and routes that are valid by themselves; `raw` may be wrong in any way. */
function payableIssues(raw: Readonly<Record<string, unknown>>, networks: Networks): Issue[] {
  const { receivers: inputs, routes } = raw;
  if (!Array.isArray(inputs) || !Array.isArray(routes)) return [];
  const receivers = new Map(
    inputs.flatMap((input) => readReceiver(input, networks)).map((receiver) => [receiver.id, receiver]),
  );
  return routes.flatMap((input: unknown, index): Issue[] => {
    const parsed = configRouteSchema.safeParse(input);
    if (!parsed.success) return [];
    const { receiver_config_id: named, currency, amount } = parsed.data;
    if (named !== null && !receivers.has(named)) {
      // An unreadable receiver may be the one that is meant.
      if (receivers.size < inputs.length) return [];
      const meant = suggest(named, receivers.keys());
      const advice = meant === undefined ? 'write the id of one of `receivers`' : `did you mean ${meant}?`;
      return [{ path: ['routes', index, 'receiver_config_id'], message: `names no receiver; ${advice}` }];
    }
    return findUnpayable({ amount, currency, receiverConfigId: named }, receivers).map(({ pointer, detail }) => ({
      path: ['routes', index, pointer.slice(1)],
      message: `cannot be paid: ${detail.charAt(0).toLowerCase()}${detail.slice(1).replace(/\.$/, '')}`,
    }));
  });
}

function readReceiver(input: unknown, networks: Networks): Receiver[] {
  const parsed = receiverSchema.safeParse(input);
  return parsed.success && receiverIssues([input], networks).length === 0 ? [toReceiver(parsed.data, networks)] : [];
}
