// A crawler that calls itself a browser: every route of a small process is shown as the page for people, with descriptions
// in letters that double a string. The process lives on, and holds hardly more than after the same routes as JSON.
import path from 'node:path';
import { ask } from '../../../bench/check.ts';
import { NODE, readMemoryMb, SERVER_CORE, startServer, type Server } from '../../../bench/process.ts';
import { runLoad } from '../../../bench/stage.ts';
import { temporaryFolder } from '../../support/process.ts';
import type { RequestsResult } from './load/requests.ts';
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import { ROOT, type Stage } from './stage.ts';

/** What Node takes by itself on a machine of 256 MiB. */
const OLD_SPACE_MB = 140;
const PAY_TO = `0x${'1'.repeat(40)}`;
/** How often every route is asked for: the least of what is held behind each is what stays. */
const ROUNDS = 2;
const COLLECTOR = path.join(import.meta.dirname, 'collector.ts');

export async function crawlPages(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { routes, heldMb } = plan.pages;
  const folder = temporaryFolder();
  const file = folder.write('tollgate.yaml', configuration(stage, routes));
  const flags = [`--max-old-space-size=${OLD_SPACE_MB}`, '--import', COLLECTOR];
  const args = [...flags, `${ROOT}/src/main.ts`, 'serve', '-c', file];
  const server = await startServer({ name: 'small Tollgate', file: NODE, args, core: SERVER_CORE }, ['proxy', 'admin']);
  try {
    const { pid } = server;
    const crawl = (as: 'json' | 'page', rounds: number): Promise<RequestsResult> =>
      runLoad<RequestsResult>('../test/lab/endurance/load/requests.ts', {
        ...{ port: server.port('proxy'), pid, kind: { name: 'crawl', routes, as } },
        ...{ connections: 16, count: routes * rounds, perSecond: 0 },
      });
    const leastMb = async (as: 'json' | 'page'): Promise<number> => {
      let least = Infinity;
      for (let round = 0; round < ROUNDS; round++) {
        await crawl(as, 1);
        least = Math.min(least, await heldBy(server));
      }
      return least;
    };
    const jsonMb = await leastMb('json');
    const residentMb = readMemoryMb(pid).resident;
    const pages = await crawl('page', 1);
    notes.equal(`answers to ${routes} routes as pages`, pages.statuses, { 402: routes });
    notes.equal('connections that broke', pages.broken, 0);
    notes.report('CPU of each page, us', pages.cpuUsEach.toFixed(0));
    const grownMb = (await leastMb('page')) - jsonMb;
    notes.atMost(`memory that ${routes} routes as pages hold, beside what they hold as JSON`, grownMb, heldMb, ' MiB');
    const { resident } = readMemoryMb(pid);
    notes.report('resident behind JSON; behind pages, MiB', `${residentMb.toFixed(0)}; ${resident.toFixed(0)}`);
    const free = await ask(server.port('proxy'), { method: 'GET', path: '/free' });
    notes.equal('a free request afterwards', free.status, 200);
  } finally {
    await server.stop();
    folder.remove();
  }
}

/** Heap in use and memory outside of it, MiB, once its garbage was collected. */
async function heldBy(server: Server): Promise<number> {
  const collections = /^nodejs_gc_duration_seconds_count\{kind="major"\} (\d+)/m;
  const scrape = async (): Promise<string> =>
    (await ask(server.port('admin'), { method: 'GET', path: '/metrics' })).body.toString();
  const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1]);
  // None is told before the first one.
  const collectedIn = (text: string): number => numberIn(text, collections) || 0;
  const before = collectedIn(await scrape());
  process.kill(server.pid, 'SIGUSR2');
  let text = await scrape();
  while (collectedIn(text) <= before) text = await scrape();
  const [heap, external] = ['heap_size_used', 'external_memory'].map((name) =>
    numberIn(text, new RegExp(`^nodejs_${name}_bytes (\\d+)`, 'm')),
  );
  return ((heap ?? NaN) + (external ?? NaN)) / 1024 ** 2;
}

function configuration({ upstream, facilitator }: Stage, routes: number): string {
  const description = '\u20ac'.repeat(60);
  const rows = Array.from(
    { length: routes },
    (_, index) =>
      `  - { route_pattern: /crawl/${index}, method: GET, amount: "0.01", description: "${description} ${index}" }`,
  );
  return [
    `proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:${upstream.port('upstream')}", timeouts: { drain_delay: 0s, drain: 2s } }`,
    'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
    'admin: { listen: 127.0.0.1:0 }',
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "${PAY_TO}", facilitators: ["http://127.0.0.1:${facilitator.port('facilitator')}"] }]`,
    'log: { access: false }',
    'routes:',
    ...rows,
  ].join('\n');
}
