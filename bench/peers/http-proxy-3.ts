// The peer that Tollgate builds on, plain: http-proxy-3 with a keep-alive agent, and nothing decided about a request.
// `node bench/peers/http-proxy-3.ts UPSTREAM_PORT`.
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy-3';
import { announce } from './announce.ts';

const proxy = createProxyServer({
  target: `http://127.0.0.1:${process.argv[2]}`,
  agent: new Agent({ keepAlive: true, maxSockets: Infinity }),
});
proxy.on('error', (_error, _req, res) => void res?.destroy());
announce(createServer((req, res) => proxy.web(req, res)));
