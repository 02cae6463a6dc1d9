// A registry over real HTTP and a real SQLite file in a folder of its own, with a clock that tests can move.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FieldError } from '../../src/domain/problem.ts';
import { allowedMethods } from '../../src/domain/routing/method.ts';
import { FULL_FOLDING } from '../../src/domain/routing/profile.ts';
import type { RouteWire } from '../../src/domain/routing/route.ts';
import { compileSnapshot, type Snapshot } from '../../src/domain/routing/snapshot.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { mintToken } from '../../src/registry/auth/dashboard-tokens.ts';
import {
  createRegistry,
  type Registry,
  type RegistryDeps,
  type RegistrySettings,
} from '../../src/registry/registry.ts';
import type { DeclaredRoute } from '../../src/registry/routes/three-way-merge.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import type { ChargesStore, Store } from '../../src/registry/store/ports.ts';
import { createTotalsBook } from '../../src/registry/totals/totals-book.ts';
import { explainWhy } from '../../src/compose/why.ts';
import type { StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import { openLedger, type SqliteLedger } from '../support/sqlite-ledger.ts';
import type { SyncFile } from '../../src/registry/store/sqlite/disk.ts';
import { createWebhooks, type WebhookEndpoint } from '../../src/registry/webhooks/webhook-standings.ts';
import { openStore, type RoutesAndKeys } from '../../src/registry/store/sqlite/store.ts';
import { createApiKey } from '../../src/registry/auth/api-keys.ts';
import type { Scope } from '../../src/domain/scope.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { keepSecret } from '../support/canaries.ts';

export const SECRET = 'a secret of thirty-two bytes, or more';
export const SDK_KEY = 'configured-sdk-key-1';
export const LEDGER_KEY = 'configured-ledger-key-1';
for (const [name, secret] of Object.entries({ SECRET, SDK_KEY, LEDGER_KEY })) keepSecret(name, secret);

export const LIST = '/v1/billing/protected-routes';
export const FEED = '/v1/protected-routes/routes';
export const REGISTER = '/v1/protected-routes/routes/register';
export const MATCH = '/v1/protected-routes/match';
export const EVENTS = '/v1/protected-routes/events';

/** An endpoint whose URL holds a secret. */
export const WEBHOOKS: readonly WebhookEndpoint[] = [
  { id: 'books', url: 'https://hooks.example.com/tollgate?token=hidden', events: ['*'] },
];

/** Routes as a configuration declares them, with its defaults. */
export function declared(
  routes: readonly (Partial<DeclaredRoute> & Pick<DeclaredRoute, 'route_pattern' | 'amount'>)[],
): readonly DeclaredRoute[] {
  return routes.map((route) => ({
    ...{ method: '*', currency: 'USD', name: null, description: null },
    ...{ status: 'active', allow_anonymous: true, receiver_config_id: null, plan_id: null },
    ...route,
  }));
}

export const SETTINGS: RegistrySettings = {
  jwt: { issuer: 'tollgate', audience: 'dashboard', key: { kind: 'secret', secret: SECRET } },
  apiKeys: [
    { name: 'app', key: SDK_KEY, scopes: ['sdk'] },
    { name: 'sidecar-ledger', key: LEDGER_KEY, scopes: ['ledger'] },
  ],
  receivers: RECEIVERS,
  unknownReceiver: 'store',
  corsOrigins: ['https://dash.example.com'],
  undeclaredMethods: 'forward',
  methods: allowedMethods(),
  targetBytes: 8192,
};

/** Every member that some answer has: tests compare, they do not narrow. */
export type Wire = RouteWire & {
  data: RouteWire[];
  next_cursor: string | null;
  code: string;
  type: string;
  detail: string;
  errors: FieldError[];
  existing_id: string;
  matched: boolean;
  ambiguous?: boolean;
  route: RouteWire | null;
};

/** `list`: the body where it is a bare array. */
export type Reply = { status: number; headers: IncomingHttpHeaders; body: Buffer; json: Wire; list: RouteWire[] };
export type Ask = { auth?: string | undefined; body?: unknown; headers?: Record<string, string | string[]> };

export type Kit = {
  port: number;
  file: string;
  folder: string;
  store: RoutesAndKeys;
  /** A key in the store. */
  createKey: (name: string, scopes: readonly Scope[]) => ReturnType<typeof createApiKey>;
  revokeKey: (id: string) => Promise<unknown>;
  ledger: SqliteLedger;
  registry: Registry;
  clock: { now: () => number; monotonic: () => number; advance: (ms: number) => void };
  logs: string[];
  /** `as` is who asks: `sdk`, `dashboard`, `nobody` or a credential. */
  ask: (method: string, path: string, ask?: Ask) => Promise<Reply>;
  dashboard: (method: string, path: string, ask?: Ask) => Promise<Reply>;
  sdk: (method: string, path: string, ask?: Ask) => Promise<Reply>;
  close: () => Promise<void>;
};

export function temporaryFolder(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-registry-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export async function startRegistry(
  options: Partial<
    Pick<RegistryDeps, 'limits' | 'fetch' | 'snapshot' | 'readDeskFiles' | 'providerCallMs' | 'receiverServices'>
  > & {
    settings?: Partial<RegistrySettings>;
    file?: string;
    changesKept?: number;
    /** One that other registries serve as well, in place of a file; its opener closes it. */
    store?: Pick<Store, 'routes' | 'apiKeys' | 'isShared'> & Partial<Pick<Store, 'desk' | 'audit'>>;
    /** The ledger that is asked, in place of the file's; its opener closes it. */
    reports?: StoredLedger;
    /** The sums that are asked, in place of the file's; its opener closes them. */
    sums?: Pick<ChargesStore, 'totals'>;
    /** In place of the disk. */
    syncFile?: SyncFile;
    withoutLedger?: true;
    /** Milliseconds since the epoch, where a test holds the clock. */
    now?: () => number;
  } = {},
): Promise<Kit> {
  const temporary = temporaryFolder();
  const file = options.file ?? join(temporary.folder, 'tollgate.db');
  let offset = 0;
  const clock = {
    now: () => (options.now?.() ?? Date.now()) + offset,
    monotonic: () => (options.now?.() ?? performance.now()) + offset,
    advance: (ms: number) => void (offset += ms),
  };
  const random = createRandom();
  const logs: string[] = [];
  const log = createLog('debug', (line) => void logs.push(line), clock.now);
  const kept = options.changesKept === undefined ? {} : { changesKept: options.changesKept };
  const { syncFile } = options;
  const own = openStore(file, {
    random,
    writesApart: true,
    ...kept,
    ...(syncFile ? { syncFile } : {}),
  });
  const store: RoutesAndKeys & Partial<Pick<Store, 'isShared'>> = options.store
    ? { desk: own.desk, audit: own.audit, attention: own.attention, ...options.store, close: own.close }
    : own;
  let snapshot: Snapshot | undefined;
  // As in one process: beside the routes, in the same file.
  const ledger = openLedger(file, { now: clock.now, log });
  const webhooks = createWebhooks(ledger.store.webhooks, () => WEBHOOKS);
  const totals = createTotalsBook((options.sums ?? ledger.store).totals, {
    ...{ log, clock, lost: () => undefined, hoursKeptMs: () => 90 * 24 * 3_600_000, countedUntil: () => undefined },
  });
  const registry: Registry = await createRegistry({
    store,
    ...(options.withoutLedger ? {} : { ledger: options.reports ?? ledger, totals, webhooks }),
    networks: NETWORKS,
    why: (id) =>
      explainWhy(id, {
        ...{ search: (options.reports ?? ledger).search, findByChargeId: undefined, refusals: undefined, clock },
        ...{ quotes: { explain: () => ({ kind: 'none' }) }, quoteTtlMs: 300_000, routeOf: () => undefined },
      }),
    settings: { ...SETTINGS, ...options.settings },
    snapshot:
      options.snapshot ??
      (() =>
        (snapshot ??= compileSnapshot(registry.routeSet(), {
          encodedSlashes: 'refuse',
          doubleSlashes: 'merge',
          folding: FULL_FOLDING,
        }))),
    log,
    clock,
    random,
    version: '1.2.3',
    ...(options.limits ? { limits: options.limits } : {}),
    ...(options.fetch ? { fetch: options.fetch } : {}),
    ...(options.receiverServices ? { receiverServices: options.receiverServices } : {}),
    ...(options.readDeskFiles ? { readDeskFiles: options.readDeskFiles } : {}),
    ...(options.providerCallMs ? { providerCallMs: options.providerCallMs } : {}),
  });
  registry.subscribe(() => (snapshot = undefined));
  // As a real listener has it: where a request has no body, the stream of its body has ended before anybody reads it.
  const server = createServer({ optimizeEmptyRequests: true }, registry.handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const ask = (method: string, path: string, given: Ask = {}): Promise<Reply> => send(port, method, path, given);
  return {
    port,
    file,
    folder: temporary.folder,
    store,
    createKey: (name, scopes) => createApiKey(store.apiKeys, { name, scopes }, { random, now: clock.now }),
    revokeKey: (id) => store.apiKeys.revoke(id, new Date(clock.now()).toISOString()),
    ledger,
    registry,
    clock,
    logs,
    ask,
    dashboard: async (method, path, given = {}) =>
      ask(method, path, { auth: await token({ now: clock.now() }), ...given }),
    sdk: (method, path, given = {}) => ask(method, path, { auth: SDK_KEY, ...given }),
    close: async () => {
      await registry.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await ledger.close();
      store.close();
      temporary.remove();
    },
  };
}

export function token(
  rest: { now?: number; ttlSeconds?: number; issuer?: string; audience?: string; secret?: string } = {},
): Promise<string> {
  const { secret = SECRET, ...claims } = rest;
  return mintToken(secret, { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 60, now: Date.now(), ...claims });
}

/** One request on a connection of its own. A body that is not a string or bytes is sent as JSON. */
export function send(port: number, method: string, path: string, { auth, body, headers = {} }: Ask): Promise<Reply> {
  const bytes =
    body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const all: Record<string, string | string[]> = { ...headers };
  if (auth !== undefined) all['Authorization'] ??= `Bearer ${auth}`;
  const named = Object.keys(all).some((name) => name.toLowerCase() === 'content-type');
  if (bytes !== undefined) {
    if (!named) all['Content-Type'] = 'application/json';
    if (!('Transfer-Encoding' in all)) all['Content-Length'] = String(Buffer.byteLength(bytes));
  }
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, method, path, headers: all, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () => {
        const whole = Buffer.concat(chunks);
        const readable =
          /json/.test(res.headers['content-type'] ?? '') && !res.headers['content-encoding'] && whole.length > 0;
        const json = JSON.parse(readable ? whole.toString() : 'null');
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: whole, json, list: json });
      });
    });
    req.on('error', reject);
    req.end(bytes);
  });
}

