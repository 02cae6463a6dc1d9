// The scenario `payment-required`: unpaid requests for what costs something, without a pause between them. Beside Tollgate
// its peers: nginx and a bare node:http that answer the same bytes every time, and the reference middleware of x402.
import { setTimeout } from 'node:timers/promises';
import { ask, checkDemand, checkInterfaceBody, expect, type Answer } from './check.ts';
import { COLUMNS, LOADED_BY, shoot, WORKING_SET, type Load } from './load.ts';
import type { ConstantAnswer } from './peers/constant.ts';
import { besideDocumentName, CONSTANT, documentName, FEW, NGINX, X402_EXPRESS } from './names.ts';
import { demandPeers, x402Paths } from './peers/peers.ts';
import type { Server } from './process.ts';
import type { Section, Skipped } from './report.ts';
import { startTollgate } from './tollgate.ts';
import { freshPaidPath, paidPaths, ROUTE_AMOUNT } from './routes.ts';
import {
  freshName,
  mainCount,
  measureSection,
  startTollgates,
  withPool,
  type Contender,
  type Pool,
  type Stage,
} from './stage.ts';

/** How the body of every 402 starts (interface section 7.1). */
const DEMAND_START = '{"error":"Payment Required","charge_id":"chg_';

export function measureDemands(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const { witness } = stage;
    const contenders: Contender[] = [];
    const demand = (
      name: string,
      server: Server,
      paths: Load['paths'],
      path: string,
      interfaced: boolean,
      bytes: number,
    ): Contender => {
      const port = server.port('proxy');
      const start = interfaced ? DEMAND_START : '';
      return {
        name,
        check: async () => {
          const answer = await checkDemand(port, witness, path);
          if (interfaced) checkInterfaceBody(answer, ROUTE_AMOUNT);
        },
        measure: (seconds) =>
          shoot(stage, server, port, seconds, { method: 'GET', paths, status: 402, start, bytes, reaches: 'none' }),
      };
    };
    const skipped: Skipped[] = [];
    const main = mainCount(stage.plan);
    const counts = [...new Set([main, Math.max(...stage.plan.counts)])];
    const entrants = await startTollgates(stage, pool, counts);
    const [first] = entrants;
    if (first === undefined) throw new Error('no Tollgate was started');
    const sample = await checkDemand(first.tollgate.port('proxy'), witness, samplePath(first.routes));
    for (const { name, missing, sameBytes, start } of demandPeers()) {
      if (!stage.wants(name)) continue;
      if (missing !== undefined) {
        skipped.push({ name, reason: missing });
        continue;
      }
      stage.say(`starting ${name}`);
      const server = await pool.keep(start(constantOf(sample), stage));
      const paths = x402Paths(10);
      contenders.push(demand(name, server, paths, paths[0] ?? '/', sameBytes, sameBytes ? sample.body.length : 0));
    }
    // The same body for every route but for its own path and price.
    const least = sample.body.length / 2;
    for (const { name, routes, tollgate } of entrants) {
      contenders.push(demand(name, tollgate, paidPaths(routes, WORKING_SET), samplePath(routes), true, least));
      if (routes !== main) continue;
      const fresh = freshPaidPath(routes);
      contenders.push(demand(freshName(name), tollgate, fresh, `${fresh.prefix}first`, true, least));
    }
    contenders.push(...(await startDocuments(stage, pool, demand)));
    return measureSection(
      stage,
      contenders,
      {
        name: 'payment-required',
        title: 'Unpaid request, 402',
        columns: COLUMNS,
        references: { key: 'cpuUs', rows: [NGINX, CONSTANT, X402_EXPRESS] },
        remarks: [
          LOADED_BY,
          'nginx and node:http answer the same bytes every time; Tollgate makes a charge id of its own for each answer.',
        ],
      },
      skipped,
    );
  });
}

/** The document of what is sold beside a 402, both of one process: from memory it costs at most what a 402 costs. */
async function startDocuments(
  stage: Stage,
  pool: Pool,
  demand: (
    name: string,
    server: Server,
    paths: Load['paths'],
    path: string,
    interfaced: boolean,
    bytes: number,
  ) => Contender,
): Promise<readonly Contender[]> {
  const { folder, profiles, upstream, checkouts } = stage;
  const root = checkouts[0]?.root;
  if (root === undefined) return [];
  const name = documentName(FEW);
  stage.say(`starting ${name}`);
  const options = { label: name, root, routes: FEW, upstreamPort: upstream.port('upstream'), folder, profiles };
  const tollgate = await pool.keep(startTollgate({ ...options, discovery: true }));
  const port = tollgate.port('proxy');
  const path = samplePath(FEW);
  return [
    {
      name,
      check: async () => {
        for (;;) {
          const { status } = await ask(port, { method: 'GET', path: DOCUMENT });
          if (status === 200) return;
          expect(status === 503, `answers ${status} for ${DOCUMENT}`);
          await setTimeout(POLL_MS);
        }
      },
      measure: (seconds) =>
        shoot(stage, tollgate, port, seconds, {
          ...{
            method: 'GET',
            paths: [DOCUMENT],
            status: 200,
            start: '{"openapi":"3.1.0"',
            bytes: 1_000,
            reaches: 'none',
          },
        }),
    },
    demand(besideDocumentName(FEW), tollgate, paidPaths(FEW, WORKING_SET), path, true, 100),
  ];
}

const DOCUMENT = '/openapi.json';
const POLL_MS = 20;

function samplePath(routes: number): string {
  return paidPaths(routes, WORKING_SET)[0] ?? '/';
}

/** What Tollgate answered, without what Node or nginx write by themselves. */
function constantOf({ headers, body }: Answer): ConstantAnswer {
  const own = new Set(['content-length', 'connection', 'keep-alive', 'date', 'server']);
  const fields = Object.entries(headers).filter(([name]) => !own.has(name));
  return { status: 402, headers: fields.flatMap(([name, value]) => [name, String(value)]), body: body.toString() };
}
