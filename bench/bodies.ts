// The scenarios `download` and `upload`: 10 MB through a proxy, and what a megabyte costs it.
import { checkDownload, checkUpload } from './check.ts';
import { startProxyPeers } from './load.ts';
import { HTTP_PROXY_3, NGINX } from './names.ts';
import type { Server } from './process.ts';
import type { Section } from './report.ts';
import {
  mainCount,
  measureSection,
  peakMb,
  runLoad,
  startTollgates,
  withPool,
  type Contender,
  type Stage,
} from './stage.ts';
import type { TransferJob, TransferResult } from './transfer.ts';
import { DOWNLOAD_BYTES, DOWNLOAD_PATH } from './upstream-answers.ts';

const CONNECTIONS = 4;
const UPLOAD_PATH = '/public/upload';
const MEGABYTE = 1024 * 1024;

export function measureBodies(stage: Stage, direction: 'download' | 'upload'): Promise<Section> {
  return withPool(async (pool) => {
    const contender = (name: string, server: Server): Contender => ({
      name,
      check: () =>
        direction === 'download'
          ? checkDownload(server.port('proxy'), stage.witness)
          : checkUpload(server.port('proxy'), stage.witness, UPLOAD_PATH),
      measure: async (seconds) => {
        const job: TransferJob = {
          port: server.port('proxy'),
          direction,
          path: direction === 'download' ? DOWNLOAD_PATH : UPLOAD_PATH,
          bytes: DOWNLOAD_BYTES,
          connections: CONNECTIONS,
          burstSeconds: stage.plan.burstSeconds,
          seconds,
          pid: server.pid,
        };
        const { transfers, seconds: took, cpuUs, faults } = await runLoad<TransferResult>('transfer.ts', job);
        const megabytes = (transfers * DOWNLOAD_BYTES) / MEGABYTE;
        const round = {
          cpuMsPerMb: cpuUs / 1000 / megabytes,
          mbPerSecond: megabytes / took,
          corePercent: cpuUs / took / 10_000,
          peakMb: peakMb(server.pid),
        };
        return { round, faults };
      },
    });
    const { servers, skipped } = await startProxyPeers(stage, pool, 'bodies');
    const contenders = servers.map(({ name, server }) => contender(name, server));
    const entrants = await startTollgates(stage, pool, [mainCount(stage.plan)]);
    for (const { name, tollgate } of entrants) contenders.push(contender(name, tollgate));
    return measureSection(
      stage,
      contenders,
      {
        name: direction,
        title: direction === 'download' ? 'Download of 10 MB' : 'Upload of 10 MB',
        columns: [
          { key: 'cpuMsPerMb', title: 'CPU ms/MB', digits: 2 },
          { key: 'mbPerSecond', title: 'MB/s', digits: 0 },
          { key: 'corePercent', title: 'core used %', digits: 0 },
          { key: 'peakMb', title: 'peak MB', digits: 0 },
        ],
        references: { key: 'cpuMsPerMb', rows: [NGINX, HTTP_PROXY_3] },
        remarks: [],
      },
      skipped,
    );
  });
}
