// The API behind Tollgate: answers run by run as its payments' plans say, and writes every run down.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { startUpstream, type Upstream } from '../../support/upstream.ts';
import type { Journal } from './journal.ts';
import type { Conduct, PaymentPlan } from './plan.ts';

const LARGE_BYTES = 300_000;
const SLOW_MS = 400;
/** Longer than it takes to see that two work on one payment. */
const SLOW_AMONG_MANY_MS = 1_500;

/** Whatever comes to it is `who`'s. */
export function startApi(
  plans: readonly PaymentPlan[],
  journal: Journal,
  who: string,
  runs: Map<number, number>,
): Promise<Upstream> {
  return startUpstream((req, res) => {
    const n = Number(/^\/paid\/(\d+)/.exec(req.url ?? '')?.[1] ?? -1);
    const run = (runs.get(n) ?? 0) + 1;
    runs.set(n, run);
    const chargeId = String(req.headers['tollgate-charge-id'] ?? '');
    const seen = { n, run, who, at: performance.now(), endedAt: Infinity, chargeId };
    journal.runs.push(seen);
    res.on('close', () => void (seen.endedAt = performance.now()));
    const plan = plans[n];
    const conduct = plan?.conducts[run - 1] ?? 'small';
    const slowMs = plan?.goesOn === true ? SLOW_AMONG_MANY_MS : SLOW_MS;
    req.resume();
    act({ conduct, slowMs, n, run }, req, res).catch(() => res.destroy());
  });
}

type Act = { readonly conduct: Conduct; readonly slowMs: number; readonly n: number; readonly run: number };

/** Answers as `conduct` says; `n` and `run` are in the answer. */
export async function act({ conduct, slowMs, n, run }: Act, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const body = `payment ${n} run ${run}\n`;
  const headers = { 'content-type': 'text/plain', 'x-run': String(run) };
  switch (conduct) {
    case 'hangs_up':
      return void req.socket.destroy();
    case 'breaks_off':
      res.writeHead(200, { ...headers, 'content-length': 2 * body.length });
      res.write(body, () => req.socket.destroy());
      return;
    case 'slow':
      await setTimeout(slowMs);
      break;
    case 'large':
      res.writeHead(200, headers).end(body.repeat(Math.ceil(LARGE_BYTES / body.length)));
      return;
    case 'not_found':
      res.writeHead(404, headers).end(body);
      return;
    case 'fails':
      res.writeHead(500, headers).end(body);
      return;
    case 'redirects':
      res.writeHead(302, { ...headers, location: 'https://elsewhere.example/signed' }).end(body);
      return;
    case 'small':
      break;
    default:
      conduct satisfies never;
  }
  res.writeHead(200, headers).end(body);
}
