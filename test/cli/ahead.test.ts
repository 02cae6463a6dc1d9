// What `check` and `match` say about a start that has not happened: the same as the start then does, and nothing is written.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { startRegistry, declared, LIST } from '../registry/kit.ts';
import { RECEIVER } from '../config/support.ts';
import { fakeIo } from './support.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-ahead-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = async (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
  const io = fakeIo({ folder });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
};
const file = (...routes: string[]): void =>
  writeFileSync(
    join(folder, 'tollgate.yaml'),
    `proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }\nregistry: { store: "sqlite:t.db" }\nreceivers:${RECEIVER}\nroutes: [${routes.join(', ')}]\n`,
  );
const route = (pattern: string, amount: string): string =>
  `{ route_pattern: "${pattern}", method: GET, amount: "${amount}" }`;

/** A store as a start with /kept, /priced and /gone leaves it, and what a dashboard then made of /kept. */
async function started(): Promise<void> {
  const kit = await startRegistry({ file: join(folder, 't.db') });
  const said = ['/kept', '/priced', '/gone'].map((pattern) => ({
    route_pattern: pattern,
    method: 'GET',
    amount: '0.10',
  }));
  await kit.registry.declare(declared(said), 'start');
  const id = kit.registry.routeSet().routes[0]?.id;
  await kit.dashboard('PATCH', `${LIST}/${id}`, { body: { amount: '0.70' } });
  await kit.close();
}

test('behaviour: check names what a start creates, changes and deletes, and what differs', async () => {
  await started();
  file(route('/kept', '0.10'), route('/priced', '0.50'), route('/new', '0.20'));
  const before = readFileSync(join(folder, 't.db'));
  const { code, stdout } = await run('check');
  expect(code).toBe(0);
  expect(stdout.split('\n').filter((line) => /start|differs/.test(line) && !line.includes('secrets'))).toEqual([
    '  a start creates: GET /new 0.20 USD',
    '  a start changes: GET /priced: amount "0.10" -> "0.50"',
    '  a start deletes: GET /gone 0.10 USD',
    '  differs from the store: GET /kept: amount is "0.70" in the store, "0.10" in the file; the store\'s value stays until the file\'s changes',
  ]);
  expect(JSON.parse((await run('check', '--json')).stdout)).toMatchObject({
    start: { creates: ['GET /new 0.20 USD'], changes: [expect.stringContaining('/priced')] },
  });
  expect(readFileSync(join(folder, 't.db')).equals(before)).toBe(true);
});

test('behaviour: check names a file that deletes every declared route', async () => {
  await started();
  file();
  const { stderr } = await run('check');
  expect(stderr).toContain('warning: a start with this file deletes every declared route (3); a reload holds it back');
  expect(stderr).toContain('warning: there are no routes, so every request passes free');
});

test('behaviour: match shows the prices that a start would make', async () => {
  await started();
  file(route('/kept', '0.10'), route('/priced', '0.50'), route('/new', '0.20'));
  const price = async (path: string): Promise<unknown> =>
    JSON.parse((await run('match', 'GET', path, '--json')).stdout).route?.amount ?? null;
  expect([await price('/kept'), await price('/priced'), await price('/new'), await price('/gone')]).toEqual([
    '0.70',
    '0.50',
    '0.20',
    null,
  ]);
});

test('behaviour: match of a path that is refused says so and ends with 1', async () => {
  file(route('/a', '1'));
  const { code, stdout } = await run('match', 'GET', '/a/../b');
  expect([code, stdout.split(':')[0]]).toEqual([1, 'refused']);
  expect(JSON.parse((await run('match', 'GET', '/a%00', '--json')).stdout)).toMatchObject({
    matched: true,
    ambiguous: true,
  });
});
