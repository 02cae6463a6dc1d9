// One protected API in each of the frameworks that need no build; argument: which.
import 'reflect-metadata';
import { createServer } from 'node:http';
import { App } from '@tinyhttp/app';
import { All, Controller, Get, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import connect from 'connect';
import moleculer from 'moleculer';
import ApiGateway from 'moleculer-web';
import restify from 'restify';
import { free, paid } from './paid.mjs';

const port = Number(process.env.PORT);
const HOST = '127.0.0.1';

/** Mounts: what is below `/v1/files` belongs to it, of the others their own path alone. */
function withConnect() {
  const app = connect();
  const exactly = (run) => (req, res, next) => (req.url.split('?')[0] === '/' ? res.end(run()) : next());
  app.use('/v1/reports/open', exactly(free));
  app.use('/v1/files/public', exactly(free));
  app.use('/v1/export', exactly(paid));
  app.use('/v1/reports', (req, res, next) => (/^\/[^/?]+\/?(?:\?|$)/.test(req.url) ? res.end(paid()) : next()));
  app.use('/v1/files', (_, res) => res.end(paid()));
  app.use('/v1/teams', (req, res, next) =>
    req.method === 'POST' && /^\/[^/?]+\/jobs\/[^/?]+\/?(?:\?|$)/.test(req.url) ? res.end(paid()) : next(),
  );
  app.use('/v1/Kiss/Data', exactly(paid));
  app.use('/v1/my%20report', exactly(paid));
  app.use('/v1/daily_report', exactly(paid));
  app.use('/v1/data.json', exactly(paid));
  app.use('/free', (_, res) => res.end(free()));
  createServer(app).listen(port, HOST);
}

function withTinyhttp() {
  const app = new App();
  const on = (run) => (_, res) => void res.end(run());
  app
    .get('/v1/reports/open', on(free))
    .get('/v1/files/public', on(free))
    .get('/v1/export', on(paid))
    .get('/v1/reports/:id', on(paid))
    .get('/v1/files/*', on(paid))
    .post('/v1/teams/:team/jobs/:job', on(paid))
    .get('/v1/Kiss/Data', on(paid))
    .get('/v1/my%20report', on(paid))
    .get('/v1/daily_report', on(paid))
    .get('/v1/data.json', on(paid))
    .all('/free/*', on(free));
  createServer(app.handler.bind(app)).listen(port, HOST);
}

/** Its router, and behind it every action under a name of its own: `v1.export`. */
async function withMoleculer() {
  const broker = new moleculer.ServiceBroker({ logger: false });
  broker.createService({
    name: 'v1',
    actions: { export: paid, 'Kiss.Data': paid, daily_report: paid, report: paid, files: paid, job: paid },
  });
  broker.createService({ name: 'free', actions: { any: free } });
  broker.createService({
    name: 'api',
    mixins: [ApiGateway],
    settings: {
      port,
      ip: HOST,
      routes: [
        {
          path: '/',
          mappingPolicy: 'all',
          whitelist: ['v1.export', 'v1.Kiss.Data', 'v1.daily_report', 'free.any'],
          aliases: {
            'GET v1/reports/open': 'free.any',
            'GET v1/files/public': 'free.any',
            'GET v1/reports/:id': (_, res) => res.end(paid()),
            'GET v1/files/*rest': (req, res) => res.end(req.$params.rest === 'public' ? free() : paid()),
            'POST v1/teams/:team/jobs/:job': (_, res) => res.end(paid()),
            'GET free/*rest': 'free.any',
          },
        },
      ],
    },
  });
  await broker.start();
}

/** It throws outside of any request where a target is no URL. */
function withRestify() {
  process.on('uncaughtException', () => undefined);
  const server = restify.createServer();
  const on = (run) => (_, res, next) => {
    res.end(run());
    next();
  };
  server.get('/v1/reports/open', on(free));
  server.get('/v1/files/public', on(free));
  server.get('/v1/export', on(paid));
  server.get('/v1/reports/:id', on(paid));
  server.get('/v1/files/*', on(paid));
  server.post('/v1/teams/:team/jobs/:job', on(paid));
  server.get('/v1/Kiss/Data', on(paid));
  server.get('/v1/my report', on(paid));
  server.get('/v1/daily_report', on(paid));
  server.get('/v1/data.json', on(paid));
  server.get('/free/*', on(free));
  server.listen(port, HOST);
}

class Api {
  free() {
    return free();
  }
  paid() {
    return paid();
  }
  job() {
    return paid();
  }
}

/** The decorators by hand: nothing here is compiled. */
async function withNest() {
  const on = (name, decorate) => decorate(Api.prototype, name, Object.getOwnPropertyDescriptor(Api.prototype, name));
  on('free', All(['v1/reports/open', 'v1/files/public', 'free/*rest']));
  on(
    'paid',
    Get([
      'v1/export',
      'v1/reports/:id',
      'v1/files/*rest',
      'v1/Kiss/Data',
      'v1/my%20report',
      'v1/daily_report',
      'v1/data.json',
    ]),
  );
  on('job', Post('v1/teams/:team/jobs/:job'));
  Controller()(Api);
  const app = await NestFactory.create({ module: Api, controllers: [Api] }, { logger: false });
  await app.listen(port, HOST);
}

const WHICH = {
  connect: withConnect,
  tinyhttp: withTinyhttp,
  moleculer: withMoleculer,
  restify: withRestify,
  nest: withNest,
};
await WHICH[process.argv[2]]();
