// The socket for workers beside those of other processes.
import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openWorkerSocket } from '../../../src/compose/workers/worker-socket.ts';
import { temporaryFolder } from '../../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);

test('behaviour: a socket that a dead process left is removed, and one that a living process has just made is not', async () => {
  // Neither answers: as between the bind of a socket and the first moment that it listens.
  const living = `workers-${process.ppid}.sock`;
  const dead = `workers-${spawnSync('true').pid}.sock`;
  for (const name of [living, dead]) writeFileSync(path.join(files.folder, name), '');
  const socket = await openWorkerSocket(files.folder, () => undefined);
  expect(new Set(readdirSync(files.folder))).toEqual(new Set([living, `workers-${process.pid}.sock`]));
  await socket.close();
});
