// Koa, Hono, polka, h3 and hapi, as they come and with the settings that forgive more.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { server as createHapi, type RouteOptions, type ServerOptions } from '@hapi/hapi';
import { getRequestListener } from '@hono/node-server';
import KoaRouter from '@koa/router';
import * as h3v1 from 'h3-1';
import { H3, toNodeHandler } from 'h3-2';
import { Hono } from 'hono';
import Koa from 'koa';
import polka from 'polka';
import { createHits, fromListener, listening, type UpstreamSpec } from '../upstream.ts';

type KoaContext = { body: string };

function koa(options: Record<string, boolean>, method: 'get' | 'all') {
  return (ran: () => string): RequestListener => {
    const app = new Koa();
    const router = new KoaRouter(options);
    const paid = (ctx: KoaContext): void => void (ctx.body = ran());
    const free = (ctx: KoaContext): void => void (ctx.body = 'free');
    const post = method === 'all' ? 'all' : 'post';
    router[method]('/v1/reports/open', free);
    router[method]('/v1/files/public', free);
    router[method]('/v1/export', paid);
    router[method]('/v1/reports/:id', paid);
    router[method]('/v1/files/*rest', paid);
    router[post]('/v1/teams/:team/jobs/:job', paid);
    router[method]('/v1/Kiss/Data', paid);
    router[method]('/v1/my%20report', paid);
    router.all('/free/*rest', free);
    app.use(router.routes());
    app.use(router.allowedMethods());
    app.on('error', () => undefined);
    return app.callback();
  };
}

function hono(options: { strict?: boolean }, method: 'get' | 'all') {
  return (ran: () => string): RequestListener => {
    const app = new Hono(options);
    const post = method === 'all' ? 'all' : 'post';
    app[method]('/v1/reports/open', (c) => c.text('free'));
    app[method]('/v1/files/public', (c) => c.text('free'));
    app[method]('/v1/export', (c) => c.text(ran()));
    app[method]('/v1/reports/:id', (c) => c.text(ran()));
    app[method]('/v1/files/*', (c) => c.text(ran()));
    app[post]('/v1/teams/:team/jobs/:job', (c) => c.text(ran()));
    app[method]('/v1/Kiss/Data', (c) => c.text(ran()));
    app[method]('/v1/my report', (c) => c.text(ran()));
    app.all('/free/*', (c) => c.text('free'));
    const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
    return (req, res) => void listener(req, res);
  };
}

function withPolka(ran: () => string): RequestListener {
  const paid = (_: IncomingMessage, res: ServerResponse): void => void res.end(ran());
  const free = (_: IncomingMessage, res: ServerResponse): void => void res.end('free');
  const app = polka()
    .get('/v1/reports/open', free)
    .get('/v1/files/public', free)
    .get('/v1/export', paid)
    .get('/v1/reports/:id', paid)
    .get('/v1/files/*', paid)
    .post('/v1/teams/:team/jobs/:job', paid)
    .get('/v1/Kiss/Data', paid)
    .get('/v1/my%20report', paid)
    .get('/free/*', free)
    .post('/free/*', free);
  return (req, res) => app.handler(req, res);
}

function withH3v1(ran: () => string): RequestListener {
  const app = h3v1.createApp();
  const router = h3v1.createRouter();
  const paid = h3v1.eventHandler(() => ran());
  const free = h3v1.eventHandler(() => 'free');
  router.get('/v1/reports/open', free);
  router.get('/v1/files/public', free);
  router.get('/v1/export', paid);
  router.get('/v1/reports/:id', paid);
  router.get('/v1/files/**', paid);
  router.post('/v1/teams/:team/jobs/:job', paid);
  router.get('/v1/Kiss/Data', paid);
  router.get('/v1/my%20report', paid);
  router.use('/free/**', free);
  app.use(router);
  return h3v1.toNodeListener(app);
}

function withH3v2(ran: () => string): RequestListener {
  const app = new H3({ silent: true });
  app.get('/v1/reports/open', () => 'free');
  app.get('/v1/files/public', () => 'free');
  app.get('/v1/export', () => ran());
  app.get('/v1/reports/:id', () => ran());
  app.get('/v1/files/**', () => ran());
  app.post('/v1/teams/:team/jobs/:job', () => ran());
  app.get('/v1/Kiss/Data', () => ran());
  app.get('/v1/my%20report', () => ran());
  app.all('/free/**', () => 'free');
  const handler = toNodeHandler(app);
  return (req, res) => void handler(req, res);
}

function hapi(name: string, router: NonNullable<ServerOptions['router']>, profile?: 'hapi'): UpstreamSpec {
  return {
    name,
    ...(profile === undefined ? {} : { profile }),
    start: async () => {
      const hits = createHits();
      const server = createHapi({ port: 0, host: '127.0.0.1', router });
      const options: RouteOptions = { payload: { parse: false } };
      const on = (method: 'GET' | 'POST' | '*', path: string, ran: boolean): void =>
        server.route({
          method,
          path,
          ...(method === 'POST' ? { options } : {}),
          handler: () => {
            if (ran) hits.executions++;
            return ran ? 'paid for' : 'free';
          },
        });
      on('GET', '/v1/reports/open', false);
      on('GET', '/v1/files/public', false);
      on('GET', '/v1/export', true);
      on('GET', '/v1/reports/{id}', true);
      on('GET', '/v1/files/{rest*}', true);
      on('POST', '/v1/teams/{team}/jobs/{job}', true);
      on('GET', '/v1/Kiss/Data', true);
      on('GET', '/v1/my%20report', true);
      on('*', '/free/{rest*}', false);
      await server.start();
      return listening(hits, server.listener, () => server.stop({ timeout: 0 }));
    },
  };
}

export const SMALL: readonly UpstreamSpec[] = [
  fromListener('koa and @koa/router', 'koa', koa({}, 'get')),
  fromListener('koa and @koa/router, strict and sensitive', 'koa', koa({ strict: true, sensitive: true }, 'get')),
  fromListener('koa and @koa/router, all methods', 'koa', koa({}, 'all')),
  fromListener('hono', 'hono', hono({}, 'get')),
  fromListener('hono, strict: false, all methods', 'hono', hono({ strict: false }, 'all')),
  fromListener('polka', undefined, withPolka),
  fromListener('h3 1', 'h3', withH3v1),
  fromListener('h3 2', 'h3', withH3v2),
  hapi('hapi', {}, 'hapi'),
  hapi('hapi, isCaseSensitive: false, stripTrailingSlash', { isCaseSensitive: false, stripTrailingSlash: true }),
];
