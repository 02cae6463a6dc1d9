// The demos that run on this machine for this user: where each can be reached, and its purses. They hold test money of
// chains that end with the demo. Each has a file of its own, so that two of them do not take each other's purse.
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';

const purseWire = z.object({
  /** Name in the configuration. */
  network: z.string(),
  facilitator: z.url(),
  rpc_url: z.url(),
  /** The payer's private key, 32 bytes in hex. */
  key: z.string().regex(/^[0-9a-f]{64}$/),
});
const demoWire = z.object({
  pid: z.int().positive(),
  /** Base URL of its proxy. */
  proxy: z.url(),
  /** Purses, one for each network that the demo offers, in the order of the networks. */
  purses: z.array(purseWire).min(1),
});
export type DemoPurse = z.output<typeof purseWire>;
export type RunningDemo = z.output<typeof demoWire>;

const FOLDER = path.join(tmpdir(), `tollgate-demos-${process.getuid?.() ?? 0}`);

/** Returns how to take it away again. Throws a sentence if the folder is another user's. */
export function registerDemo(demo: RunningDemo, folder = FOLDER): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!isOurs(folder)) throw new Error(`${folder} belongs to another user or is open to others; take it away`);
  const file = path.join(folder, `${demo.pid}.json`);
  writeFileSync(file, JSON.stringify(demo), { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** Finds demos whose process is alive; what others left behind is taken away. */
export function runningDemos(folder = FOLDER): RunningDemo[] {
  let names: string[];
  try {
    if (!isOurs(folder)) return [];
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const file = path.join(folder, name);
    const demo = readDemo(file);
    if (demo !== undefined && isAlive(demo.pid)) return [demo];
    rmSync(file, { force: true });
    return [];
  });
}

function readDemo(file: string): RunningDemo | undefined {
  try {
    return demoWire.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** Whether a folder, in a place that every user may write to, was made and is read by this user alone. */
function isOurs(folder: string): boolean {
  const { uid, mode } = lstatSync(folder);
  return lstatSync(folder).isDirectory() && uid === (process.getuid?.() ?? uid) && (mode & 0o077) === 0;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
