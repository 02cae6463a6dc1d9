// Upstreams that are programs of their own. A protected handler of theirs appends one byte to the file that HITS names;
// servers without code of their own hand such requests on to a counter in this process. Every program is ended by its id.
import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ProfileName } from '../../../../src/domain/routing/profile.ts';
import { freePort } from '../../../support/free-port.ts';
import { createHits, type Running, type UpstreamSpec } from '../upstream.ts';

export const PROGRAMS = path.join(import.meta.dirname, 'programs');
const START_MS = 300_000;

export type Place = {
  readonly folder: string;
  readonly port: number;
  /** A counter in this process: `http://127.0.0.1:PORT`. */
  readonly counter: string;
};

export type Program = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Written into the program's folder first. */
  readonly files?: Readonly<Record<string, string>>;
};

export type ProgramSpec = {
  readonly name: string;
  readonly profile?: ProfileName;
  /** Files that must be there, and how they come. */
  readonly needs: readonly string[];
  readonly packages: string;
  readonly program: (place: Place) => Program;
  /** Whether a request that was handed on to the counter is one for a protected handler; every one where left out. */
  readonly counts?: (req: IncomingMessage) => boolean;
};

export function program(spec: ProgramSpec): UpstreamSpec {
  return {
    name: spec.name,
    ...(spec.profile === undefined ? {} : { profile: spec.profile }),
    missing: () => (spec.needs.every(isThere) ? undefined : `apt-get install ${spec.packages}`),
    start: () => startProgram(spec),
  };
}

function isThere(needed: string): boolean {
  const places = needed.startsWith('/')
    ? [needed]
    : ['/usr/local/bin', '/usr/bin', '/usr/sbin', '/bin'].map((folder) => path.join(folder, needed));
  return places.some((file) => {
    try {
      accessSync(file, constants.R_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function startProgram(spec: ProgramSpec): Promise<Running> {
  const folder = mkdtempSync(path.join(tmpdir(), 'bypass-upstream-'));
  const hits = createHits();
  const counter = createServer((req, res) => {
    req.resume();
    if (spec.counts?.(req) ?? true) hits.executions++;
    res.end('paid for');
  });
  await new Promise<void>((resolve) => void counter.listen(0, '127.0.0.1', resolve));
  const { port: counterPort } = counter.address() as AddressInfo;
  const port = await freePort();
  const file = path.join(folder, 'hits');
  writeFileSync(file, '');
  const { command, args, env, files } = spec.program({ folder, port, counter: `http://127.0.0.1:${counterPort}` });
  for (const [name, content] of Object.entries(files ?? {})) writeFileSync(path.join(folder, name), content);
  const child = spawn(command, args, {
    cwd: folder,
    env: {
      PATH: '/usr/local/bin:/usr/bin:/usr/sbin:/bin',
      HOME: folder,
      LANG: 'C.UTF-8',
      HITS: file,
      PORT: String(port),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-2000));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  child.on('error', (error) => void (output += String(error)));
  const ended = new Promise<void>((resolve) => void child.once('exit', () => resolve()));
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
    await ended;
    clearTimeout(timer);
    counter.closeAllConnections();
    counter.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const deadline = Date.now() + START_MS;
  while (!(await answers(port))) {
    if (Date.now() > deadline || child.exitCode !== null) {
      await close();
      throw new Error(`${spec.name} did not start: ${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { port, executions: () => hits.executions + statSync(file).size, close };
}

/** Whether it answers a request: what is only bound may still be loading. */
async function answers(port: number): Promise<boolean> {
  try {
    await (await fetch(`http://127.0.0.1:${port}/free/ready`, { signal: AbortSignal.timeout(5000) })).text();
    return true;
  } catch {
    return false;
  }
}
