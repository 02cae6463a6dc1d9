// node:http in front of undici's `dispatch`, nothing decided about a request: what that client costs as a transport. Small
// bodies, both ways, are handed over whole (one `write` each); others are streamed with back-pressure.
// `node undici.mjs UPSTREAM_PORT`.
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { announce } from './announce.mjs';

const SMALL = 65_536;
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect']);
const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 256, pipelining: 1 });

const server = createServer((req, res) => {
  const length = Number(req.headers['content-length'] ?? 0);
  if (req.headers['transfer-encoding'] !== undefined || length > SMALL) forward(req, res, req);
  else if (length === 0) forward(req, res, null);
  else {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => forward(req, res, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
  }
});
announce(server);

function forward(req, res, body) {
  const handler = new Handler(res);
  res.on('close', handler.abandon);
  pool.dispatch({ method: req.method, path: req.url, headers: without(req.rawHeaders), body }, handler);
}

class Handler {
  #res;
  #left = -1;
  #sent = false;
  #controller;

  constructor(res) {
    this.#res = res;
  }

  abandon = () => {
    if (!this.#res.writableFinished) this.#controller?.abort(new Error('the client went away'));
  };

  onRequestStart(controller) {
    this.#controller = controller;
  }

  onResponseStart(_controller, status, headers) {
    const fields = [];
    for (const name in headers) if (!HOP_BY_HOP.has(name)) fields.push(name, headers[name]);
    this.#left = Number(headers['content-length'] ?? -1);
    this.#res.writeHead(status, fields);
  }

  onResponseData(controller, chunk) {
    if (!this.#sent && chunk.length === this.#left) {
      this.#sent = true;
      this.#res.end(chunk);
      return;
    }
    this.#sent = true;
    if (this.#res.write(chunk)) return;
    controller.pause();
    this.#res.once('drain', () => controller.resume());
  }

  onResponseEnd() {
    if (!this.#res.writableEnded) this.#res.end();
  }

  onResponseError() {
    this.#res.destroy();
  }
}

/** The fields of a request that may cross, as they came. */
function without(raw) {
  const fields = [];
  for (let i = 0; i < raw.length; i += 2) if (!HOP_BY_HOP.has(raw[i].toLowerCase())) fields.push(raw[i], raw[i + 1]);
  return fields;
}
