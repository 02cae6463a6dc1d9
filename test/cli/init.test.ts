// `tollgate init`: whatever it writes, `check` passes; and it writes over nothing.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { loadConfig } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { ADDRESS } from '../config/support.ts';
import { fakeIo } from './support.ts';

const SOLANA = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-init-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = async (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
  const io = fakeIo({ folder });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
};

test('behaviour: every flag of init stands in the file, and check passes it', async () => {
  const flags = ['--upstream', 'http://localhost:4000', '--pay-to', ADDRESS, '--network', 'base'];
  const routes = ['--route', 'GET /reports/* 0.10 USD', '--route', 'POST /users/{id}/score 1.50 USDC'];
  expect(await run('init', ...flags, ...routes)).toMatchObject({
    code: 0,
    stdout: 'Wrote tollgate.yaml.\nNext:\n  tollgate check\n  tollgate serve\n',
  });
  expect(await run('check')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok\n/) });
  expect(loadConfig('tollgate.yaml', {}, folder, NETWORKS)).toMatchObject({
    ok: true,
    config: {
      proxy: { upstream: { origin: 'http://localhost:4000' }, undeclaredMethods: 'pay' },
      receivers: [{ id: 'default', ways: [{ networkName: 'base', way: { payTo: ADDRESS } }] }],
      routes: [
        { method: 'GET', route_pattern: '/reports/*', amount: '0.10', currency: 'USD' },
        { method: 'POST', route_pattern: '/users/{id}/score', amount: '1.50', currency: 'USDC' },
      ],
    },
  });
});

test.each([
  ['nothing is said', []],
  ['an address is said', ['--pay-to', ADDRESS]],
  ['a network of Solana is said', ['--pay-to', SOLANA, '--network', 'solana', '--route', '* /a 1']],
  ['a test network of Solana is said', ['--pay-to', SOLANA, '--network', 'solana-devnet', '--route', '* /a 1']],
  ['a network is said by its CAIP-2 name', ['--pay-to', ADDRESS, '--network', 'eip155:42161', '--route', '* /a 1']],
  ['a pattern looks like a variable', ['--pay-to', ADDRESS, '--route', 'GET /a-$b 1']],
])('behaviour: the file that init writes if %s passes check', async (_, flags) => {
  expect(await run('init', ...flags)).toMatchObject({ code: 0, stderr: '' });
  expect(await run('check')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok\n/) });
  const lines = readFileSync(join(folder, 'tollgate.yaml'), 'utf8').split('\n');
  expect(lines.length).toBeLessThan(40);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(140);
});

test('behaviour: init names another file in what to do next, and what it says later works as a comment', async () => {
  const { stdout } = await run('init', 'other.yaml');
  expect(stdout).toContain('tollgate check --config other.yaml\n');
  expect(readdirSync(folder)).toEqual(['other.yaml']);
  const text = readFileSync(join(folder, 'other.yaml'), 'utf8');
  const [head, rest = ''] = text.split(/(?=^# receivers:)/m);
  writeFileSync(join(folder, 'other.yaml'), `${head}${rest.replaceAll(/^# /gm, '').replace('0x...', ADDRESS)}`);
  expect(await run('check', '-c', 'other.yaml')).toMatchObject({ code: 0 });
  expect(await run('match', 'GET', '/reports/q3', '-c', 'other.yaml')).toMatchObject({ code: 0 });
});

describe('refuses', () => {
  test('refuses: to write over a file, which stays as it was', async () => {
    writeFileSync(join(folder, 'tollgate.yaml'), 'mine');
    expect(await run('init')).toMatchObject({
      code: 64,
      stderr: 'tollgate.yaml: is there already and stays as it is; name another file\n',
    });
    expect(readFileSync(join(folder, 'tollgate.yaml'), 'utf8')).toBe('mine');
  });

  test.each([
    ['a route without an address', ['--route', 'GET /a 1'], '--pay-to: is missing'],
    ['a route that is none', ['--pay-to', ADDRESS, '--route', '/a 1'], '--route (1.): names no method'],
    ['an upstream with a path', ['--upstream', 'http://a/b'], '--upstream: is not the scheme'],
    ['a network that is none', ['--network', 'bass'], '--network: is not one whose USDC is known here; did you mean'],
    ['an address of another chain', ['--network', 'solana', '--pay-to', ADDRESS], '--pay-to: is'],
    ['a folder that is not there', ['none/t.yaml'], 'none/t.yaml: cannot be written (ENOENT)'],
  ])('refuses: %s, and nothing is written', async (_, flags, message) => {
    const { code, stderr } = await run('init', ...flags);
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
    expect(readdirSync(folder)).toEqual([]);
  });
});
