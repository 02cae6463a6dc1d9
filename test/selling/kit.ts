// An all-in-one in this process that sells by plans, over a real upstream and a real store, with a clock that a test may set
// forward and a facilitator that believes what it is told. For what plans decide; money on real chains is tested elsewhere.
import { createServer, request, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startTollgate, type Tollgate } from '../../src/compose.ts';
import type { PartWrappers } from '../../src/compose/served-proxy.ts';
import { readConfig } from '../../src/config/load.ts';
import { resolveSecrets } from '../../src/config/first-start.ts';
import type { Config } from '../../src/config/config.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { mintToken } from '../../src/registry/auth/dashboard-tokens.ts';
import { createLog, type LogFields } from '../../src/host/log.ts';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { temporaryFolder } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

export type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };
type Headers = Readonly<Record<string, string | readonly string[]>>;
export type Ask = { readonly method?: string; readonly headers?: Headers; readonly body?: string };

export type PlanKit = {
  readonly upstream: Upstream;
  /** Folder of its configuration and its store. */
  readonly folder: string;
  readonly lines: readonly LogFields[];
  /** Sends a request, the target byte for byte. It is answered, and over and done with at Tollgate: counted, logged and kept. */
  readonly ask: (target: string, ask?: Ask) => Promise<Answer>;
  /** Sends it with a payment of what a 402 for it asks. */
  readonly pay: (target: string, ask?: Ask) => Promise<Answer>;
  /** Headers that the upstream saw last. */
  readonly told: () => IncomingHttpHeaders;
  readonly metrics: () => Promise<string>;
  readonly ready: () => Promise<string>;
  readonly registry: (path: string, ask?: Ask) => Promise<Answer>;
  /** Calls the registry as a dashboard does. */
  readonly dashboard: (method: string, path: string, body?: object) => Promise<Answer>;
  /** Sets the clock forward. */
  readonly pass: (ms: number) => void;
  /** Has the clock stand still at the next whole second and `ms`; `pass` moves it on. */
  readonly hold: (ms?: number) => void;
  /** Has the clock stand still at a time; `pass` moves it on. */
  readonly standAt: (now: number) => void;
  /** Sets the clock to the time of this machine and has it run. */
  readonly release: () => void;
  readonly now: () => number;
  readonly reload: (text: string) => Promise<void>;
  /** Address of a listener, such as `admin`. */
  readonly urlOf: (listener: string) => string;
  /** Calls of the facilitator, such as `verify`. */
  readonly facilitated: readonly string[];
  readonly close: () => Promise<void>;
};

const JWT_SECRET = 'a-secret-of-the-plan-kit-of-32-bytes';
export const API_KEY = 'a-key-of-the-plan-kit-1';

type Money = { readonly facilitator: string; readonly rpcUrl: string };

/** The configuration of the kit around `text`, which says routes and plans. */
function around(text: string, upstream: string, { facilitator, rpcUrl }: Money, proxy: string): string {
  return [
    `proxy: { listen: "127.0.0.1:0", upstream: "${upstream}", timeouts: { drain_delay: 0s }${proxy} }`,
    `registry: { listen: "127.0.0.1:0", store: "sqlite:tollgate.db", api_keys: [{ name: kit, key: ${API_KEY}, scopes: [sdk, ledger] }], jwt: { secret: ${JWT_SECRET} } }`,
    'admin: { listen: "127.0.0.1:0" }',
    `receivers: [{ id: default, network: base-sepolia, rpc_url: ${rpcUrl}, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [{ url: "${facilitator}", timeouts: { verify: 30s, settle: 30s } }] }]`,
    text,
  ].join('\n');
}

