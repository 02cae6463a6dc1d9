// The scenarios `free` and `post`: small requests that cost nothing, without a pause between them; Tollgate with few and
// many routes beside its peers, and beside the least that a Node process can do to answer at all. What counts is CPU per
// request, from the server's own accounting; requests per second say nothing where the load's core was the slower one,
// which the column of the core's use shows.
import { checkConstant, checkFree } from './check.ts';
import { COLUMNS, LOADED_BY, shoot, startProxyPeers, WORKING_SET, type Load } from './load.ts';
import { CONSTANT, DIRECT, HTTP_PROXY_3, NGINX, tollgateName, UNDICI } from './names.ts';
import { startConstant } from './peers/peers.ts';
import type { Server } from './process.ts';
import type { Section } from './report.ts';
import { FRESH_FREE, freePaths } from './routes.ts';
import {
  freshName,
  mainCount,
  measureSection,
  PROCESSES,
  startTollgates,
  together,
  withPool,
  type About,
  type Contender,
  type Stage,
} from './stage.ts';
import { CONSTANT_ANSWER, UPSTREAM_BODY } from './upstream-answers.ts';

export function measureFree(stage: Stage): Promise<Section> {
  const { counts } = stage.plan;
  return measureForwarding(stage, 'GET', counts, {
    name: 'free',
    title: 'Free GET, 197 bytes',
    columns: COLUMNS,
    references: { key: 'cpuUs', rows: [NGINX, HTTP_PROXY_3, UNDICI, tollgateName(Math.min(...counts))] },
    remarks: [LOADED_BY, CEILING, OF_TOLLGATE],
  });
}

export function measurePost(stage: Stage): Promise<Section> {
  return measureForwarding(stage, 'POST', [mainCount(stage.plan)], {
    name: 'post',
    title: 'Free POST, small body',
    columns: COLUMNS,
    references: { key: 'cpuUs', rows: [NGINX, HTTP_PROXY_3, UNDICI] },
    remarks: [LOADED_BY, OF_TOLLGATE],
  });
}

const OF_TOLLGATE = `A round of Tollgate's is the mean of ${PROCESSES} processes.`;
const CEILING = `"${CONSTANT}" answers the same bytes by itself and asks no upstream: what node:http takes at the front, whatever stands behind it.`;

function measureForwarding(
  stage: Stage,
  method: 'GET' | 'POST',
  counts: readonly number[],
  about: About,
): Promise<Section> {
  return withPool(async (pool) => {
    const { upstream, witness } = stage;
    const body = { status: 200, start: UPSTREAM_BODY, bytes: UPSTREAM_BODY.length };
    const free = (name: string, server: Server, port: number, paths: Load['paths'], path: string): Contender => ({
      name,
      check: () => checkFree(port, witness, method, path),
      measure: (seconds) => shoot(stage, server, port, seconds, { ...body, method, paths, reaches: 'every' }),
    });
    const paths = freePaths(Math.max(...counts), WORKING_SET);
    const [path = '/'] = paths;
    const contenders: Contender[] = [];
    if (method === 'GET' && stage.wants(DIRECT))
      contenders.push(free(DIRECT, upstream, upstream.port('upstream'), paths, path));
    if (method === 'GET' && stage.wants(CONSTANT)) {
      const server = await pool.keep(startConstant(CONSTANT_ANSWER, stage));
      const port = server.port('proxy');
      contenders.push({
        name: CONSTANT,
        check: () => checkConstant(port, UPSTREAM_BODY),
        measure: (seconds) => shoot(stage, server, port, seconds, { ...body, method, paths, reaches: 'none' }),
      });
    }
    const { servers, skipped } = await startProxyPeers(stage, pool, method);
    for (const { name, server } of servers) contenders.push(free(name, server, server.port('proxy'), paths, path));
    for (let started = 0; started < PROCESSES; started++) {
      for (const { name, routes, tollgate } of await startTollgates(stage, pool, counts)) {
        const port = tollgate.port('proxy');
        contenders.push(free(name, tollgate, port, paths, path));
        if (method === 'GET' && routes === Math.max(...counts))
          contenders.push(free(freshName(name), tollgate, port, FRESH_FREE, `${FRESH_FREE.prefix}first`));
      }
    }
    return measureSection(stage, together(contenders), about, skipped);
  });
}
