// The files that a running Tollgate leaves in its data folder for the commands beside it. A socket says who answers
// there. A Tollgate that was started from flags also leaves its configuration. No secret stands in either.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { LoadedConfig } from '../config/config.ts';
import { dataFolderOf, RUNNING_FILE } from '../config/data-folder.ts';
import { makePrivateFolder } from '../host/private-folder.ts';
import { askControl, openControl, type ControlLookup, type Control } from '../host/control.ts';
import { sharedVariables } from './variables.ts';

export const SOCKET_FILE = 'tollgate.sock';
/** Folders beside the working folder's files that are looked into. */
const MOST_FOLDERS = 1_000;

const runningWire = z.object({
  pid: z.int(),
  started_at: z.string(),
  /** The configuration, absolute. */
  config: z.string(),
  /** Variables that the configuration was filled in from; null: a secret, which is not told. */
  variables: z.record(z.string(), z.string().nullable()),
});

export type RunningServer = {
  readonly pid: number;
  readonly startedAt: string;
  readonly config: string;
  readonly variables: ReadonlyMap<string, string | null>;
  readonly socket: string;
};

type RuntimeFacts = {
  readonly config: LoadedConfig;
  /** The configuration file, absolute, or what flags said, as a file would hold it. */
  readonly source: { readonly file: string } | { readonly data: unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly startedAt: string;
  /** Answers the other paths of the socket: `/why/ID`. */
  readonly answer: ControlLookup;
};

/** Says to commands of this user that this process runs. Rejects with a sentence if the data folder takes no socket. */
export async function announce({ config, source, env, startedAt, answer }: RuntimeFacts): Promise<Control> {
  const folder = dataFolderOf(config);
  const file = 'file' in source ? source.file : path.join(folder, RUNNING_FILE);
  makePrivateFolder(folder);
  // Values from flags are meant literally, so `${` is escaped.
  if ('data' in source) writeWhole(file, `${JSON.stringify(source.data, null, 2).replaceAll('${', '$${')}\n`);
  // Flags name no variable, except those of short forms.
  const variables = sharedVariables('file' in source ? readFileSync(file, 'utf8') : '', config, env);
  const about: z.input<typeof runningWire> = {
    pid: process.pid,
    started_at: startedAt,
    config: file,
    variables: Object.fromEntries(variables),
  };
  return openControl(path.join(folder, SOCKET_FILE), async (target) => (target === '/' ? about : answer(target)));
}

/** The servers whose data folder is `folder`, or stands in it. */
export async function findRunning(folder: string): Promise<readonly RunningServer[]> {
  const found = await Promise.all(socketsIn(folder).map(askRunning));
  return found.filter((server) => server !== undefined);
}

/** Asks the process that listens on `socket` which server it is. */
async function askRunning(socket: string): Promise<RunningServer | undefined> {
  const answered = await askControl(socket, '/');
  const read = runningWire.safeParse(answered?.body);
  if (!read.success) return undefined;
  const { pid, started_at: startedAt, config, variables } = read.data;
  return { pid, startedAt, config, variables: new Map(Object.entries(variables)), socket };
}

function socketsIn(folder: string): string[] {
  const places = [folder];
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (places.length > MOST_FOLDERS) break;
      if (entry.isDirectory() && entry.name !== 'node_modules') places.push(path.join(folder, entry.name));
    }
  } catch {
    // A folder that cannot be read holds no server of this user.
  }
  return places.map((place) => path.join(place, SOCKET_FILE));
}

/** Writes a file for its owner alone, and never half written. */
function writeWhole(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}
