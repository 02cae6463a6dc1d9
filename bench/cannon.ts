// Every answer looked at (autocannon), in a process of its own: `node bench/cannon.ts JOB` prints a CannonResult. It is the
// burst before a measurement: it warms the server, which answers slowly at first after it stood idle, and checks status
// and body of every answer under load. autocannon's own `non2xx` would call a 402 a failure. Nothing is timed by it: it
// takes more CPU for a request than nginx does, so that what it loads is idle half of the time.
import autocannon from 'autocannon';
import { linesOf, type Asked } from './question.ts';
import { POST_BODY } from './upstream-answers.ts';

export type CannonJob = {
  /** Scheme and authority. */
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  /** Asked for one after another; or `prefix`, and every request asks for a path below it that nobody asked for before. */
  readonly paths: readonly string[] | { readonly prefix: string };
  readonly body: 'none' | 'small';
  /** Left out: the request itself. */
  readonly asked?: Asked;
  /** Every answer has this status and starts with this text. */
  readonly expect: { readonly status: number; readonly start: string };
  readonly connections: number;
  readonly seconds: number;
};

export type CannonResult = {
  readonly answers: number;
  /** What went wrong, in words; empty where every answer was as expected. */
  readonly faults: readonly string[];
};

const job: CannonJob = JSON.parse(process.argv[2] ?? '{}');
const unique = uniqueNames();
process.stdout.write(`${JSON.stringify(await fire())}\n`);

function fire(): Promise<CannonResult> {
  const { status, start } = job.expect;
  let answers = 0;
  return new Promise((resolve, reject) => {
    const instance = autocannon(
      {
        url: job.origin,
        connections: job.connections,
        duration: job.seconds,
        // How often autocannon looks whether its time is up.
        sampleInt: 100,
        timeout: 30,
        requests: requestsOf(job),
        verifyBody: (body) => String(body).startsWith(start),
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
        if (answers === 0) faults.push('no answer came');
        resolve({ answers, faults });
      },
    );
    instance.on('response', () => void answers++);
  });
}

function requestsOf({ method, paths, body, asked = 'request' }: CannonJob): autocannon.Request[] {
  const rest: autocannon.Request =
    body === 'none' ? { method } : { method, body: POST_BODY, headers: { 'content-type': 'application/json' } };
  if ('prefix' in paths) {
    const { prefix } = paths;
    return [{ ...rest, setupRequest: (request) => Object.assign(request, { path: prefix + unique() }) }];
  }
  // autocannon makes the whole list anew for each connection, so one line a path is enough of it.
  const lines = linesOf(asked, paths).slice(0, paths.length);
  return lines.map(({ path, headers }) => ({ ...rest, path, headers: { ...rest.headers, ...headers } }));
}

/** No two alike, also not across the processes of one run. */
function uniqueNames(): () => string {
  let n = 0;
  const own = process.pid.toString(36);
  return () => `${own}-${(n++).toString(36)}`;
}
