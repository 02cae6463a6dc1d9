// Calls of a sidecar to its registry: with its key, without redirects or caches. A read whose connection broke is tried
// once more. The callers decide when to ask again after that, and what each status means.
import ky, { type KyInstance } from 'ky';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { http } from '../../host/node-http.ts';

type RegistryClientOptions = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  /** Named to the registry. */
  readonly version: string;
  /** By which the registry counts its sidecars. */
  readonly instance?: string;
  readonly fetch: typeof globalThis.fetch;
};

const PAUSE_MS = 100;

export function createRegistryClient({
  registryUrl,
  apiKey,
  version,
  instance,
  fetch,
}: RegistryClientOptions): KyInstance {
  return ky.create({
    prefix: registryUrl,
    fetch,
    headers: {
      Authorization: `Bearer ${apiKey}`,
      'User-Agent': `tollgate/${version}`,
      ...(instance === undefined ? {} : { 'Tollgate-Instance': instance }),
    },
    throwHttpErrors: false,
    retry: { limit: 1, methods: ['get'], delay: () => PAUSE_MS },
    timeout: false,
    redirect: 'manual',
    cache: 'no-store',
  });
}

// GET over a Unix socket in the shape of `fetch`, which cannot use one. A worker's registry is the process that started
// it.

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
