// The usual way to write a proxy in Node: express with http-proxy-middleware and a keep-alive agent.
// `node express.mjs UPSTREAM_PORT`.
import { Agent, createServer } from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { announce } from './announce.mjs';

const app = express();
app.use(
  createProxyMiddleware({
    target: `http://127.0.0.1:${process.argv[2]}`,
    agent: new Agent({ keepAlive: true, maxSockets: Infinity }),
    xfwd: true,
  }),
);
announce(createServer(app));
