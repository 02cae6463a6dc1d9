// One serving process for a store: a second one ends before it binds a port, commands work beside the first, and a lock does
// not outlive its process, however that dies. Real processes.
import { symlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { tollgate } from '../cli/support.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);

const allInOne = (store: string): string =>
  [
    'proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", timeouts: { drain_delay: 0s, drain: 1s } }',
    `registry: { listen: 127.0.0.1:0, store: "sqlite:${store}" }`,
    'admin: { listen: 127.0.0.1:0 }',
  ].join('\n');
const sidecar = (store: string): string =>
  [
    'proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", timeouts: { drain_delay: 0s, drain: 1s } }',
    `sync: { registry_url: "http://127.0.0.1:1", api_key: an-api-key-of-the-test, snapshot_file: "${store}.json" }`,
    'admin: { listen: 127.0.0.1:0 }',
    `charges: { secrets: [a-charge-secret-of-at-least-32-bytes], store: "sqlite:${store}" }`,
  ].join('\n');

async function started(file: string): Promise<TollgateProcess> {
  const process = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'admin'] });
  onTestFinished(() => process.kill());
  return process;
}

test.each([
  ['a registry store', allInOne],
  ['a sidecar’s own ledger', sidecar],
])('refuses: a second serve on %s, before it binds a port, naming the first', async (_, shape) => {
  const name = shape.name;
  const file = files.write(`${name}.yaml`, shape(`${name}/t.db`));
  const first = await started(file);
  symlinkSync(path.join(files.folder, name, 't.db'), path.join(files.folder, `${name}.link`));
  // By another name and with other settings it is the same store.
  const other = files.write(`${name}-2.yaml`, shape(`${name}.link`));
  const { code, stdout, stderr } = await tollgate(['serve', '-c', other], { folder: files.folder });
  expect(code).toBe(69);
  expect(stdout).not.toContain('"listening"');
  const sentences = stderr.split('\n').filter((line) => line.includes('is served by'));
  expect(sentences).toHaveLength(1);
  expect(sentences[0]).toMatch(
    new RegExp(
      `is served by process ${first.pid} on ${hostname()}, started at \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z: one process`,
    ),
  );
  expect((await fetch(`${first.url('admin')}/livez`)).status).toBe(200);
});

test('behaviour: commands work beside the server', async () => {
  const file = files.write('beside.yaml', allInOne('beside/t.db'));
  await started(file);
  const codes = await Promise.all(
    [
      ['keys', 'create', '--name', 'a', '--scope', 'sdk'],
      ['keys', 'list'],
      ['charges', 'list'],
      ['token'],
      ['match', 'GET', '/'],
      ['check'],
    ].map(async (argv) => [argv[0], (await tollgate([...argv, '-c', file], { folder: files.folder })).code]),
  );
  expect(codes).toEqual([
    ['keys', 0],
    ['keys', 0],
    ['charges', 0],
    ['token', 0],
    ['match', 1],
    ['check', 0],
  ]);
});

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'behaviour: after %s the next process has the store at once',
  async (signal) => {
    const file = files.write(`${signal}.yaml`, allInOne(`${signal}/t.db`));
    const first = await started(file);
    first.signal(signal);
    await first.exited;
    const second = await started(file);
    expect((await fetch(`${second.url('admin')}/livez`)).status).toBe(200);
  },
);
