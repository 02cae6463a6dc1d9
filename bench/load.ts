// The scenarios of small requests without a pause between them: free GETs, free POSTs and 402s, Tollgate with few and many
// routes beside its peers. What counts is CPU per request, from the server's own accounting; requests per second say
// nothing where the load's core was the slower one, which the column of the core's use shows.
import { checkDemand, checkFree, checkInterfaceBody, type Answer } from './check.ts';
import type { CannonJob, CannonResult } from './cannon.ts';
import type { ConstantAnswer } from './peers/constant.ts';
import { CONSTANT, demandPeers, HTTP_PROXY_3, NGINX, proxyPeers, X402_EXPRESS, x402Paths } from './peers/peers.ts';
import type { Server } from './process.ts';
import type { Column, Section, Skipped } from './report.ts';
import { FRESH_FREE, freePaths, freshPaidPath, paidPaths, ROUTE_AMOUNT } from './routes.ts';
import {
  describeSection,
  measureInTurn,
  peakMb,
  runLoad,
  startTollgates,
  tollgateName,
  withPool,
  type Contender,
  type Pool,
  type Stage,
} from './stage.ts';
import { UPSTREAM_BODY } from './upstream-answers.ts';

const CONNECTIONS = 64;
/** Different paths that a load asks for in turn: a busy API's working set. */
export const WORKING_SET = 200;
export const DIRECT = 'upstream direct';

const COLUMNS: readonly Column[] = [
  { key: 'cpuUs', title: 'CPU us/request', digits: 1 },
  { key: 'perSecond', title: 'requests/s', digits: 0 },
  { key: 'corePercent', title: 'core used %', digits: 0 },
  { key: 'p50Ms', title: 'p50 ms', digits: 2 },
  { key: 'p99Ms', title: 'p99 ms', digits: 2 },
  { key: 'peakMb', title: 'peak MB', digits: 0 },
];

const CLOSED_LOOP =
  'p50 and p99 are those of a closed loop at full load: how long the queue was, not how fast an answer is. The scenario `latency` says that.';

type Load = Pick<CannonJob, 'method' | 'body' | 'paths' | 'expect'>;

export function measureFree(stage: Stage): Promise<Section> {
  return measureForwarding(stage, 'GET', {
    name: 'free',
    title: 'Free GET, 197 bytes',
    columns: COLUMNS,
    references: { key: 'cpuUs', rows: [NGINX, HTTP_PROXY_3, tollgateName(stage.plan.counts[0] ?? 0)] },
    remarks: [CLOSED_LOOP],
  });
}

export function measurePost(stage: Stage): Promise<Section> {
  return measureForwarding(stage, 'POST', {
    name: 'post',
    title: 'Free POST, small body',
    columns: COLUMNS,
    references: { key: 'cpuUs', rows: [NGINX, HTTP_PROXY_3] },
    remarks: [CLOSED_LOOP],
  });
}

type About = Pick<Section, 'name' | 'title' | 'columns' | 'references' | 'remarks'>;

function measureForwarding(stage: Stage, method: 'GET' | 'POST', about: About): Promise<Section> {
  return withPool(async (pool) => {
    const { upstream, witness } = stage;
    const load = (paths: CannonJob['paths']): Load => ({
      method,
      body: method === 'POST' ? 'small' : 'none',
      paths,
      expect: { status: 200, start: UPSTREAM_BODY },
    });
    const free = (name: string, server: Server, port: number, paths: CannonJob['paths'], path: string): Contender => ({
      name,
      check: () => checkFree(port, witness, method, path),
      measure: () => shoot(stage, server, port, load(paths), 'every'),
    });
    const paths = freePaths(Math.max(...stage.plan.counts), WORKING_SET);
    const [path = '/'] = paths;
    const contenders: Contender[] = [free(DIRECT, upstream, upstream.port('upstream'), paths, path)];
    const { servers, skipped } = await startProxyPeers(stage, pool, method === 'GET');
    for (const { name, server } of servers) contenders.push(free(name, server, server.port('proxy'), paths, path));
    const entrants = await startTollgates(stage, pool);
    for (const { name, tollgate } of entrants)
      contenders.push(free(name, tollgate, tollgate.port('proxy'), paths, path));
    if (method === 'GET') {
      for (const { name, tollgate } of largest(stage, entrants))
        contenders.push(
          free(freshName(name), tollgate, tollgate.port('proxy'), FRESH_FREE, `${FRESH_FREE.prefix}first`),
        );
    }
    const measured = await measureInTurn(stage, contenders);
    return describeSection(stage, { ...measured, skipped: [...skipped, ...measured.skipped] }, about);
  });
}

