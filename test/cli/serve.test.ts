// How serve comes up and goes down, with a Tollgate that is none: what is refused before the start, what a signal does.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readArgs, type Args } from '../../src/cli/args.ts';
import { runServe, serve, type RunningTollgate, type Start } from '../../src/cli/serve.ts';
import type { Config } from '../../src/config/config.ts';
import { ADDRESS, RECEIVER } from '../config/support.ts';
import { fakeIo, type FakeIo } from './support.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  writeFileSync(join(folder, 'tollgate.yaml'), 'registry: { listen: "127.0.0.1:0" }\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function argsOf(...argv: string[]): Args {
  const result = readArgs(argv, serve.flags, serve.words);
  if (!result.ok) throw new Error(result.problems.join());
  return result.args;
}

const never: Start = () => {
  throw new Error('nothing may start here');
};
const lines = (io: FakeIo): Record<string, unknown>[] =>
  io
    .stdout()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** Starts what `argv` says and hands over what would run; `end` is the exit code. */
async function started(
  io: FakeIo,
  running: Partial<RunningTollgate> = {},
  ...argv: string[]
): Promise<{ config: Config; end: Promise<number> }> {
  const ready = Promise.withResolvers<Config>();
  const end = runServe(argsOf(...argv), io, async (config) => {
    ready.resolve(config);
    return { addresses: {}, stop: async () => undefined, ...running };
  });
  const config = await Promise.race([
    ready.promise,
    end.then((code) => Promise.reject(new Error(`ended with ${code}: ${io.stderr()}`))),
  ]);
  // Signals are heard from before the start on; what runs is known one turn later.
  await new Promise(setImmediate);
  return { config, end };
}

const QUICK = ['--upstream', 'http://127.0.0.1:1', '--pay-to', ADDRESS, '--route', 'GET /a 1', '--data', 'kept'];

describe('refuses, before anything is bound', () => {
  test.each([
    ['in the command', { execArgv: ['--insecure-http-parser'], env: {} }],
    ['with underscores', { execArgv: ['--insecure_http_parser'], env: {} }],
    ['with a value', { execArgv: ['--insecure-http-parser=false'], env: {} }],
    ['in NODE_OPTIONS', { execArgv: [], env: { NODE_OPTIONS: '--max-old-space-size=100  --insecure-http-parser' } }],
    ['quoted in NODE_OPTIONS', { execArgv: [], env: { NODE_OPTIONS: '"--insecure\\-http"_parser=1' } }],
    ['named nowhere, seen by what it does', { lenientParser: () => Promise.resolve(true) }],
  ])('attack: a lenient parser %s', async (_name, overrides) => {
    const io = fakeIo({ folder, ...overrides });
    expect(await runServe(argsOf(), io, never)).toBe(64);
    expect(io.stderr()).toContain('--insecure-http-parser');
  });

  test('refuses: to serve without any configuration, with the two ways to start', async () => {
    rmSync(join(folder, 'tollgate.yaml'));
    const io = fakeIo({ folder });
    expect(await runServe(argsOf(), io, never)).toBe(64);
    expect(io.stderr()).toMatch(/tollgate serve --config FILE[^]*tollgate serve --upstream .* --route .* --pay-to/);
  });

  test('refuses: to serve with a wrong file, on standard error', async () => {
    writeFileSync(join(folder, 'tollgate.yaml'), 'registry:\n  listn: x\n');
    const io = fakeIo({ folder });
    expect(await runServe(argsOf(), io, never)).toBe(64);
    expect(io.stderr()).toBe('tollgate.yaml:2:3 registry.listn: is not known here; did you mean listen?\n');
    expect(io.stdout()).toBe('');
  });

  test('refuses: to serve with a file that is not there', async () => {
    const io = fakeIo({ folder });
    expect(await runServe(argsOf('-c', 'other.yaml'), io, never)).toBe(64);
    expect(io.stderr()).toBe('other.yaml:1:1 (file): cannot be read (ENOENT); check its name and permissions\n');
  });

  test('refuses: --config beside the flags that stand for a file', async () => {
    const io = fakeIo({ folder });
    expect(await runServe(argsOf('-c', 'tollgate.yaml', '--upstream', 'http://a', '--data', 'd'), io, never)).toBe(64);
    expect(io.stderr()).toMatch(
      /^--upstream: cannot stand beside --config.*\n--data: cannot stand beside --config.*\n$/,
    );
  });

  test('refuses: to serve with wrong flags, all at once', async () => {
    const io = fakeIo({ folder });
    expect(await runServe(argsOf('--route', 'x', '--listen', 'y'), io, never)).toBe(64);
    expect(io.stderr().split('\n')).toHaveLength(5);
  });

  test('refuses: to serve with a data folder that cannot be written', async () => {
    writeFileSync(join(folder, 'data'), '');
    const io = fakeIo({ folder });
    expect(await runServe(argsOf(), io, never)).toBe(64);
    expect(io.stderr()).toMatch(/data/);
  });
});

