// `tollgate demo` as it is installed: where it listens, and what it says if it cannot listen there.
import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type LogLine, type TollgateProcess } from '../support/process.ts';
import { BARE_ENV, tollgate } from './support.ts';

/** Nothing answers there, and nothing of the demo needs it. */
const NOWHERE = 'http://127.0.0.1:1';
const AWAY = ['--upstream', NOWHERE, '--facilitator', NOWHERE, '--rpc-url', NOWHERE];

function folder(): string {
  const files = temporaryFolder();
  onTestFinished(files.remove);
  return files.folder;
}

async function listening(port = 0): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function demo(...args: string[]): Promise<TollgateProcess> {
  const running = await startProcess({
    cwd: folder(),
    args: ['demo', ...AWAY, ...args],
    env: BARE_ENV,
    listeners: [],
  });
  onTestFinished(running.kill);
  return running;
}

test('behaviour: the demo listens on the port that --port names', async () => {
  const port = await freePort();
  const running = await demo('--port', String(port));
  await running.line(({ msg }) => msg.includes(`http://127.0.0.1:${port}/`));
  await running.line(({ msg }) => msg.startsWith('Stop with Ctrl-C'));
  expect(running.lines.filter(({ msg }) => msg.startsWith(`Port ${port} is taken`))).toEqual([]);
  expect((await fetch(`http://127.0.0.1:${port}/x`)).status).toBe(402);
});

test('behaviour: a demo whose port is taken says so in a line and which it uses', async () => {
  // Another program of this machine may have it already, which is as good.
  const held = await listening(8402).catch(() => undefined);
  onTestFinished(() => void held?.close());
  const told = ({ msg }: LogLine): boolean => msg.startsWith('Port 8402 is taken by another program');
  let running = await demo();
  await running.line((line) => line.msg.startsWith('Stop with Ctrl-C'));
  // Who had it may have left, as the demo of another test does: then this one has it.
  if (!running.lines.some(told)) running = await demo();
  const { msg } = await running.line(told);
  const [, port] = /the proxy of this demo listens on (\d+) \(--port N chooses another\)\.$/.exec(msg) ?? [];
  await running.line((line) => line.msg.startsWith('Stop with Ctrl-C'));
  expect((await fetch(`http://127.0.0.1:${port}/x`)).status).toBe(402);
});

test('behaviour: the demo tells programs what its small API sells', async () => {
  const port = await freePort();
  const running = await startProcess({
    cwd: folder(),
    args: ['demo', '--facilitator', NOWHERE, '--rpc-url', NOWHERE, '--port', String(port)],
    env: BARE_ENV,
    listeners: [],
  });
  onTestFinished(running.kill);
  await running.line(({ msg }) => msg.includes(`curl -s http://127.0.0.1:${port}/llms.txt`));
  const document = await until('what is sold', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/openapi.json`);
    return response.status === 200 && ((await response.json()) as { info: object; paths: object });
  });
  expect(document.info).toMatchObject({ title: 'The small API of the demo' });
  expect(Object.keys(document.paths)).toEqual(['/premium/report', '/premium/data/{set}', '/users/{id}/score']);
});

test('refuses: --port that is taken, and one that is none', async () => {
  const held = await listening();
  onTestFinished(() => void held.close());
  const { port } = held.address() as AddressInfo;
  const taken = await tollgate(['demo', ...AWAY, '--port', String(port)], { folder: folder() });
  expect(taken).toMatchObject({
    code: 69,
    stderr: `--port: ${port} is taken by another program; end that one, or write another port\n`,
  });
  const wrong = await tollgate(['demo', ...AWAY, '--port', '65536'], { folder: folder() });
  expect(wrong).toMatchObject({ code: 64, stderr: '--port: is not a port; write a number from 1 to 65535\n' });
});