export function measureDemands(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const { witness } = stage;
    const contenders: Contender[] = [];
    const entrants = await startTollgates(stage, pool);
    const demand = (
      name: string,
      server: Server,
      paths: CannonJob['paths'],
      path: string,
      own: boolean,
    ): Contender => ({
      name,
      check: async () => {
        const answer = await checkDemand(server.port('proxy'), witness, path);
        if (own) checkInterfaceBody(answer, ROUTE_AMOUNT);
      },
      measure: () =>
        shoot(
          stage,
          server,
          server.port('proxy'),
          { method: 'GET', body: 'none', paths, expect: { status: 402, ...(own ? { start: DEMAND_START } : {}) } },
          'none',
        ),
    });
    const skipped: Skipped[] = [];
    const [first] = entrants;
    if (first === undefined) throw new Error('no Tollgate was started');
    const sample = await checkDemand(first.tollgate.port('proxy'), witness, samplePath(first.routes));
    if (stage.checkouts.length === 1) {
      for (const { name, missing, start } of demandPeers()) {
        if (missing !== undefined) {
          skipped.push({ name, reason: missing });
          continue;
        }
        const server = await pool.keep(start(constantOf(sample), stage.folder));
        const paths = x402Paths(10);
        contenders.push(demand(name, server, paths, paths[0] ?? '/', false));
      }
    }
    for (const { name, routes, tollgate } of entrants)
      contenders.push(demand(name, tollgate, paidPaths(routes, WORKING_SET), samplePath(routes), true));
    for (const { name, routes, tollgate } of largest(stage, entrants)) {
      const fresh = freshPaidPath(routes);
      contenders.push(demand(freshName(name), tollgate, fresh, `${fresh.prefix}first`, true));
    }
    const measured = await measureInTurn(stage, contenders);
    return describeSection(
      stage,
      { ...measured, skipped: [...skipped, ...measured.skipped] },
      {
        name: 'payment-required',
        title: 'Unpaid request, 402',
        columns: COLUMNS,
        references: { key: 'cpuUs', rows: [NGINX, CONSTANT, X402_EXPRESS] },
        remarks: [
          CLOSED_LOOP,
          'nginx and node:http answer the same bytes every time; Tollgate makes a charge id of its own for each answer.',
        ],
      },
    );
  });
}

/** How the body of every 402 starts (interface section 7.1). */
const DEMAND_START = '{"error":"Payment Required","charge_id":"chg_';

/** One burst and one measured run. `reaches`: whether every answer, or none, must have reached the upstream. */
async function shoot(
  { plan, witness }: Stage,
  server: Server,
  port: number,
  load: Load,
  reaches: 'every' | 'none',
): ReturnType<Contender['measure']> {
  const before = await witness();
  const job: CannonJob = {
    ...load,
    origin: `http://127.0.0.1:${port}`,
    connections: CONNECTIONS,
    burstSeconds: plan.burstSeconds,
    seconds: plan.seconds,
    pid: server.pid,
  };
  const result = await runLoad<CannonResult>('cannon.ts', job);
  const reached = (await witness()).requests - before.requests;
  const faults = [...result.faults];
  // Each of the two runs ends with requests under way, one on each connection.
  const least = reaches === 'every' ? result.answers : 0;
  const most = reaches === 'every' ? result.answers + 2 * CONNECTIONS : 0;
  if (reached < least || reached > most)
    faults.push(`${reached} requests reached the upstream for ${result.answers} answers`);
  const { requests, seconds, cpuUs, p50Ms, p99Ms } = result;
  const round = {
    cpuUs: cpuUs / requests,
    perSecond: requests / seconds,
    corePercent: cpuUs / seconds / 10_000,
    p50Ms,
    p99Ms,
    peakMb: peakMb(server.pid),
  };
  return { round, faults };
}

export async function startProxyPeers(
  stage: Stage,
  pool: Pool,
  all: boolean,
): Promise<{ servers: { name: string; server: Server }[]; skipped: Skipped[] }> {
  const servers: { name: string; server: Server }[] = [];
  const skipped: Skipped[] = [];
  if (stage.checkouts.length > 1) return { servers, skipped };
  for (const { name, missing, large, start } of proxyPeers()) {
    if (!all && !large) continue;
    if (missing !== undefined) {
      skipped.push({ name, reason: missing });
      continue;
    }
    stage.say(`starting ${name}`);
    servers.push({ name, server: await pool.keep(start(stage.upstream.port('upstream'), stage.folder)) });
  }
  return { servers, skipped };
}

function largest<E extends { readonly routes: number }>({ plan }: Stage, entrants: readonly E[]): E[] {
  const most = Math.max(...plan.counts);
  return entrants.filter(({ routes }) => routes === most);
}

/** Where the suffix of an older checkout stays at the end. */
function freshName(name: string): string {
  return name.replace(/ routes/, ' routes, every path new');
}

function samplePath(routes: number): string {
  return paidPaths(routes, WORKING_SET)[0] ?? '/';
}

/** What Tollgate answered, without what Node or nginx write by themselves. */
function constantOf({ headers, body }: Answer): ConstantAnswer {
  const own = new Set(['content-length', 'connection', 'keep-alive', 'date', 'server']);
  const fields = Object.entries(headers).filter(([name]) => !own.has(name));
  return { status: 402, headers: fields.flatMap(([name, value]) => [name, String(value)]), body: body.toString() };
}
