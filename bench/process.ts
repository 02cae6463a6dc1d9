// Starts the servers and the load of the bench, each in a process of its own on a core of its own, and reads what they
// used from /proc. Every process is ended by its own id, also when the bench itself is killed. Knows nothing of what runs
// in them but that a server prints `{"msg":"listening","listener":...,"port":...}` once it takes connections.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

/** The server under measurement has a core to itself; everything that makes and answers load shares the other. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

export type Command = {
  /** For messages. */
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** Undefined: on all of them. */
  readonly core: number | undefined;
  readonly folder?: string;
};

export type Server = {
  readonly pid: number;
  readonly port: (listener: string) => number;
  readonly stop: () => Promise<void>;
};

const START_MS = 120_000;
const STOP_MS = 10_000;
const KEPT_STDERR = 4000;

export const NODE = process.execPath;

/** Whether processes can be pinned here: `taskset` is installed and there are two cores. */
export function canPin(): boolean {
  return availableParallelism() > 1 && isInstalled('taskset');
}

export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', 'command -v "$0"', program], { stdio: 'ignore' }).status === 0;
}

/** Starts a server and resolves when it named every one of `listeners`. Rejects with what it wrote to standard error. */
export async function startServer(command: Command, listeners: readonly string[]): Promise<Server> {
  const child = launch(command, 'pipe');
  const ports = new Map<string, number>();
  const complaint = keepStderr(child);
  const ready = Promise.withResolvers<void>();
  if (child.stdout === null) throw new Error('a server without standard output cannot say where it listens');
  createInterface({ input: child.stdout }).on('line', (line) => {
    const bound = readListening(line);
    if (bound === undefined) return;
    ports.set(bound.listener, bound.port);
    if (listeners.every((listener) => ports.has(listener))) ready.resolve();
  });
  child.on('exit', (code) => ready.reject(new Error(`${command.name} ended with ${code}: ${complaint()}`)));
  child.on('error', (error) => ready.reject(error));
  const server = serverOf(command, child, ports);
  return settleStart(server, ready.promise, command.name);
}

/** Starts a server that says nothing, such as nginx, and resolves when `port` takes connections. */
export async function startSilent(command: Command, port: number): Promise<Server> {
  const child = launch(command, 'ignore');
  const complaint = keepStderr(child);
  const ended = new Promise<never>((_, reject) => {
    child.on('exit', (code) => reject(new Error(`${command.name} ended with ${code}: ${complaint()}`)));
    child.on('error', reject);
  });
  const server = serverOf(command, child, new Map([['proxy', port]]));
  return settleStart(server, Promise.race([acceptsConnections(port), ended]), command.name);
}

/** Runs a program to its end and returns what it printed. Rejects where it fails. */
export async function runToEnd(command: Command): Promise<string> {
  const child = launch(command, 'pipe');
  const complaint = keepStderr(child);
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('close', resolve);
    child.on('error', reject);
  });
  if (code !== 0) throw new Error(`${command.name} ended with ${code}: ${complaint()}`);
  return out;
}

/** CPU time of a process so far, all threads, user and system, in microseconds. Linux counts it in steps of 10 ms. */
export function readCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The program's name stands in parentheses and may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** The same of everything that ran on a core, and of what the host took away from it; interrupts left out. */
export function readCoreUs(core: number): number {
  const line = new RegExp(`^cpu${core} (.*)`, 'm').exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? '';
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = line.split(' ').map(Number);
  return (user + nice + system + steal) * TICK_US;
}

const TICK_US = 10_000;

/** CPU time so far in microseconds: the thread that serves requests, the ledger's threads, and all there are. */
export type ThreadsUs = { readonly all: number; readonly main: number; readonly ledger: number };

/** The same by thread, counted in nanoseconds: nothing is lost to the length of a tick. A thread that ended is not in it. */
export function readThreadsUs(pid: number): ThreadsUs {
  const sum = { all: 0, main: 0, ledger: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    const us = Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]) / 1000;
    sum.all += us;
    if (Number(thread) === pid) sum.main += us;
    else if (readFileSync(`${folder}/comm`, 'utf8').includes('ledger')) sum.ledger += us;
  }
  return sum;
}

/** A process and those that it started. */
export function readFamily(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((each) => each !== '');
  return [pid, ...children.flatMap((child) => readFamily(Number(child)))];
}

export type MemoryMb = { readonly resident: number; readonly anonymous: number; readonly peak: number };

/** Memory of a process in MB: resident now; of that what is no file's, such as its program; and the most it ever was. */
export function readMemoryMb(pid: number): MemoryMb {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return {
    resident: kilobytes('VmRSS') / 1024,
    anonymous: kilobytes('RssAnon') / 1024,
    peak: kilobytes('VmHWM') / 1024,
  };
}

/** Whether a process has nothing to do: it waits for something to happen. One that waits for a core is not idle. */
export function isIdle(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('S');
}

function launch({ file, args, core, folder }: Command, stdout: 'pipe' | 'ignore'): ChildProcess {
  const pinned = core !== undefined && canPin() ? ['taskset', '-c', String(core)] : [];
  // The kernel ends it with us, however we end.
  const bound = isInstalled('setpriv') ? ['setpriv', '--pdeathsig', 'TERM'] : [];
  const [first = file, ...rest] = [...pinned, ...bound, file, ...args];
  const child = spawn(first, rest, { stdio: ['ignore', stdout, 'pipe'], cwd: folder });
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  return child;
}

function keepStderr(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text = (text + chunk).slice(-KEPT_STDERR)));
  return () => text.trim() || 'it said nothing';
}

async function settleStart(server: Server, ready: Promise<void>, name: string): Promise<Server> {
  const tooLate = new AbortController();
  try {
    const late = setTimeout(START_MS, undefined, { signal: tooLate.signal }).then(() => {
      throw new Error(`${name} did not listen within ${START_MS / 1000} s`);
    });
    await Promise.race([ready, late]);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  } finally {
    tooLate.abort();
    // Whichever of them lost is nobody's business any more.
    ready.catch(() => undefined);
  }
}

function serverOf({ name }: Command, child: ChildProcess, ports: ReadonlyMap<string, number>): Server {
  const ended = new Promise<void>((resolve) => {
    child.on('exit', () => resolve());
    child.on('error', () => resolve());
  });
  return {
    pid: child.pid ?? 0,
    port: (listener) => {
      const port = ports.get(listener);
      if (port === undefined) throw new Error(`${name} has no listener ${listener}`);
      return port;
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      child.kill('SIGTERM');
      const patience = new AbortController();
      const force = setTimeout(STOP_MS, undefined, { signal: patience.signal }).then(
        () => void child.kill('SIGKILL'),
        () => undefined,
      );
      await ended;
      patience.abort();
      await force;
    },
  };
}

function readListening(line: string): { listener: string; port: number } | undefined {
  if (!line.includes('"listening"')) return undefined;
  const entry: unknown = JSON.parse(line);
  if (typeof entry !== 'object' || entry === null || !('listener' in entry) || !('port' in entry)) return undefined;
  return { listener: String(entry.listener), port: Number(entry.port) };
}

async function acceptsConnections(port: number): Promise<void> {
  for (;;) {
    const taken = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (taken) return;
    await setTimeout(20);
  }
}
