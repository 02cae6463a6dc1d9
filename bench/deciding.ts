// The scenario `decision`: questions of a proxy that is there already, without a pause between them. An allow for what is free beside
// the free GET of the same process, which has the upstream's half as well, a 402 beside the proxy's 402, a constant answer to the same
// question, and what the question costs Caddy.
import { checkAllow, checkAskedDemand, checkConstant, checkDemand, checkFree, checkInterfaceBody } from './check.ts';
import { COLUMNS, LOADED_BY, shoot, startProxyPeers, WORKING_SET, type Load } from './load.ts';
import {
  allowName,
  askedDemandName,
  besideQuestionsName,
  CONSTANT,
  FORWARD_AUTH,
  HTTP_PROXY_3,
  tollgateName,
} from './names.ts';
import { ALLOW, startConstant } from './peers/peers.ts';
import type { Server } from './process.ts';
import type { Section } from './report.ts';
import { freePaths, paidPaths, ROUTE_AMOUNT } from './routes.ts';
import {
  mainCount,
  measureSection,
  PROCESSES,
  startProcesses,
  together,
  withPool,
  type Contender,
  type Stage,
} from './stage.ts';
import { UPSTREAM_BODY } from './upstream-answers.ts';

const DEMAND_START = '{"error":"Payment Required","charge_id":"chg_';

export function measureDecisions(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const { witness } = stage;
    const main = mainCount(stage.plan);
    const paths = freePaths(main, WORKING_SET);
    const [path = '/'] = paths;
    const contender = (
      name: string,
      server: Server,
      port: number,
      check: Contender['check'],
      load: Omit<Load, 'method'>,
    ): Contender => ({
      ...{ name, check },
      measure: (seconds) => shoot(stage, server, port, seconds, { method: 'GET', ...load }),
    });
    const question = { asked: 'question', paths, status: 200, start: '', bytes: 0, reaches: 'none' } as const;
    const free = { paths, status: 200, start: UPSTREAM_BODY, bytes: UPSTREAM_BODY.length, reaches: 'every' } as const;
    const contenders: Contender[] = [];
    if (stage.wants(CONSTANT)) {
      const server = await pool.keep(startConstant(ALLOW, stage));
      const port = server.port('proxy');
      contenders.push(contender(CONSTANT, server, port, () => checkConstant(port, ''), question));
    }
    const { servers, skipped } = await startProxyPeers(stage, pool, 'decision');
    for (const { name, server } of servers) {
      const port = server.port('proxy');
      contenders.push(contender(name, server, port, () => checkFree(port, witness, 'GET', path), free));
    }
    const costly = paidPaths(main, WORKING_SET);
    const [dear = '/'] = costly;
    const demand = { paths: costly, status: 402, start: DEMAND_START, bytes: 100, reaches: 'none' } as const;
    for (const { suffix, server } of await startProcesses(stage, pool, {
      label: allowName(main),
      routes: main,
      decision: true,
    })) {
      const [proxy, decision] = [server.port('proxy'), server.port('decision')];
      contenders.push(
        contender(tollgateName(main) + suffix, server, proxy, () => checkFree(proxy, witness, 'GET', path), free),
        contender(allowName(main) + suffix, server, decision, () => checkAllow(decision, witness, path), question),
        contender(
          besideQuestionsName(main) + suffix,
          server,
          proxy,
          async () => checkInterfaceBody(await checkDemand(proxy, witness, dear), ROUTE_AMOUNT),
          demand,
        ),
        contender(
          askedDemandName(main) + suffix,
          server,
          decision,
          () => checkAskedDemand(decision, dear, ROUTE_AMOUNT),
          { ...demand, asked: 'question' },
        ),
      );
    }
    return measureSection(
      stage,
      together(contenders),
      {
        name: 'decision',
        title: 'A question of another proxy',
        columns: COLUMNS,
        references: { key: 'cpuUs', rows: [CONSTANT, tollgateName(main), HTTP_PROXY_3, FORWARD_AUTH] },
        remarks: [LOADED_BY, OF_TOLLGATE, OF_CADDY, OF_CONSTANT],
      },
      skipped,
    );
  });
}

const OF_TOLLGATE = `A round of Tollgate's is the mean of ${PROCESSES} processes, each with all four rows.`;
const OF_CADDY = `"${FORWARD_AUTH}" and "${HTTP_PROXY_3}" forward a free GET; of Caddy's only its own CPU counts, not that of the answer.`;
const OF_CONSTANT = `"${CONSTANT}" answers the same questions with an empty 200.`;