export type SseEvent = { event: string; id: string; data: unknown };

/** An event stream: `next` waits for the next change or reset, `head` for the next heartbeat; `closed` resolves when it ends. */
export async function openEvents(
  port: number,
  headers: Record<string, string>,
  path = EVENTS,
): Promise<{
  status: number;
  headers: IncomingHttpHeaders;
  text: () => string;
  next: () => Promise<SseEvent>;
  head: () => Promise<SseEvent>;
  until: (what: string) => Promise<void>;
  closed: Promise<void>;
  close: () => void;
}> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, path, headers, agent: false }, (res) => {
      const chunks: string[] = [];
      const text = (): string => chunks.join('');
      let rest = '';
      const events: SseEvent[] = [];
      const heads: SseEvent[] = [];
      res.setEncoding('utf8');
      res.on('data', (chunk: string) => {
        chunks.push(chunk);
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const lines = new Map(
            block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
          );
          const data = lines.get('data');
          const event = lines.get('event') ?? '';
          if (data !== undefined)
            (event === 'head' ? heads : events).push({ event, id: lines.get('id') ?? '', data: JSON.parse(data) });
        }
        wake();
      });
      const closed = new Promise<void>((done) => res.once('close', done));
      res.on('error', () => undefined);
      const wakes = new Set<() => void>();
      const wake = (): void => {
        for (const done of wakes) done();
        wakes.clear();
      };
      const woken = (): Promise<void> => new Promise((done) => void wakes.add(done));
      const first = async (of: SseEvent[]): Promise<SseEvent> => {
        for (;;) {
          const event = of.shift();
          if (event) return event;
          await woken();
        }
      };
      resolve({
        status: res.statusCode ?? 0,
        headers: res.headers,
        text,
        next: () => first(events),
        head: () => first(heads),
        until: async (what) => {
          while (!text().includes(what)) await woken();
        },
        closed,
        close: () => req.destroy(),
      });
    });
    req.on('error', reject);
    req.end();
  });
}
