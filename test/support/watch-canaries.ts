// Runs before every test file and makes it red where a secret of its was written: by a log in this process, or on the
// standard output or error of any Tollgate that it started. Learns what is secret by itself, from the requests that tests
// send and from the configuration and environment of the processes they start, so that a new test needs to do nothing.
import diagnostics from 'node:diagnostics_channel';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, vi } from 'vitest';
import type * as LogModule from '../../src/host/log.ts';
import { keepRequest, keepSecret, openOutput, startFile, takeLeaks } from './canaries.ts';

startFile();

vi.mock('../../src/host/log.ts', async (original) => {
  const real = await original<typeof LogModule>();
  const createLog: typeof real.createLog = (level, write, now, ...rest) => {
    const log = real.createLog(level, write, now, ...rest);
    // Everything that could be logged, whatever this test's level.
    const all = real.createLog('debug', openOutput('a log in this process'), () => 0);
    const both =
      (name: 'debug' | 'info' | 'warn' | 'error'): typeof log.debug =>
      (msg, fields) => {
        all[name](msg, fields);
        log[name](msg, fields);
      };
    return { debug: both('debug'), info: both('info'), warn: both('warn'), error: both('error'), enabled: log.enabled };
  };
  return { ...real, createLog };
});

// Each file listens for itself, also where several share a process.
const listeners: (readonly [channel: string, listener: (message: unknown) => void])[] = [
  ['undici:request:create', onFetch],
  ['http.client.request.start', onRequest],
  ['tracing:child_process.spawn:start', onSpawn],
];
for (const [channel, listener] of listeners) diagnostics.subscribe(channel, listener);

afterAll(() => {
  for (const [channel, listener] of listeners) diagnostics.unsubscribe(channel, listener);
  const leaks = takeLeaks();
  if (leaks.length === 0) return;
  const told = leaks.slice(0, 10).map(({ secret, writer, around }) => `${writer} shows ${secret}: ${around}`);
  throw new Error(`${leaks.length} secrets were written:\n${told.join('\n')}`);
});

type Started = {
  readonly process: ChildProcess;
  readonly options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly args?: readonly string[] };
};
type UndiciRequest = { readonly request: { readonly path: string; readonly headers: readonly string[] } };
type ClientRequest = {
  readonly request: { readonly path: string; readonly getHeaders: () => Record<string, string | string[] | undefined> };
};

function onFetch(message: unknown): void {
  const { path: target, headers } = (message as UndiciRequest).request;
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, String(headers[at + 1])] as const] : []));
  keepRequest(target, pairs);
}

function onRequest(message: unknown): void {
  const { request } = message as ClientRequest;
  const pairs = Object.entries(request.getHeaders()).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)] as const),
  );
  keepRequest(request.path, pairs);
}

function onSpawn(message: unknown): void {
  const { process: child, options } = message as Started;
  const args = (options.args ?? []).slice(1);
  const program = args.findIndex((arg) => /(?:^|\/)(?:src|dist)\/main\.[tj]s$/.test(arg));
  if (program < 0) return;
  const words = args.slice(program + 1);
  for (const [name, value] of Object.entries(options.env ?? {}))
    if (/SECRET|KEY|TOKEN|PASSWORD/.test(name)) keepSecret(`$${name}`, value ?? '');
  const learn = (): void => keepConfigured(words, options.cwd ?? process.cwd());
  learn();
  child.on('exit', learn);
  // Its streams come with the end of this call.
  queueMicrotask(() => {
    const name = `tollgate ${words.join(' ')}`;
    tap(child.stderr, openOutput(`${name}, standard error`));
    tap(child.stdout, printsSecrets(words) ? keepPrinted : openOutput(`${name}, standard output`));
  });
}

/** Listens without taking anything away from whoever reads the stream. */
function tap(stream: Readable | null, hear: (text: string) => void): void {
  if (stream === null) return;
  const push = stream.push.bind(stream);
  stream.push = (chunk: Buffer | string | null, encoding) => {
    if (chunk !== null) hear(chunk.toString());
    return push(chunk, encoding);
  };
}

/** Commands whose answer is a secret, alone on standard output. */
function printsSecrets(words: readonly string[]): boolean {
  return words[0] === 'token' || words[0] === 'demo' || (words[0] === 'keys' && words[1] === 'create');
}

function keepPrinted(text: string): void {
  for (const word of text.split(/[\s"'=]+/)) if (/^(?:eyJ|tg_)/.test(word)) keepSecret('a printed secret', word);
}

const VALUES = /\b(?:\w*secrets?|api_key|key|password)["']?\s*:\s*(\[[^\]]*\]|[^\r\n]*)/g;
const VALUE = /[^\s"'[\],{}$]{12,}/g;
const FILE = /\b(?:secrets?|key|password)_file["']?\s*:\s*["']?([^\s"',}]+)/g;

/** The secrets of a configuration: in it, in the files that it names, and those that a first start makes. */
function keepConfigured(words: readonly string[], cwd: string): void {
  const flag = words.findIndex((word) => word === '-c' || word === '--config');
  const file = path.resolve(cwd, (flag < 0 ? undefined : words[flag + 1]) ?? 'tollgate.yaml');
  const text = read(file);
  const folder = path.dirname(file);
  for (const [, values = ''] of text.matchAll(VALUES)) {
    // Of several on one line the first stands alone: what follows it are other members.
    const all = values.match(VALUE) ?? [];
    for (const value of values.startsWith('[') ? all : all.slice(0, 1)) keepSecret('a configured secret', value);
  }
  for (const [, name] of text.matchAll(FILE))
    for (const line of read(path.resolve(folder, name ?? '')).split('\n')) keepSecret('a secret file', line.trim());
  const store = /\bsqlite:([^\s"',}]+)/.exec(text)?.[1] ?? 'data/tollgate.db';
  const made = read(path.resolve(folder, path.dirname(store), 'secrets.json'));
  for (const [, value] of made.matchAll(/:\s*"([^"]+)"/g)) keepSecret('a made secret', value ?? '');
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
