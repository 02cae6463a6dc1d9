// A real Prometheus (Debian's package) that scrapes processes of a test every second and is asked over its API. On a
// machine without it the tests that need it are skipped.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './process.ts';

export const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;

export type Prometheus = {
  /** The number of samples that `expr` gives now; text: why it is refused. */
  readonly ask: (expr: string) => Promise<number | string>;
  readonly stop: () => Promise<void>;
};

/** Starts one that scrapes `targets` (host and port) as job `tollgate`. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const files = temporaryFolder();
  const port = await freePort();
  const job = { job_name: 'tollgate', static_configs: [{ targets }] };
  const config = files.write(
    'prometheus.yml',
    JSON.stringify({ global: { scrape_interval: '1s', scrape_timeout: '1s' }, scrape_configs: [job] }),
  );
  const child = spawn(
    'prometheus',
    [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${path.join(files.folder, 'data')}`],
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  return {
    ask: async (expr) => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: expr }),
      }).catch(() => undefined);
      if (response === undefined) return 'it does not answer';
      // While it starts it speaks no JSON.
      if (response.status === 503) return response.text();
      const answer = (await response.json()) as { error?: string; data?: { result: readonly unknown[] } };
      return answer.data?.result.length ?? answer.error ?? 'nothing';
    },
    stop: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      files.remove();
    },
  };
}
