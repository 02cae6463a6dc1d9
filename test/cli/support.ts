// What the tests of the commands share: a process that is none, and a real one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Io } from '../../src/cli/command.ts';
import { programBuild } from '../support/build.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { NO_NETWORK } from '../support/no-network.ts';

export type FakeIo = Io & {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Delivers a signal as the system would. */
  readonly signal: (name: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void;
  readonly exits: number[];
};

export function fakeIo(overrides: Partial<Io> = {}): FakeIo {
  let stdout = '';
  let stderr = '';
  const handlers = new Map<string, () => void>();
  const exits: number[] = [];
  return {
    out: (line) => void (stdout += `${line}\n`),
    write: (chunk) => void (stdout += chunk),
    err: (line) => void (stderr += `${line}\n`),
    env: {},
    folder: '/nowhere',
    execArgv: [],
    lenientParser: () => Promise.resolve(false),
    terminal: { attended: false, shown: false },
    uid: 1000,
    version: '1.2.3',
    program: 'tollgate',
    onSignal: (signal, handler) => void handlers.set(signal, handler),
    exitNow: (code) => void exits.push(code),
    ...overrides,
    stdout: () => stdout,
    stderr: () => stderr,
    signal: (name) => handlers.get(name)?.(),
    exits,
  };
}

const ROOT = join(import.meta.dirname, '../..');
export const NODE = join(ROOT, 'node_modules/.bin/node');
export const MAIN = programBuild().main;

/** The environment of a started program: nothing of ours. */
export const BARE_ENV = { PATH: process.env['PATH'] ?? '', ...COMPILE_CACHE };

/** Runs the built program with `env` alone and waits for its end. */
export async function tollgate(
  argv: readonly string[],
  { folder, env = {} }: { folder: string; env?: Record<string, string> },
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(NODE, [...NO_NETWORK, MAIN, ...argv], {
    cwd: folder,
    env: { ...BARE_ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A command that hangs must not hang whoever tests it.
    timeout: 45_000,
    killSignal: 'SIGKILL',
  });
  const closed = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  return { code: child.exitCode, stdout, stderr };
}
