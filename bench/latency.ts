// The scenario `latency`: what a request costs in time while nobody is busy. A fixed rate, far below what any contender
// can do, over a schedule that does not wait for answers; what the upstream takes by itself is taken off, round by round.
import { checkFree } from './check.ts';
import { shoot, startProxyPeers, WORKING_SET } from './load.ts';
import type { PacedJob, PacedResult } from './paced.ts';
import { DIRECT, NGINX } from './names.ts';
import type { Server } from './process.ts';
import type { Row, Section } from './report.ts';
import { freePaths } from './routes.ts';
import {
  describeSection,
  mainCount,
  measureInTurn,
  runLoad,
  startTollgates,
  withPool,
  type Contender,
  type Stage,
} from './stage.ts';

export const RATE = 2000;
export const PACED_CONNECTIONS = 32;

export function measureLatency(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const paths = freePaths(mainCount(stage.plan), WORKING_SET);
    const [path = '/'] = paths;
    const contender = (name: string, server: Server, port: number): Contender => ({
      name,
      check: async () => {
        await checkFree(port, stage.witness, 'GET', path);
        // At this rate alone V8 would still be learning when the last round is over.
        const load = { method: 'GET', paths, status: 200, start: '', bytes: 0, reaches: 'every' } as const;
        if (server !== stage.upstream) await shoot(stage, server, port, stage.plan.warmSeconds, load);
      },
      measure: async (seconds) => {
        const job: PacedJob = {
          port,
          requests: paths.map((target) => ({ path: target, status: 200 })),
          ratePerSecond: RATE,
          connections: PACED_CONNECTIONS,
          burstSeconds: stage.plan.burstSeconds,
          seconds,
          pid: server.pid,
        };
        const { faults, requests, cpuUs, p50Us, p99Us, maxMs } = await runLoad<PacedResult>('paced.ts', job);
        return { round: { p50Us, p99Us, maxMs, cpuUs: cpuUs / requests }, faults };
      },
    });
    const contenders = [contender(DIRECT, stage.upstream, stage.upstream.port('upstream'))];
    const { servers, skipped } = await startProxyPeers(stage, pool, 'paced');
    for (const { name, server } of servers) contenders.push(contender(name, server, server.port('proxy')));
    for (const { name, tollgate } of await startTollgates(stage, pool, [mainCount(stage.plan)]))
      contenders.push(contender(name, tollgate, tollgate.port('proxy')));
    const measured = await measureInTurn({ ...stage, plan: { ...stage.plan, warmSeconds: 0 } }, contenders);
    const rows = withAdded(measured.rows);
    return describeSection(
      stage,
      { ...measured, rows, skipped: [...skipped, ...measured.skipped] },
      {
        name: 'latency',
        title: `Free GET at ${RATE} requests/s over ${PACED_CONNECTIONS} connections`,
        columns: [
          { key: 'addedUs', title: 'added p50 us', digits: 0 },
          { key: 'p50Us', title: 'p50 us', digits: 0 },
          { key: 'p99Us', title: 'p99 us', digits: 0 },
          { key: 'maxMs', title: 'longest ms', digits: 1 },
          { key: 'cpuUs', title: 'CPU us/request', digits: 1 },
        ],
        references: { key: 'addedUs', rows: [NGINX] },
        remarks: [
          'Requests leave by a schedule that waits for no answer. p50 counts from when a request was issued, waiting for a free connection included; p99 and the longest from when it was due, which adds the up to 1 ms by which the load itself is late. What is added is p50 less that of the upstream alone in the same round.',
        ],
      },
    );
  });
}

/** What each round added to the direct way of the same round. */
function withAdded(rows: readonly Row[]): Row[] {
  const direct = rows.find(({ name }) => name === DIRECT);
  return rows.map((row) => ({
    ...row,
    rounds: row.rounds.map((round, index) => {
      const base = direct?.rounds[index]?.['p50Us'];
      const own = round['p50Us'];
      return row === direct || base === undefined || own === undefined ? round : { ...round, addedUs: own - base };
    }),
  }));
}
