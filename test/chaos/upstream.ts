// The API behind Tollgate: answers run by run as its payments' plans say, and writes every run down.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import type { Journal } from './journal.ts';
import type { Conduct, PaymentPlan } from './plan.ts';

const LARGE_BYTES = 300_000;
const SLOW_MS = 400;

export function startApi(plans: readonly PaymentPlan[], journal: Journal): Promise<Upstream> {
  const runs = new Map<number, number>();
  return startUpstream((req, res) => {
    const n = Number(/^\/paid\/(\d+)/.exec(req.url ?? '')?.[1] ?? -1);
    const run = (runs.get(n) ?? 0) + 1;
    runs.set(n, run);
    const chargeId = String(req.headers['tollgate-charge-id'] ?? '');
    journal.runs.push({ n, run, at: performance.now(), chargeId });
    const conduct = plans[n]?.conducts[run - 1] ?? 'small';
    req.resume();
    act(conduct, n, run, req, res).catch(() => res.destroy());
  });
}

async function act(conduct: Conduct, n: number, run: number, req: IncomingMessage, res: ServerResponse): Promise<void> {
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
      await setTimeout(SLOW_MS);
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
