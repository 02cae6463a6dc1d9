// Load without a pause (autocannon), in a process of its own: `node bench/cannon.ts JOB` prints a CannonResult. First a
// burst that is not measured, because a server that stood idle answers slowly at first. Every answer's status is counted
// and its body looked at: autocannon's own `non2xx` would call a 402 a failure. Its latencies are those of a closed loop.
import autocannon from 'autocannon';
import { POST_BODY } from './upstream-answers.ts';
import { readCpuUs } from './process.ts';
import { percentile } from './report.ts';

export type CannonJob = {
  /** Scheme and authority. */
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  /** Asked for one after another; or `prefix`, and every request asks for a path below it that nobody asked for before. */
  readonly paths: readonly string[] | { readonly prefix: string };
  /** What is sent: nothing, the small POST body, or so many bytes. */
  readonly body: 'none' | 'small' | number;
  /** Every answer has this status, at least so many bytes, and starts with this text. */
  readonly expect: { readonly status: number; readonly bytes?: number; readonly start?: string };
  readonly connections: number;
  readonly burstSeconds: number;
  readonly seconds: number;
  /** Whose CPU counts. */
  readonly pid: number;
};

export type CannonResult = {
  /** Answers, the burst's included. */
  readonly answers: number;
  /** Answers measured. */
  readonly requests: number;
  readonly seconds: number;
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** What went wrong, in words; empty where every answer was as expected. */
  readonly faults: readonly string[];
};

type Shot = {
  readonly count: number;
  readonly seconds: number;
  readonly latencies: number[];
  readonly faults: string[];
};

const job: CannonJob = JSON.parse(process.argv[2] ?? '{}');
const unique = uniqueNames();
const burst = await fire(job.burstSeconds);
const before = readCpuUs(job.pid);
const shot = await fire(job.seconds);
const cpuUs = readCpuUs(job.pid) - before;
shot.latencies.sort((a, b) => a - b);
const result: CannonResult = {
  answers: burst.count + shot.count,
  requests: shot.count,
  seconds: shot.seconds,
  cpuUs,
  p50Ms: percentile(shot.latencies, 50),
  p99Ms: percentile(shot.latencies, 99),
  faults: [...burst.faults, ...shot.faults],
};
process.stdout.write(`${JSON.stringify(result)}\n`);

function fire(seconds: number): Promise<Shot> {
  const latencies: number[] = [];
  const { status, bytes = 0, start } = job.expect;
  let short = 0;
  let startedAt = 0;
  let endedAt = 0;
  return new Promise((resolve, reject) => {
    const instance = autocannon(
      {
        url: job.origin,
        connections: job.connections,
        duration: seconds,
        // How often autocannon looks whether its time is up.
        sampleInt: 100,
        timeout: 30,
        requests: requestsOf(job),
        ...(start === undefined ? {} : { verifyBody: (body) => String(body).startsWith(start) }),
      },
      (error, outcome) => {
        if (error) {
          reject(error instanceof Error ? error : new Error('autocannon failed'));
          return;
        }
        const faults: string[] = [];
        for (const [code, { count = 0 }] of Object.entries(outcome.statusCodeStats ?? {}))
          if (Number(code) !== status) faults.push(`${count} answers were ${code}, not ${status}`);
        if (outcome.errors > 0) faults.push(`${outcome.errors} connections failed, ${outcome.timeouts} by time-out`);
        if (outcome.mismatches > 0) faults.push(`${outcome.mismatches} answers had another body`);
        if (short > 0) faults.push(`${short} answers were cut short`);
        if (latencies.length === 0) faults.push('no answer came');
        resolve({ count: latencies.length, seconds: (endedAt - startedAt) / 1000, latencies, faults });
      },
    );
    instance.on('response', (_client, _status, size, ms) => {
      endedAt = performance.now();
      if (startedAt === 0) startedAt = endedAt - ms;
      latencies.push(ms);
      if (size < bytes) short++;
    });
  });
}

function requestsOf({ method, paths, body }: CannonJob): autocannon.Request[] {
  const payload = body === 'none' ? undefined : body === 'small' ? POST_BODY : Buffer.alloc(body, 0x61);
  const type = body === 'small' ? 'application/json' : 'application/octet-stream';
  const rest: autocannon.Request =
    payload === undefined ? { method } : { method, body: payload, headers: { 'content-type': type } };
  if ('prefix' in paths) {
    const { prefix } = paths;
    return [{ ...rest, setupRequest: (request) => Object.assign(request, { path: prefix + unique() }) }];
  }
  return paths.map((path) => ({ ...rest, path }));
}

/** No two alike, also not across the processes of one run. */
function uniqueNames(): () => string {
  let n = 0;
  const own = process.pid.toString(36);
  return () => `${own}-${(n++).toString(36)}`;
}
