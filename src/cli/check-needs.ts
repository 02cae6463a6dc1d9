// Finds what a correct configuration lacks on this machine: a folder that takes its store, a receiver for its priced
// routes, and files of keys that are right to their end. `check` refuses each: a start would end, every payment would be
// answered 503, or every customer.
import { accessSync, constants, existsSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { LoadedConfig } from '../config/config.ts';
import type { Issue } from '../config/problems.ts';
import { readKeyTableAtOnce } from '../domain/selling/key-table.ts';
import { messageOf } from '../host/error-message.ts';
import { storeFile } from '../domain/store-settings.ts';
import { codeOf } from '../config/secret-files.ts';
import { makePrivateFolder } from '../host/private-folder.ts';

export function findNeeds(config: LoadedConfig): readonly Issue[] {
  return [...lackingReceivers(config), ...lackingFolders(config), ...wrongKeyFiles(config)];
}

/** Files of customers' keys in which a line is wrong, wherever it stands. */
function wrongKeyFiles({ selling }: LoadedConfig): Issue[] {
  return [...selling.customers.values()].flatMap(({ proof }, index): Issue[] => {
    if (proof.kind !== 'keys') return [];
    try {
      readKeyTableAtOnce(readFileSync(proof.file));
      return [];
    } catch (error) {
      const message = `names a file that is not right: ${messageOf(error)}`;
      return [{ path: ['selling', 'customers', index, 'keys_file'], message }];
    }
  });
}

function lackingReceivers({ front, receivers, routes }: LoadedConfig): Issue[] {
  const first = routes.findIndex(({ status }) => status === 'active');
  if (front === undefined || receivers.length > 0 || first === -1) return [];
  return [
    {
      path: ['routes', first],
      message:
        'costs money, and no `receivers` say who gets it: every payment would be answered 503 receiver_unknown; write receivers, or `status: paused` for the routes',
    },
  ];
}

/** The folders of what a start opens or ends without. */
function lackingFolders({ registry, charges, sync }: LoadedConfig): Issue[] {
  const needs: readonly (readonly [path: Issue['path'], file: string | undefined])[] = [
    [['registry', 'store'], registry && storeFile(registry.store)],
    [['charges', 'store'], charges.store && storeFile(charges.store)],
    [['sync', 'snapshot_file'], sync?.snapshotFile],
  ];
  return needs.flatMap(([at, file]) => {
    const code = file === undefined ? undefined : tryFile(file);
    if (code === undefined) return [];
    const message = `names ${file ?? ''}, which cannot be written here (${code}); name a folder that this user can write, or give it to this user`;
    return [{ path: at, message }];
  });
}

/** The system's word if `file` cannot be written where it stands. Whatever is made for it is taken away again. */
function tryFile(file: string): string | undefined {
  const folder = path.dirname(file);
  const trial = path.join(folder, `.tollgate-check-${process.pid}`);
  let made: string | undefined;
  try {
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
    made = makePrivateFolder(folder);
    writeFileSync(trial, '', { flag: 'wx', mode: 0o600 });
    rmSync(trial);
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    if (made !== undefined) removeMade(folder, made);
  }
}

/** Takes `folder` and those above it away, up to `first`, unless somebody has put something there meanwhile. */
function removeMade(folder: string, first: string): void {
  try {
    for (let at = folder; at.length >= first.length; at = path.dirname(at)) rmdirSync(at);
  } catch {
    // A server that was just started lives there.
  }
}
