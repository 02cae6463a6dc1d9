// Rules that need more than one key: which sections go together and what must differ. They look at raw data that may
// still be wrong in any way, so that everything wrong is reported at once. The schema complains about what they cannot
// read.
import { http } from '../host/node-http.ts';
import { allowedMethods, refuseMethod } from '../domain/routing/method.ts';
import { parsePattern } from '../domain/routing/pattern.ts';
import type { Networks } from '../domain/payment/network.ts';
import { METHOD } from '../domain/routing/route-fields.ts';
import { assertionIssues } from './assertion.ts';
import { deskIssues } from './desk.ts';
import { isSafeUrl, parseUrl } from './fields.ts';
import { listenIssues } from './listen-clashes.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';
import { sellingIssues } from './selling.ts';
import { storeIssues } from './store.ts';
import { receiverIssues } from './receiver-issues.ts';
import { payableIssues } from './payable-routes.ts';
import { webhookIssues } from './webhooks.ts';

type RawSection = Readonly<Record<string, unknown>>;

export function combinationIssues(raw: RawSection, networks: Networks, nowMs: number): Issue[] {
  return [
    ...shapeIssues(raw),
    ...jwtIssues(raw),
    ...deskIssues(raw),
    ...syncIssues(raw),
    ...listenIssues(raw),
    ...receiverIssues(raw['receivers'], networks),
    ...repeated(raw, ['registry', 'api_keys'], 'name', 'is the name of an earlier key; every key needs its own'),
    ...repeated(raw, ['registry', 'api_keys'], 'key', 'is the same as an earlier key; every key needs its own'),
    ...repeated(raw, ['receivers'], 'id', 'is the id of an earlier receiver; every receiver needs its own'),
    ...repeated(raw, ['webhooks'], 'id', 'is the id of an earlier endpoint; every endpoint needs its own'),
    ...webhookIssues(raw),
    ...routeIssues(raw),
    ...methodIssues(raw),
    ...payableIssues(raw, networks),
    ...repeated(raw, ['selling', 'plans'], 'id', 'is the id of an earlier plan; every plan needs its own'),
    ...repeated(raw, ['selling', 'customers'], 'id', 'is the id of an earlier entry; every entry needs its own'),
    ...sellingIssues(raw, nowMs),
    ...assertionIssues(raw),
    ...storeIssues(raw),
    ...workerIssues(raw),
  ];
}

function shapeIssues(raw: RawSection): Issue[] {
  const has = (section: string): boolean => Object.hasOwn(raw, section);
  const [registry, sync] = [has('registry'), has('sync')];
  // Both need routes, and a decision stands beside a proxy or instead of it.
  const named = has('proxy') || !has('decision') ? 'proxy' : 'decision';
  const proxy = has(named);
  const issues: Issue[] = [];
  if (sync && !proxy) {
    issues.push({
      path: ['sync'],
      at: 'key',
      message:
        'stands without `proxy` and `decision`; only these sync their routes, so add one of them or take `sync` out',
    });
  } else if (!proxy && !registry) {
    issues.push({
      path: [],
      message: 'has nothing to run; write `proxy` or `decision` with `registry` or `sync`, or `registry` alone',
    });
  } else if (proxy && registry && sync) {
    issues.push({
      path: ['sync'],
      at: 'key',
      message: 'stands beside `registry`; routes come from one of them, so take the other out',
    });
  } else if (proxy && !registry && !sync) {
    issues.push({
      path: [named],
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

function workerIssues(raw: RawSection): Issue[] {
  const { workers } = raw;
  const several =
    workers === 'auto' || ((typeof workers === 'number' || typeof workers === 'string') && Number(workers) > 1);
  if (!several || Object.hasOwn(raw, 'proxy') || Object.hasOwn(raw, 'decision')) return [];
  return [{ path: ['workers'], message: 'stands without `proxy` and `decision`, which workers serve; take it out' }];
}

function jwtIssues(raw: RawSection): Issue[] {
  const path = ['registry', 'jwt'];
  const jwt = valueAt(raw, path);
  if (!isMap(jwt)) return [];
  const given = ['secret', 'public_key', 'jwks_url'].filter((key) => jwt[key] !== undefined);
  if (given.length === 1) return [];
  const wrong = given.length === 0 ? 'says nothing to check tokens with' : `has ${given.join(' and ')}`;
  return [{ path, at: 'key', message: `${wrong}; write exactly one of secret, public_key and jwks_url` }];
}

function syncIssues(raw: RawSection): Issue[] {
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

/** Complaints about every item of the list at `path` whose `field` an earlier item has too. */
function repeated(raw: RawSection, path: Path, field: string, message: string): Issue[] {
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
function methodIssues(raw: RawSection): Issue[] {
  const { proxy, decision, routes } = raw;
  if (!Array.isArray(routes)) return [];
  const listeners = [proxy, ...(Array.isArray(decision) ? decision : [])].filter(isMap);
  const added = listeners.length === 0 ? http.METHODS : listeners.flatMap(({ methods }) => methods ?? []);
  const allowed = allowedMethods(
    added.flatMap((name: unknown) => (typeof name === 'string' ? [name.toUpperCase()] : [])),
  );
  return routes.flatMap((route: unknown, index): Issue[] => {
    if (!isMap(route) || typeof route['method'] !== 'string') return [];
    const method = route['method'].toUpperCase();
    const wrong = METHOD.test(method) ? refuseMethod(method, allowed) : undefined;
    return wrong === undefined ? [] : [{ path: ['routes', index, 'method'], message: wrong }];
  });
}

/** Two routes with one method and one pattern key cannot exist. */
function routeIssues(raw: RawSection): Issue[] {
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
