// Tollgate as a process of its own, started as people start it: `tollgate serve -c FILE`, of the build. What it logs is
// collected, waiting is for a line or for the exit, and every process is ended by its id. Knows no test.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { findRunning } from '../../src/cli/runtime-files.ts';
import { programBuild } from './build.ts';
import { NO_NETWORK } from './no-network.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const NODE = path.join(ROOT, 'node_modules/.bin/node');
const START_MS = 45_000;

export type LogLine = { readonly level: string; readonly msg: string; readonly [field: string]: unknown };

export type TollgateProcess = {
  readonly pid: number;
  /** Base URL of a listener: proxy, registry, admin, sync. */
  readonly url: (listener: string) => string;
  readonly port: (listener: string) => number;
  readonly lines: readonly LogLine[];
  readonly stderr: () => string;
  /** The first line, past or to come, that `accepts`. */
  readonly line: (accepts: (line: LogLine) => boolean) => Promise<LogLine>;
  /** Resolves when commands beside it find it, so that nobody waits for longer than that. */
  readonly beside: () => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** The exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  /** Ends it at once and waits until it is gone. */
  readonly kill: () => Promise<void>;
};

export type StartOptions = {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Instead of the build's. */
  readonly program?: string;
  /** The Node that runs it; by default the one of this repository. */
  readonly node?: string;
  /** Listeners to wait for; none: resolve at once. */
  readonly listeners?: readonly string[];
};

/** `tollgate ...args`; resolves when `listeners` are bound, rejects with what it wrote where it ends before. */
export async function startProcess({
  args = [],
  env = {},
  cwd = ROOT,
  node = NODE,
  program = programBuild()[env['TOLLGATE_TEST_STOP_AT'] === undefined ? 'main' : 'crashing'],
  listeners = ['proxy', 'admin'],
}: StartOptions): Promise<TollgateProcess> {
  const child: ChildProcess = spawn(node, [...NO_NETWORK, program, ...args], {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: LogLine[] = [];
  const waiting = new Set<{ accepts: (line: LogLine) => boolean; resolve: (line: LogLine) => void }>();
  let stderr = '';
  let rest = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const line = readLine(part);
      lines.push(line);
      for (const wait of waiting) {
        if (!wait.accepts(line)) continue;
        waiting.delete(wait);
        wait.resolve(line);
      }
    }
  });
  const exited = new Promise<number | string>((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  const lineThat = (accepts: (line: LogLine) => boolean): Promise<LogLine> => {
    const past = lines.find(accepts);
    return past === undefined ? new Promise((resolve) => waiting.add({ accepts, resolve })) : Promise.resolve(past);
  };
  const bound = new Map<string, number>();
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  const whenBound = Promise.all(
    listeners.map(async (listener) => {
      const line = await lineThat(({ msg, listener: named }) => msg === 'listening' && named === listener);
      bound.set(listener, Number(line['port']));
    }),
  );
  const early = exited.then((code) => {
    throw new Error(`tollgate ${args.join(' ')} ended with ${code}: ${stderr}${JSON.stringify(lines.slice(-5))}`);
  });
  const late = new Promise<never>((_resolve, reject) => {
    setTimeout(() => reject(new Error(`tollgate did not start: ${stderr}${JSON.stringify(lines)}`)), START_MS).unref();
  });
  early.catch(() => undefined);
  late.catch(() => undefined);
  try {
    await Promise.race([whenBound, early, late]);
  } catch (error) {
    await kill();
    throw error;
  }
  const port = (listener: string): number => bound.get(listener) ?? 0;
  return {
    pid: child.pid ?? 0,
    port,
    url: (listener) => `http://127.0.0.1:${port(listener)}`,
    lines,
    stderr: () => stderr,
    line: lineThat,
    beside: async () => {
      while (!(await findRunning(cwd)).some(({ pid }) => pid === child.pid)) await setImmediate();
    },
    signal: (signal) => void child.kill(signal),
    exited,
    kill,
  };
}

/** A folder of its own for one test file, with `write` for the files in it. */
export function temporaryFolder(): {
  readonly folder: string;
  readonly write: (name: string, text: string) => string;
  readonly remove: () => void;
} {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-test-'));
  return {
    folder,
    write: (name, text) => {
      const file = path.join(folder, name);
      writeFileSync(file, text);
      return file;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, VITEST: _vitest, NODE_ENV: _env, ...rest } = process.env;
  // With npm's variables the program advises `npx tollgate` in place of `tollgate`.
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !/^(TOLLGATE|npm)_/.test(name)));
}

function readLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { level: 'text', msg: text };
  }
}