describe('behaviour: which configuration is taken', () => {
  const from = async (io: FakeIo, ...argv: string[]): Promise<Config> => {
    const { config, end } = await started(io, {}, ...argv);
    io.signal('SIGTERM');
    await end;
    return config;
  };

  test('the configuration is that of --config, else of TOLLGATE_CONFIG, else tollgate.yaml', async () => {
    for (const name of ['flag', 'env']) writeFileSync(join(folder, `${name}.yaml`), 'registry: {}\n');
    const env = { TOLLGATE_CONFIG: 'env.yaml' };
    expect((await from(fakeIo({ folder, env }), '-c', 'flag.yaml')).file).toBe(join(folder, 'flag.yaml'));
    expect((await from(fakeIo({ folder, env }))).file).toBe(join(folder, 'env.yaml'));
    expect((await from(fakeIo({ folder }))).file).toBe(join(folder, 'tollgate.yaml'));
  });

  test('flags win over a file that is only there, and say TESTNET', async () => {
    const io = fakeIo({ folder });
    const config = await from(io, ...QUICK);
    expect(config).toMatchObject({
      file: undefined,
      shape: 'all-in-one',
      registry: { store: { file: join(folder, 'kept/tollgate.db') } },
    });
    expect(io.stderr()).toContain('tollgate.yaml is not read');
    expect(io.stderr()).toContain('TESTNET');
    expect(lines(io)).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'TESTNET: payments are test money' }),
    );
  });

  test.each([
    ['', 'public nodes are asked', ['sepolia.base.org', 'base-sepolia-rpc.publicnode.com']],
    ['    rpc_url: https://node.example/v2/a-key-in-the-path', 'nodes are asked', ['node.example']],
    ['    rpc_url: none', 'no node is asked', undefined],
  ])('the start says which nodes see payments, by host alone: %s', async (line, words, nodes) => {
    writeFileSync(
      join(folder, 'tollgate.yaml'),
      `proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }\nregistry: { listen: "127.0.0.1:0" }\nreceivers:${RECEIVER}\n${line}\n`,
    );
    const io = fakeIo({ folder });
    const { end } = await started(io);
    io.signal('SIGTERM');
    await end;
    const said = lines(io).filter(({ msg }) => String(msg).includes('about settlements of unknown end'));
    expect(said).toEqual([
      expect.objectContaining({ level: 'info', receiver: 'default', ...(nodes ? { nodes } : {}) }),
    ]);
    expect(said[0]?.['msg']).toMatch(new RegExp(`^${words}`));
    expect(io.stdout()).not.toContain('a-key-in-the-path');
  });

  test('the start says each network of several ways once', async () => {
    const way = (network: string, payTo: string): string => `{ network: ${network}, pay_to_address: "${payTo}" }`;
    const other = `0x${'2'.repeat(40)}`;
    const ways = [way('base-sepolia', ADDRESS), way('base-sepolia', other), way('avalanche-fuji', ADDRESS)];
    writeFileSync(
      join(folder, 'tollgate.yaml'),
      `proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }\nregistry: { listen: "127.0.0.1:0" }\nreceivers: [{ id: default, facilitators: [https://f.example], accepts: [${ways.join(', ')}] }]\n`,
    );
    const io = fakeIo({ folder });
    const { end } = await started(io);
    io.signal('SIGTERM');
    await end;
    const said = lines(io).filter(({ msg }) => String(msg).includes('about settlements of unknown end'));
    expect(said.map(({ network }) => network)).toEqual(['base-sepolia', 'avalanche-fuji']);
    expect(lines(io)).toContainEqual(
      expect.objectContaining({
        msg: 'TESTNET: payments are test money',
        receivers: ['default (base-sepolia)', 'default (avalanche-fuji)'],
      }),
    );
  });

  test('real money does not say TESTNET', async () => {
    const io = fakeIo({ folder });
    await from(io, ...QUICK, '--network', 'base', '--facilitator', 'https://f.example');
    expect(io.stdout() + io.stderr()).not.toContain('TESTNET');
  });
});

