// A Unix socket on which a process answers its own user's commands: GET, JSON. No other user may connect (mode 0600), and
// nothing but asking is done here. A socket that a dead process left behind is taken over.
import { chmodSync, unlinkSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { http } from './node-http.ts';

export type Control = { readonly close: () => Promise<void> };

/** Finds what stands at `path`, to be written as JSON; undefined: nothing. */
export type ControlLookup = (path: string) => Promise<unknown>;

/** Length of a socket's name in bytes, Linux's 108 less the end; macOS has 104. */
const MOST_BYTES = 103;
const ASK_MS = 5_000;
const MOST_ANSWER = 16 * 1024 * 1024;

/** Rejects with a sentence if no socket can be made there, or another process answers on it. */
export async function openControl(file: string, answer: ControlLookup): Promise<Control> {
  const name = nameOf(file);
  if (name === undefined) throw new Error('its path is too long for a socket');
  const server = http.createServer((req, res) => respond(req, res, answer));
  server.requestTimeout = ASK_MS;
  try {
    await listen(server, name);
  } catch (error) {
    if (!isInUse(error)) throw error;
    if (await isAnswered(name)) throw new Error('another process answers on it', { cause: error });
    unlinkSync(name);
    await listen(server, name);
  }
  chmodSync(name, 0o600);
  // Asking must not keep a process alive that has nothing else to do.
  server.unref();
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Asks the process at `file`. Undefined if none answers, else `{ status, body }` of what was said. */
export function askControl(
  file: string,
  target: string,
): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  const socketPath = nameOf(file);
  if (socketPath === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const noResponse = (): void => resolve(undefined);
    const request = http.get({ socketPath, path: target, timeout: ASK_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > MOST_ANSWER) request.destroy();
      });
      response.on('error', noResponse);
      response.on('close', noResponse);
      response.on('end', () => {
        try {
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as unknown });
        } catch {
          noResponse();
        }
      });
    });
    request.on('timeout', () => request.destroy());
    request.on('error', noResponse);
  });
}

function respond(req: IncomingMessage, res: ServerResponse, answer: ControlLookup): void {
  const found = req.method === 'GET' ? answer(req.url ?? '') : Promise.resolve(undefined);
  found.then(
    (value) => end(res, value === undefined ? 404 : 200, value ?? null),
    () => end(res, 500, null),
  );
}

function end(res: ServerResponse, status: number, value: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  res.end(JSON.stringify(value));
}

function listen(server: Server, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // The socket is its owner's alone from its first moment on: it is bound before this call returns.
    const mask = process.umask(0o177);
    try {
      server.listen(name, () => {
        server.removeListener('error', reject);
        resolve();
      });
    } finally {
      process.umask(mask);
    }
  });
}

function isAnswered(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(name);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/** The shorter of its two names; undefined if both are too long. */
function nameOf(file: string): string | undefined {
  const names = [path.resolve(file), path.relative(process.cwd(), file)];
  return names.find((name) => name !== '' && Buffer.byteLength(name) <= MOST_BYTES);
}
