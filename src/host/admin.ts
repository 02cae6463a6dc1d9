// The admin listener: /metrics for Prometheus, /livez and /readyz for whoever runs the container. It is a listener of its
// own, so that the customer's API may own every path on the proxy port and nobody outside reads these.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from './metrics.ts';
import { respond, type Answer } from './respond.ts';

/** `detail`: a sentence for an operator. A check that throws counts as failed. */
export type Check = { readonly name: string; readonly run: () => { readonly ok: boolean; readonly detail: string } };

/** `/livez` answers whenever the event loop does; `/readyz` is 503 while any check fails, `?verbose` says which and why. */
export function createAdmin(
  metrics: Metrics,
  checks: readonly Check[],
): (req: IncomingMessage, res: ServerResponse) => void {
  const answerTo = async (req: IncomingMessage): Promise<Answer> => {
    const [path = '', query = ''] = (req.url ?? '').split('?');
    if (req.method !== 'GET' && req.method !== 'HEAD') return text(405, 'use GET\n', ['Allow', 'GET, HEAD']);
    switch (path) {
      case '/metrics':
        return { status: 200, headers: ['Content-Type', metrics.contentType], body: await metrics.text() };
      case '/livez':
        return text(200, 'ok\n');
      case '/readyz':
        return ready(checks, new URLSearchParams(query).has('verbose'));
      default:
        return text(404, 'here are /metrics, /livez and /readyz\n');
    }
  };
  return (req, res) => {
    answerTo(req).then(
      (answer) => respond(res, answer, req.method === 'HEAD'),
      () => respond(res, text(500, 'failed\n')),
    );
  };
}

function ready(checks: readonly Check[], verbose: boolean): Answer {
  const results = checks.map(({ name, run }) => {
    try {
      return { name, ...run() };
    } catch {
      return { name, ok: false, detail: 'the check failed' };
    }
  });
  const ok = results.every((result) => result.ok);
  const status = ok ? 200 : 503;
  if (!verbose)
    return text(
      status,
      ok
        ? 'ok\n'
        : `not ready: ${results
            .filter((result) => !result.ok)
            .map(({ name }) => name)
            .join(', ')}\n`,
    );
  const body = `${JSON.stringify({ status: ok ? 'ready' : 'not_ready', checks: results })}\n`;
  return { status, headers: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body };
}

function text(status: number, body: string, headers: readonly string[] = []): Answer {
  return {
    status,
    headers: ['Content-Type', 'text/plain; charset=utf-8', 'Cache-Control', 'no-store', ...headers],
    body,
  };
}
