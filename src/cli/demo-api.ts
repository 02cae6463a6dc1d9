// The API that the demo puts behind the paywall: a few JSON answers that say which of them was reached and what Tollgate
// told it. It knows nothing of money, like any API behind Tollgate.
import type { IncomingMessage, Server } from 'node:http';
import { http } from '../host/node-http.ts';

export function createDemoApi(): Server {
  return http.createServer((req, res) => {
    const body = `${JSON.stringify(answerTo(req), null, 2)}\n`;
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    res.end(req.method === 'HEAD' ? undefined : body);
    req.resume();
  });
}

function answerTo({ method, url, headers }: IncomingMessage): unknown {
  const told = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('tollgate-')));
  return {
    from: 'the API behind Tollgate',
    you_asked: `${method} ${url}`,
    request_id: headers['x-request-id'],
    ...told,
  };
}
