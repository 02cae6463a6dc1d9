// Express 4 and 5: routers that match the undecoded path with a regular expression, ignoring letter case.
import type { RequestListener } from 'node:http';
import express4 from 'express-4';
import express5 from 'express-5';
import { fromListener, type UpstreamSpec } from '../upstream.ts';

type Handler = (req: unknown, res: { send: (body: string) => void }) => void;
type Router = {
  get: (pattern: string, handler: Handler) => void;
  post: (pattern: string, handler: Handler) => void;
  all: (pattern: string, handler: Handler) => void;
};
type App = RequestListener & Router & { set: (name: string, value: unknown) => void; use: (...of: unknown[]) => void };
export type Express = (() => App) & { Router: (options?: object) => Router };

function routes(on: Router, base: string, any: string, ran: () => string, how: 'declared' | 'all'): void {
  const paid: Handler = (_, res) => res.send(ran());
  const free: Handler = (_, res) => res.send('free');
  const get = how === 'all' ? 'all' : 'get';
  const post = how === 'all' ? 'all' : 'post';
  on[get](`${base}/reports/open`, free);
  on[get](`${base}/files/public`, free);
  on[get](`${base}/export`, paid);
  on[get](`${base}/reports/:id`, paid);
  on[get](`${base}/files/${any}`, paid);
  on[post](`${base}/teams/:team/jobs/:job`, paid);
  on[get](`${base}/Kiss/Data`, paid);
  on[get](`${base}/my%20report`, paid);
}

function app(express: Express, any: string, settings: Record<string, unknown> = {}) {
  return (ran: () => string): RequestListener => {
    const made = express();
    for (const [name, value] of Object.entries({ env: 'test', ...settings })) made.set(name, value);
    routes(made, '/v1', any, ran, 'declared');
    made.all(`/free/${any}`, (_, res) => res.send('free'));
    return made;
  };
}

/** Nested routers, each with its own settings, and handlers for every method. */
function nested(express: Express, any: string) {
  return (ran: () => string): RequestListener => {
    const made = express();
    made.set('env', 'test');
    made.set('trust proxy', true);
    const router = express.Router({ mergeParams: true });
    routes(router, '', any, ran, 'all');
    made.use('/v1', router);
    made.all(`/free/${any}`, (_, res) => res.send('free'));
    return made;
  };
}

export const EXPRESS: readonly UpstreamSpec[] = [
  fromListener('express 4', 'express', app(express4, '*')),
  fromListener('express 4, nested routers, all methods', 'express', nested(express4, '*')),
  fromListener('express 5', 'express', app(express5, '*rest')),
  fromListener(
    'express 5, strict and case sensitive',
    'express',
    app(express5, '*rest', { 'strict routing': true, 'case sensitive routing': true }),
  ),
  fromListener('express 5, nested routers, all methods', 'express', nested(express5, '*rest')),
];
