// The router of a registry, made at its first request: the table of endpoints with its schemas takes some megabytes, and a
// process whose registry only its own proxy reads never needs it. If it cannot be loaded, the request is 503, the log says
// why, and the next request tries again.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, renderProblem } from '../../domain/problem.ts';
import { loadOnce } from '../../host/load-once.ts';
import type { Log } from '../../host/log.ts';
import { respond } from '../../host/respond.ts';
import type { RegistryObserver } from './services.ts';

type Route = (req: IncomingMessage, res: ServerResponse) => void;

export type LaterRouterOptions = {
  /** Makes the router. */
  readonly load: () => Promise<Route>;
  readonly log: Log;
  readonly observer?: RegistryObserver | undefined;
};

const RETRY_SECONDS = 5;
const HEADERS = ['X-Content-Type-Options', 'nosniff'];

export function createLaterRouter({ load, log, observer }: LaterRouterOptions): Route {
  const loading = loadOnce(load);
  let route: Route | undefined;

  const refuse = (req: IncomingMessage, res: ServerResponse, error: unknown): void => {
    log.error('the endpoints of the registry could not be loaded', { error });
    const refusal = problem('registry_unavailable', 'This registry could not load its endpoints; its log says why.', {
      retryAfter: RETRY_SECONDS,
    });
    const rendered = renderProblem(refusal, HEADERS);
    observer?.request('none', rendered.status);
    respond(res, rendered, req.method === 'HEAD');
  };

  return (req, res) => {
    if (route !== undefined) return route(req, res);
    loading().then(
      (loaded) => {
        route = loaded;
        loaded(req, res);
      },
      (error: unknown) => refuse(req, res, error),
    );
  };
}
