// `check` tries what a start will need: a folder that takes the store, a receiver for what routes cost, a store that is whole.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { RECEIVER, SECRET } from '../config/support.ts';
import { startRegistry } from '../registry/kit.ts';
import { fakeIo, tollgate } from './support.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-needs-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = async (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
  const io = fakeIo({ folder });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
};
const put = (text: string): void => writeFileSync(join(folder, 'tollgate.yaml'), text);
const PROXY = 'proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }\nadmin: { listen: "127.0.0.1:0" }\n';
const allInOne = (store: string, rest = `receivers:${RECEIVER}\n`): void =>
  put(`${PROXY}registry: { listen: "127.0.0.1:0", store: "sqlite:${store}" }\n${rest}`);

describe('the folder of the store', () => {
  test('behaviour: a folder of the store that a start will make is tried and taken away again', async () => {
    allInOne('made/for/this/t.db');
    expect(await run('check')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok\n/) });
    expect(readdirSync(folder)).toEqual(['tollgate.yaml']);
  });

  test('behaviour: a folder of the store that is there is tried and stays as it was', async () => {
    mkdirSync(join(folder, 'data'));
    allInOne('data/t.db');
    expect(await run('check')).toMatchObject({ code: 0 });
    expect(readdirSync(join(folder, 'data'))).toEqual([]);
  });

  test.each([
    ['registry.store', () => allInOne('file/t.db'), '3:46'],
    [
      'charges.store',
      () =>
        put(
          `${PROXY}sync: { registry_url: "http://127.0.0.1:1", api_key: ${'k'.repeat(16)}, snapshot_file: s.json }\ncharges: { secrets: ["${SECRET}"], store: "sqlite:file/t.db" }\n`,
        ),
      '4:68',
    ],
    [
      'sync.snapshot_file',
      () =>
        put(
          `${PROXY}sync: { registry_url: "http://127.0.0.1:1", api_key: ${'k'.repeat(16)}, snapshot_file: file/s.json }\ncharges: { secrets: ["${SECRET}"] }\n`,
        ),
      '3:88',
    ],
  ])('refuses: %s where nothing can be written, with its place', async (key, write) => {
    writeFileSync(join(folder, 'file'), '');
    write();
    const { code, stdout } = await run('check');
    expect(stdout).toMatch(
      new RegExp(`^tollgate\\.yaml:\\d+:\\d+ ${key.replace('.', '\\.')}: names .*/file/.*\\((ENOTDIR|EEXIST)\\)`),
    );
    expect(code).toBe(64);
  });
});

test('refuses: a file of customers’ keys with a wrong line far behind its beginning, by the number of the line', async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => createHash('sha256').update(`${n}`).digest('hex'));
  lines[17_999] = 'a-key-itself';
  writeFileSync(join(folder, 'keys.txt'), lines.join('\n'));
  const plans = 'plans: [{ id: default, customers: [p] }], customers: [{ id: p, header: X-Key, keys_file: keys.txt }]';
  allInOne('t.db', `receivers:${RECEIVER}\nselling: { ${plans} }\n`);
  const { code, stdout } = await run('check');
  expect(stdout).toMatch(/^tollgate\.yaml:\d+:\d+ selling\.customers\[0\]\.keys_file: .*line 18000 is not usable/);
  expect(code).toBe(64);
});

describe('active routes without receivers', () => {
  const routes = 'routes:\n  - { route_pattern: /paused, amount: "1", status: paused }\n';
  const active = `${routes}  - { route_pattern: /a, amount: "1" }\n`;

  test('refuses: active routes of the file without receivers, if there is a proxy, at the first of them', async () => {
    allInOne('t.db', active);
    const { code, stdout } = await run('check');
    expect([code, stdout]).toEqual([
      64,
      expect.stringMatching(/^tollgate\.yaml:6:\d+ routes\[1\]: costs money, and no `receivers` say who gets it/),
    ]);
    const told = JSON.parse((await run('check', '--json')).stdout) as unknown;
    expect(told).toMatchObject({ ok: false, problems: [{ line: 6, path: 'routes[1]' }] });
  });

  test('behaviour: paused routes without receivers are fine, and so are those of a registry without a proxy', async () => {
    allInOne('t.db', routes);
    expect(await run('check')).toMatchObject({ code: 0 });
    put(`registry: { store: "sqlite:t.db" }\n${active}`);
    expect(await run('check')).toMatchObject({ code: 0 });
  });
});

describe('a store that is damaged', () => {
  const file = (): string => join(folder, 't.db');
  const damaged = 'is damaged (';
  const advice = 'Restore it from a backup; or move it away';

  test.each([
    ['is no database', () => writeFileSync(file(), 'x'.repeat(5000))],
    ['was cut', () => truncateSync(file(), Math.floor(statSync(file()).size / 2))],
  ])('refuses: check, match, keys, migrate and serve say what to do about one that %s', async (_, harm) => {
    const kit = await startRegistry({ file: file() });
    await kit.close();
    harm();
    allInOne('t.db');
    const checked = await run('check');
    expect(checked.stdout).toMatch(/^tollgate\.yaml:3:\d+ registry\.store: The store/);
    expect([checked.code, checked.stdout]).toEqual([64, expect.stringContaining(advice)]);
    for (const words of [
      ['match', 'GET', '/a'],
      ['keys', 'list'],
      ['migrate', '--check'],
      ['charges', 'list'],
    ])
      expect([words, await run(...words)]).toMatchObject([
        words,
        { code: 69, stderr: expect.stringContaining(advice) },
      ]);
    const served = await tollgate(['serve'], { folder });
    expect([served.code, served.stderr]).toEqual([69, expect.stringContaining(damaged)]);
    expect(served.stderr).toContain(advice);
  });
});
