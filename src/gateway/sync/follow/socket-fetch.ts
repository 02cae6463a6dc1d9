// GET over a Unix socket in the shape of `fetch`, which cannot use one. A worker reads the routes of the process that
// started it through it.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { http } from '../../../host/node-http.ts';

export function createSocketFetch(socketPath: string): typeof globalThis.fetch {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const asked = new Request(input, init);
      const { pathname, search } = new URL(asked.url);
      const { method, signal } = asked;
      const headers = Object.fromEntries(asked.headers);
      const request = http.request({ socketPath, method, path: pathname + search, headers, signal }, (response) =>
        resolve(responseOf(response)),
      );
      request.on('error', reject);
      request.end();
    });
}

function responseOf(response: IncomingMessage): Response {
  const { statusCode: status = 0, rawHeaders } = response;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  const hasBody = status !== 204 && status !== 304;
  if (!hasBody) response.resume();
  return new Response(hasBody ? (Readable.toWeb(response) as ReadableStream<Uint8Array>) : null, { status, headers });
}