describe('behaviour: running and stopping', () => {
  test('SIGTERM stops a server, which ends with 0; what goes to standard output is JSON', async () => {
    const io = fakeIo({ folder });
    let stopped = 0;
    const { end } = await started(io, {
      stop: async () => {
        stopped++;
      },
    });
    io.signal('SIGTERM');
    expect(await end).toBe(0);
    expect(stopped).toBe(1);
    expect(io.exits).toEqual([]);
    expect(lines(io).map(({ msg }) => msg)).toEqual(['made random secrets for the first start', 'stopping']);
  });

  test.each([
    ['SIGINT', true, false],
    ['SIGTERM', true, true],
    ['SIGINT', false, true],
  ] as const)('%s, at a terminal %j, waits for load balancers: %j', async (signal, attended, waited) => {
    const io = fakeIo({ folder, terminal: { attended, shown: attended } });
    const asked: boolean[] = [];
    const { end } = await started(io, { stop: async (waiting) => void asked.push(waiting) });
    io.signal(signal);
    expect(await end).toBe(0);
    expect(asked).toEqual([waited]);
  });

  test.each([
    ['auto', true, {}, 'text', true],
    ['auto', true, { NO_COLOR: '1' }, 'text', false],
    ['auto', true, { TERM: 'dumb' }, 'text', false],
    ['auto', false, {}, 'json', false],
    ['json', true, {}, 'json', false],
    ['text', false, {}, 'text', false],
  ] as const)('log.format %s, a terminal %j, %j: %s, colours %j', async (format, shown, env, expected, colors) => {
    writeFileSync(join(folder, 'tollgate.yaml'), `registry: { listen: "127.0.0.1:0" }\nlog: { format: ${format} }\n`);
    const io = fakeIo({ folder, env, terminal: { attended: shown, shown } });
    const { end } = await started(io);
    io.signal('SIGTERM');
    await end;
    const [line = ''] = io.stdout().split('\n').slice(-2);
    expect(line.includes('\u001b')).toBe(colors);
    if (expected === 'json') expect(JSON.parse(line)).toMatchObject({ msg: 'stopping', signal: 'SIGTERM' });
    else expect(line.replaceAll(/\u001b\[\d+m/g, '')).toMatch(/^\d\d:\d\d:\d\d {2}stopping {2}signal=SIGTERM$/);
  });

  test('log.format follows a reload', async () => {
    const io = fakeIo({ folder });
    const reloaded = Promise.withResolvers<void>();
    const { end } = await started(io, { reload: () => reloaded.resolve() });
    writeFileSync(join(folder, 'tollgate.yaml'), 'registry: { listen: "127.0.0.1:0" }\nlog: { format: text }\n');
    io.signal('SIGHUP');
    await reloaded.promise;
    await new Promise(setImmediate);
    io.signal('SIGTERM');
    await end;
    expect(io.stdout()).toMatch(
      /"msg":"reloading the configuration"[^]*\n\d\d:\d\d:\d\d {2}stopping {2}signal=SIGTERM\n$/,
    );
  });

  test('a second signal ends a server at once', async () => {
    const io = fakeIo({ folder });
    const drained = Promise.withResolvers<void>();
    const { end } = await started(io, { stop: () => drained.promise });
    io.signal('SIGINT');
    expect(io.exits).toEqual([]);
    io.signal('SIGINT');
    expect(io.exits).toEqual([130]);
    drained.resolve();
    await end;
  });

  test('a signal during the start stops after it', async () => {
    const io = fakeIo({ folder });
    const up = Promise.withResolvers<RunningTollgate>();
    const begun = Promise.withResolvers<void>();
    let stopped = false;
    const end = runServe(argsOf(), io, () => {
      begun.resolve();
      return up.promise;
    });
    await begun.promise;
    io.signal('SIGTERM');
    up.resolve({ addresses: {}, stop: async () => void (stopped = true) });
    expect(await end).toBe(0);
    expect(stopped).toBe(true);
  });

  test('a start that does not end is left after a signal', async () => {
    const io = fakeIo({ folder });
    const end = runServe(argsOf(), io, () => {
      setImmediate(() => io.signal('SIGTERM'));
      return new Promise(() => undefined);
    });
    expect(await end).toBe(0);
    expect(lines(io).at(-1)).toMatchObject({ level: 'warn', msg: 'stopped before the start was over' });
  });

  test('a start that fails is told and ends with 69', async () => {
    const io = fakeIo({ folder });
    expect(await runServe(argsOf(), io, async () => Promise.reject(new Error('port 1 is taken')))).toBe(69);
    expect(io.stderr()).toBe('Tollgate could not start: port 1 is taken\n');
    expect(io.stdout()).not.toContain('port 1 is taken');
  });

  test.each([
    ['0', 1],
    ['1', 0],
    ['', 0],
  ])('attack: certificates that are not checked (%j) are warned about', async (value, times) => {
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: value };
    const io = fakeIo({ folder, env });
    const { end } = await started(io);
    io.signal('SIGTERM');
    await end;
    expect(lines(io).filter(({ msg }) => String(msg).startsWith('NODE_TLS_REJECT'))).toHaveLength(times);
  });

  test('a server that root runs warns once, others never', async () => {
    for (const [uid, times] of [
      [0, 1],
      [1000, 0],
      [undefined, 0],
    ] as const) {
      const io = fakeIo({ folder, uid });
      const { end } = await started(io);
      io.signal('SIGTERM');
      await end;
      expect(lines(io).filter(({ msg }) => String(msg).startsWith('running as root'))).toHaveLength(times);
    }
  });

  test('SIGHUP reloads a good file and keeps what runs for a bad one', async () => {
    const io = fakeIo({ folder });
    const reloaded: Config[] = [];
    const { end } = await started(io, { reload: (config) => void reloaded.push(config) });
    writeFileSync(join(folder, 'tollgate.yaml'), 'registry: { listen: "127.0.0.1:0" }\nmetrics: { max_routes: 7 }\n');
    io.signal('SIGHUP');
    await vi.waitFor(() => expect(reloaded.map(({ metrics }) => metrics.maxRoutes)).toEqual([7]));
    writeFileSync(join(folder, 'tollgate.yaml'), 'registry: { listn: x }\n');
    io.signal('SIGHUP');
    await vi.waitFor(() =>
      expect(lines(io).at(-1)).toMatchObject({ level: 'error', problem: expect.stringContaining('registry.listn') }),
    );
    expect(reloaded).toHaveLength(1);
    io.signal('SIGTERM');
    expect(await end).toBe(0);
  });

  test('SIGHUP without a way to reload is told and ends nothing', async () => {
    const io = fakeIo({ folder });
    const { end } = await started(io);
    io.signal('SIGHUP');
    expect(lines(io).at(-1)).toMatchObject({ level: 'warn', msg: 'nothing to reload; restart to take changes on' });
    io.signal('SIGTERM');
    expect(await end).toBe(0);
  });
});
