// The Unix socket on which a process answers its workers. It is in the data folder, or, where that takes no socket, in
// a folder of its own among the system's temporary ones. No other user may connect (mode 0600). Sockets of dead
// processes are removed.
import { mkdtempSync, readdirSync, rmSync, rmdirSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { http } from '../../host/node-http.ts';
import { makePrivateFolder } from '../../host/private-folder.ts';

type WorkerSocket = { readonly path: string; readonly close: () => Promise<void> };

/** Longest path of a socket in bytes; systems take a little more. */
const MOST_BYTES = 100;
const NAME = /^workers-(\d+)\.sock$/;
const FOLDER = 'tollgate-workers-';

export async function openWorkerSocket(
  folder: string,
  handle: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<WorkerSocket> {
  await removeOld(folder);
  // Calls take as long as the ledger does, and connections are kept for as long as their worker lives.
  const server = http.createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }, handle);
  const name = `workers-${process.pid}.sock`;
  let place = path.join(folder, name);
  let own: string | undefined;
  if (Buffer.byteLength(place) > MOST_BYTES || !(await listensIn(server, folder, place))) {
    own = mkdtempSync(path.join(tmpdir(), FOLDER));
    place = path.join(own, name);
    await listen(server, place);
  }
  server.unref();
  return {
    path: place,
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      if (own !== undefined) rmSync(own, { recursive: true, force: true });
    },
  };
}

async function listensIn(server: Server, folder: string, place: string): Promise<boolean> {
  try {
    makePrivateFolder(folder);
    await listen(server, place);
    return true;
  } catch {
    return false;
  }
}

function listen(server: Server, place: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // The socket is its owner's alone from its first moment on; bound before this call returns.
    const mask = process.umask(0o177);
    try {
      server.listen(place, () => {
        server.removeListener('error', reject);
        resolve();
      });
    } finally {
      process.umask(mask);
    }
  });
}

/** Removes sockets of processes that are gone. One that was just made by a living process may not answer yet. */
async function removeOld(folder: string): Promise<void> {
  for (const name of namesIn(folder)) if (NAME.test(name)) await removeUnlessAnswered(path.join(folder, name));
  for (const name of namesIn(tmpdir())) {
    if (!name.startsWith(FOLDER)) continue;
    const own = path.join(tmpdir(), name);
    const sockets = namesIn(own).filter((socket) => NAME.test(socket));
    for (const socket of sockets) await removeUnlessAnswered(path.join(own, socket));
    // An empty one may just have been made.
    if (sockets.length > 0) quietly(() => rmdirSync(own));
  }
}

async function removeUnlessAnswered(place: string): Promise<void> {
  const pid = Number(NAME.exec(path.basename(place))?.[1]);
  // Our own number: of an earlier life, in a container that counts from 1.
  if (pid !== process.pid && isAlive(pid)) return;
  const isAnswered = await new Promise<boolean>((resolve) => {
    const socket = connect(place);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // A refusal alone says that no process listens.
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
  if (!isAnswered) quietly(() => rmSync(place, { force: true }));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process of another user is alive.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function quietly(run: () => void): void {
  try {
    run();
  } catch {
    // The folder is another user's, or not empty.
  }
}