export function readText(text: string, folder: string, now?: number): Config {
  const read = readConfig(text, {
    ...{ file: 'plans.yaml', path: `${folder}/plans.yaml`, env: {}, networks: NETWORKS },
    now: now ?? Date.now(),
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const log = createLog('error', () => undefined, Date.now);
  const resolved = resolveSecrets(read.config, { random: createRandom(), log });
  if (!resolved.ok) throw new Error(resolved.problem);
  return resolved.config;
}

export async function startPlans(
  text: string,
  {
    proxy = '',
    handle,
    files: given = {},
    behind,
    aroundPasses,
    money,
    startsMsAgo = 0,
  }: {
    proxy?: string;
    handle?: RequestListener;
    files?: Readonly<Record<string, string>>;
    /** URL of an API that stands in for the upstream of the kit. */
    behind?: string;
    /** Put around the books of passes. */
    aroundPasses?: PartWrappers['aroundPasses'];
    /** A chain and its facilitator, in place of the one that believes what it is told. */
    money?: Money;
    /** By how much its clock is slow at the start. Durations are then those of this machine: nothing under way is late as it moves. */
    startsMsAgo?: number;
  } = {},
): Promise<PlanKit> {
  const files = temporaryFolder();
  for (const [name, content] of Object.entries(given)) files.write(name, content);
  const upstream = await startUpstream(handle);
  const { url: facilitator, calls, close: closeFacilitator } = await startBeliever();
  const lines: LogFields[] = [];
  let ahead = -startsMsAgo;
  let still: { readonly now: number; readonly monotonic: number } | undefined;
  const now = (): number => (still?.now ?? systemClock.now()) + ahead;
  const monotonic = (): number =>
    startsMsAgo > 0 ? systemClock.monotonic() : (still?.monotonic ?? systemClock.monotonic()) + ahead;
  const standAt = (time: number): void => {
    // Whole, so that sums are the same in whatever order they are made: a test asks at the last millisecond.
    still = { now: time - ahead, monotonic: Math.ceil(systemClock.monotonic()) };
  };
  const over = new Set<unknown>();
  const waiting = new Map<unknown, () => void>();
  const log = createLog(
    'debug',
    (written) => {
      const line = JSON.parse(written) as LogFields;
      lines.push(line);
      if (line.msg !== 'request') return;
      over.add(line['request_id']);
      waiting.get(line['request_id'])?.();
    },
    now,
  );
  const configOf = (said: string): Config =>
    readText(
      around(
        ...([said, behind ?? upstream.url, money ?? { facilitator, rpcUrl: 'none' }] as const),
        proxy === '' ? '' : `, ${proxy}`,
      ),
      ...([files.folder, now()] as const),
    );
  const tollgate: Tollgate = await startTollgate(configOf(text), {
    ...{ log, random: createRandom(), version: '0.0.0', aroundPasses },
    clock: { now, monotonic },
  });
  const send = (listener: string, path: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Answer> => {
    const { address: host, port } = tollgate.addresses[listener] ?? { address: '', port: 0 };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const sized = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const req = request({ host, port, path, method, headers: { ...headers, ...sized }, agent: false }, (res) => {
      let text_ = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text_ += chunk));
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text_ }));
      res.on('error', reject);
    });
    req.on('error', reject).end(body);
    return promise;
  };
  // A client may have its answer before Tollgate has noted that it was handed over.
  const sendWhole = async (target: string, ask?: Ask): Promise<Answer> => {
    const answer = await send('proxy', target, ask);
    const id = answer.headers['x-request-id'];
    if (id !== undefined && !over.has(id)) await new Promise<void>((resolve) => void waiting.set(id, resolve));
    return answer;
  };
  return {
    ...{ upstream, folder: files.folder, lines, now, facilitated: calls },
    ask: sendWhole,
    pay: async (target, ask = {}) => {
      const asked = await sendWhole(target, ask);
      const terms = readTerms(String(asked.headers['payment-required']));
      const payment = makeUpPayment(terms, now());
      return sendWhole(target, { ...ask, headers: { ...ask.headers, 'payment-signature': payment } });
    },
    told: () => upstream.seen.at(-1)?.headers ?? {},
    metrics: async () => (await send('admin', '/metrics')).body,
    ready: async () => (await send('admin', '/readyz?verbose')).body,
    registry: (path, ask = {}) =>
      send('registry', path, { ...ask, headers: { authorization: `Bearer ${API_KEY}`, ...ask.headers } }),
    dashboard: async (method, path, body) => {
      const token = await mintToken(JWT_SECRET, {
        issuer: 'tollgate',
        audience: 'dashboard',
        ttlSeconds: 60,
        now: now(),
      });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      return send('registry', path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    },
    urlOf: (listener) => `http://127.0.0.1:${tollgate.addresses[listener]?.port}`,
    pass: (ms) => void (ahead += ms),
    hold: (ms = 0) => standAt(Math.ceil((systemClock.now() + ahead) / 1000) * 1000 + ms),
    standAt,
    release: () => {
      still = undefined;
      ahead = 0;
    },
    reload: (said) => tollgate.reload(configOf(said)),
    close: async () => {
      await tollgate.stop(false);
      await upstream.close();
      await closeFacilitator();
      files.remove();
    },
  };
}

/** A facilitator that takes every payment for good. `before` is awaited before each verdict and settlement. */
export async function startBeliever(
  before: (operation: string) => Promise<void> | undefined = () => undefined,
): Promise<{ url: string; calls: string[]; close: () => Promise<void> }> {
  const calls: string[] = [];
  const server = createServer((req, res) => {
    let text = '';
    req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const answer = async (): Promise<void> => {
      const operation = (req.url ?? '').slice(1);
      if (operation === 'supported') {
        res.end('{"kinds":[]}');
        return;
      }
      calls.push(operation);
      await before(operation);
      const { paymentPayload } = JSON.parse(text) as {
        paymentPayload: { payload: { authorization: { from: string; nonce: string } } };
      };
      const { from, nonce } = paymentPayload.payload.authorization;
      const settled = { success: true, transaction: nonce, network: 'eip155:84532', payer: from };
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify(operation === 'verify' ? { isValid: true, payer: from } : settled));
    };
    req.on('end', () => void answer());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, calls, close };
}

/** The value of a series of the text of /metrics; undefined if it is not there. */
export function seriesOf(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): string | undefined {
  const line = text
    .split('\n')
    .find(
      (each) =>
        (each.startsWith(`${name}{`) || each.startsWith(`${name} `)) &&
        Object.entries(labels).every(([label, value]) => each.includes(`${label}="${value}"`)),
    );
  return line?.split(' ').at(-1);
}

export function codeOf({ body }: Answer): unknown {
  return (JSON.parse(body) as { code?: unknown }).code;
}
