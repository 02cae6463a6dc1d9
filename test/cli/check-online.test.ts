// `check --online` asks the upstream for a connection and the registry with the sidecar's key; the start says of both what
// the first request would find out. Real listeners, a real registry.
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, type Kit } from '../registry/kit.ts';
import { ADDRESS, SECRET } from '../config/support.ts';
import { freePort } from '../support/free-port.ts';
import { startProcess } from '../support/process.ts';
import { fakeIo } from './support.ts';

let folder: string;
let registry: Kit;
let upstream: Server;
let connections = 0;
let received = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-online-'));
  registry = await startRegistry();
  upstream = createServer((socket) => {
    connections++;
    // Plain text to whoever says anything, as an HTTP server answers what it cannot read.
    socket
      .on('error', () => undefined)
      .on('data', (bytes: Buffer) => {
        received += bytes.length;
        socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      });
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
});
afterAll(async () => {
  upstream.close();
  await registry.close();
  rmSync(folder, { recursive: true, force: true });
});

const upstreamPort = (): number => (upstream.address() as AddressInfo).port;

async function online(upstreamUrl: string, parts: { key?: string; url?: string; store?: boolean } = {}) {
  const { key = SDK_KEY, url = `http://127.0.0.1:${registry.port}`, store = true } = parts;
  writeFileSync(
    join(folder, 'tollgate.yaml'),
    [
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstreamUrl}" }`,
      `sync: { registry_url: "${url}", api_key: "${key}" }`,
      `charges: { secrets: ["${SECRET}"]${store ? ', store: "sqlite:c.db"' : ''} }`,
    ].join('\n'),
  );
  const io = fakeIo({ folder });
  const code = await runCommandLine(['check', '--online', '--json'], COMMANDS, io);
  const said = (JSON.parse(io.stdout()) as { online: { service: string; level: string; detail: string }[] }).online;
  return { code, said: said.map(({ service, level, detail }) => `${level}: ${service}: ${detail}`) };
}

describe('the upstream', () => {
  test('behaviour: an upstream that takes a connection is ok, and gets no request', async () => {
    const { code, said } = await online(`http://127.0.0.1:${upstreamPort()}`);
    expect(code).toBe(0);
    expect(said).toContain(`ok: upstream: http://127.0.0.1:${upstreamPort()} takes connections`);
    expect([connections > 0, received]).toEqual([true, 0]);
  });

  test('behaviour: an upstream that is away is named', async () => {
    const port = await freePort();
    const { code, said } = await online(`http://127.0.0.1:${port}`);
    expect(code).toBe(69);
    expect(said).toContain(`away: upstream: the upstream http://127.0.0.1:${port} takes no connection (ECONNREFUSED)`);
  });

  test('behaviour: an upstream that is written with https and speaks plain http is told in one sentence', async () => {
    const { said } = await online(`https://127.0.0.1:${upstreamPort()}`);
    expect(said).toContain(
      `away: upstream: the upstream https://127.0.0.1:${upstreamPort()} is written with https and does not speak TLS; write http`,
    );
  });
});

describe('the registry', () => {
  const upstreamUrl = (): string => `http://127.0.0.1:${upstreamPort()}`;

  test('behaviour: a registry serves routes to the key; its ledger is only asked if charges are kept there', async () => {
    const { code, said } = await online(upstreamUrl());
    expect([code, said.filter((line) => line.includes('registry'))]).toEqual([
      0,
      ['ok: registry: routes come from it'],
    ]);
  });

  test('behaviour: a key without the scope ledger is named, where the charges are kept there', async () => {
    const { code, said } = await online(upstreamUrl(), { store: false });
    expect(code).toBe(1);
    expect(said).toContain('cannot_serve: registry: sync.api_key lacks the scope ledger; make one that has it');
  });

  test('behaviour: a key without the scope sdk is named, and its ledger is fine', async () => {
    const { code, said } = await online(upstreamUrl(), { store: false, key: LEDGER_KEY });
    expect(code).toBe(1);
    expect(said).toContain('cannot_serve: registry: sync.api_key lacks the scope sdk; make one that has it');
    expect(said).toContain('ok: registry: charges are kept by it');
  });

  test('behaviour: a key that the registry does not know is named', async () => {
    const { code, said } = await online(upstreamUrl(), { key: 'a-key-that-nobody-made' });
    expect(code).toBe(1);
    expect(said.join()).toContain('it does not know sync.api_key');
  });

  test('behaviour: a registry that is away is named', async () => {
    const { code, said } = await online(upstreamUrl(), { url: `http://127.0.0.1:${await freePort()}`, store: false });
    expect(code).toBe(69);
    expect(said.filter((line) => line.includes('registry'))).toEqual([
      expect.stringMatching(/^away: registry: it did not answer: .*ECONNREFUSED/),
    ]);
  });
});

describe('the start', () => {
  const write = (name: string, upstreamUrl: string, admin = '127.0.0.1:0'): string => {
    const file = join(folder, `${name}.yaml`);
    writeFileSync(
      file,
      `proxy: { listen: "127.0.0.1:0", upstream: "${upstreamUrl}", timeouts: { drain_delay: 0s } }\nregistry: { listen: "127.0.0.1:0", store: "sqlite:${name}/t.db" }\nadmin: { listen: "${admin}" }\n`,
    );
    return file;
  };

  test('behaviour: a start warns once of an upstream that does not answer, and of an API without routes', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const tollgate = await startProcess({ args: ['serve', '-c', write('away', url)] });
    onTestFinished(() => tollgate.kill());
    const line = await tollgate.line(({ msg }) => msg.includes('takes no connection'));
    expect([line.level, line.msg]).toEqual([
      'warn',
      `the upstream ${url} takes no connection (ECONNREFUSED); requests are answered 502 until it does`,
    ]);
    expect(tollgate.lines.filter(({ msg }) => msg.startsWith('there are no routes'))).toHaveLength(1);
  });

  test('behaviour: a start waits for no service, is ready, and /readyz?verbose names what is wrong', async () => {
    // It takes connections and never answers.
    const silent = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const file = write('silent', `http://127.0.0.1:${await freePort()}`);
    const receiver = `{ id: default, network: base-sepolia, pay_to_address: "${ADDRESS}", facilitators: ["http://127.0.0.1:${port}"], rpc_url: none }`;
    appendFileSync(file, `receivers: [${receiver}]\n`);
    const tollgate = await startProcess({ args: ['serve', '-c', file] });
    onTestFinished(() => tollgate.kill());
    await tollgate.line(({ msg }) => msg.includes('takes no connection'));
    expect((await fetch(`${tollgate.url('admin')}/readyz`)).status).toBe(200);
    const verbose = await (await fetch(`${tollgate.url('admin')}/readyz?verbose`)).text();
    expect(verbose).not.toContain('may be called');
    const { checks } = JSON.parse(verbose) as { checks: { name: string }[] };
    expect(checks.find(({ name }) => name === 'services')).toMatchObject({
      ok: false,
      detail: expect.stringContaining('takes no connection (ECONNREFUSED); requests are answered 502 until it does'),
    });
  });

  test('refuses: a start on an address that is taken, naming the key', async () => {
    const file = write('taken', 'http://127.0.0.1:1', `127.0.0.1:${upstreamPort()}`);
    const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: [] });
    onTestFinished(() => tollgate.kill());
    expect(await tollgate.exited).toBe(69);
    expect(tollgate.stderr()).toContain(
      `admin.listen: 127.0.0.1:${upstreamPort()} is taken by another program; end that one, or write another address`,
    );
  });
});
