// Load without a pause by wrk, where it is installed: the least CPU that a load generator takes, so that the server is what
// is short of time. It looks at no body: autocannon's burst before it does (cannon.ts). Statuses are counted, broken
// connections too, and the bytes of all answers together have to suffice for as many whole bodies.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClosedJob, ClosedResult } from './closed.ts';
import { isInstalled, LOAD_CORE, readCpuUs, runToEnd } from './process.ts';
import { headLines, linesOf, type Asked } from './question.ts';
import { POST_BODY } from './upstream-answers.ts';

/** What the script at the end of a run prints. */
type Summary = {
  readonly requests: number;
  readonly us: number;
  readonly bytes: number;
  readonly status: number;
  readonly broken: number;
};

export const HAS_WRK = isInstalled('wrk');

export async function runWrk(job: ClosedJob, folder: string): Promise<ClosedResult> {
  const script = path.join(folder, 'wrk.lua');
  writeFileSync(script, renderScript(job));
  const args = ['-t1', `-c${job.connections}`, `-d${job.seconds}s`, '--timeout', '30s', '-s', script];
  const before = readCpuUs(job.pid);
  const out = await runToEnd({
    name: 'wrk',
    file: 'wrk',
    args: [...args, `http://127.0.0.1:${job.port}`],
    core: LOAD_CORE,
  });
  const cpuUs = readCpuUs(job.pid) - before;
  const summary: Summary = JSON.parse(out.slice(out.lastIndexOf('\n{') + 1));
  const { requests, us } = summary;
  return { requests, seconds: us / 1e6, cpuUs, faults: faultsOf(summary, job.expect) };
}

/** Everything but the expected status is a fault; wrk counts what is 400 and above. */
export function faultsOf(
  { requests, bytes, status, broken }: Summary,
  expected: { readonly status: number; readonly bytes: number },
): string[] {
  const faults: string[] = [];
  const wanted = expected.status >= 400 ? requests : 0;
  if (requests === 0) faults.push('no answer came');
  if (status !== wanted) faults.push(`${status} answers of ${requests} were errors, not ${wanted}`);
  if (broken > 0) faults.push(`${broken} connections failed`);
  if (bytes < requests * expected.bytes) faults.push(`${requests} answers had ${bytes} bytes together`);
  return faults;
}

/** Requests are made before the run; only paths that have to be new are made in it. */
export function renderScript({ method, paths, body, port, asked = 'request' }: Omit<ClosedJob, 'pid'>): string {
  const head = `Host: 127.0.0.1:${port}\\r\\n${
    body === 'none' ? '' : `Content-Type: application/json\\r\\nContent-Length: ${Buffer.byteLength(POST_BODY)}\\r\\n`
  }\\r\\n`;
  const version = 'prefix' in paths ? ' HTTP/1.1\\r\\n' : '';
  const rest = `"${version}${head}" .. [=[${body === 'none' ? '' : POST_BODY}]=]`;
  const request = 'prefix' in paths ? fresh(method, paths.prefix) : inTurn(method, paths, asked);
  return `local rest = ${rest}
${request}
function done(summary, latency, all)
  local errors = summary.errors
  io.write(string.format('\\n{"requests":%d,"us":%d,"bytes":%d,"status":%d,"broken":%d}\\n', summary.requests,
    summary.duration, summary.bytes, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
`;
}

function fresh(method: string, prefix: string): string {
  return `local made, stem = 0, "${method} ${prefix}" .. os.time() .. "-${Math.random().toString(36).slice(2)}-"
function request()
  made = made + 1
  return stem .. made .. rest
end`;
}

function inTurn(method: string, paths: readonly string[], asked: Asked): string {
  const lines = linesOf(asked, paths).map((line) => `${line.path} HTTP/1.1\r\n${headLines(line)}`);
  return `local requests = {}
for _, line in ipairs({ ${lines.map((line) => JSON.stringify(line)).join(', ')} }) do
  requests[#requests + 1] = "${method} " .. line .. rest
end
local at, count = 0, #requests
function request()
  at = at % count + 1
  return requests[at]
end`;
}
