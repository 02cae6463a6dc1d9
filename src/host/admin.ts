// The admin listener: /metrics for Prometheus, /livez and /readyz for the orchestrator. It is a listener of its own: the
// customer's API owns every path on the proxy port, and no client outside reads these.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from './metrics.ts';
import { respond, type OwnResponse } from './respond.ts';

/**
 * Result of a check. `detail` is a sentence for an operator. `isTolerated`: what failed does not keep the process from
 * being ready.
 */
export type CheckResult = { readonly ok: boolean; readonly isTolerated?: boolean; readonly detail: string };

/** A check that throws counts as failed. */
export type Check = { readonly name: string; readonly run: () => CheckResult | Promise<CheckResult> };

/**
 * Serves the admin endpoints. `/livez` answers whenever the event loop does; `/readyz` is 503 while any check fails,
 * `?verbose` says which and why.
 */
export function createAdmin(
  metrics: Pick<Metrics, 'text' | 'contentType'>,
  checks: readonly Check[],
): (req: IncomingMessage, res: ServerResponse) => void {
  const answerTo = async (req: IncomingMessage): Promise<OwnResponse> => {
    const [path = '', query = ''] = (req.url ?? '').split('?');
    if (req.method !== 'GET' && req.method !== 'HEAD') return plainText(405, 'use GET\n', ['Allow', 'GET, HEAD']);
    switch (path) {
      case '/metrics':
        return { status: 200, headers: ['Content-Type', metrics.contentType], body: await metrics.text() };
      case '/livez':
        return plainText(200, 'ok\n');
      case '/readyz':
        return ready(checks, new URLSearchParams(query).has('verbose'));
      default:
        return plainText(404, 'here are /metrics, /livez and /readyz\n');
    }
  };
  return (req, res) => {
    answerTo(req).then(
      (answer) => respond(res, answer, req.method === 'HEAD'),
      () => respond(res, plainText(500, 'failed\n')),
    );
  };
}

async function ready(checks: readonly Check[], verbose: boolean): Promise<OwnResponse> {
  const results = await Promise.all(checks.map(runCheck));
  const failed = results.filter((result) => !result.ok && !result.isTolerated);
  const ok = failed.length === 0;
  const status = ok ? 200 : 503;
  if (!verbose) return plainText(status, ok ? 'ok\n' : `not ready: ${failed.map(({ name }) => name).join(', ')}\n`);
  const named = results.map((result) => ({ name: result.name, ok: result.ok, detail: result.detail }));
  const body = `${JSON.stringify({ status: ok ? 'ready' : 'not_ready', checks: named })}\n`;
  return { status, headers: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body };
}

async function runCheck({ name, run }: Check): Promise<CheckResult & { readonly name: string }> {
  try {
    return { name, ...(await run()) };
  } catch {
    return { name, ok: false, detail: 'the check failed' };
  }
}

function plainText(status: number, body: string, headers: readonly string[] = []): OwnResponse {
  return {
    status,
    headers: ['Content-Type', 'text/plain; charset=utf-8', 'Cache-Control', 'no-store', ...headers],
    body,
  };
}
