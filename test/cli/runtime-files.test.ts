// Commands in the terminal next to a running server: they find its configuration, say so, and need nothing set again but
// the secrets that only the server has.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { ADDRESS, RECEIVER, SECRET } from '../config/support.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { BARE_ENV, fakeIo } from './support.ts';

const JWT_SECRET = 'jwt-secret-of-the-server-alone-0123456789';
const LISTENERS = ['proxy', 'registry', 'admin'];
const ANY_PORT = ['--listen', '127.0.0.1:0', '--registry-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
const QUICK = [
  '--upstream',
  'http://127.0.0.1:1',
  '--route',
  'GET /reports/* 0.10 USD',
  '--pay-to',
  ADDRESS,
  ...ANY_PORT,
];

let remove: (() => void) | undefined;
afterEach(() => remove?.());

function freshFolder(): ReturnType<typeof temporaryFolder> {
  const files = temporaryFolder();
  ({ remove } = files);
  return files;
}

/** A command in another terminal of `folder`. */
async function tollgate(
  argv: readonly string[],
  { folder, env = {} }: { folder: string; env?: Record<string, string> },
): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = fakeIo({ folder, env });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

async function start(cwd: string, args: readonly string[], env: Record<string, string> = {}): Promise<TollgateProcess> {
  const running = await startProcess({ cwd, args, env: { ...BARE_ENV, ...env }, listeners: LISTENERS });
  onTestFinished(running.kill);
  await running.beside();
  return running;
}

describe('beside a server that was started from flags', () => {
  test('behaviour: every command works beside a server that was started from flags, and says whose configuration it uses', async () => {
    const { folder } = freshFolder();
    const running = await start(folder, QUICK);
    const using = `Using the configuration of the Tollgate that runs in this folder (process ${running.pid}): data/running.json\n`;
    const [token, keys, match, charges, health, check] = await Promise.all([
      tollgate(['token'], { folder }),
      tollgate(['keys', 'create', '--name', 'ci'], { folder }),
      tollgate(['match', 'GET', '/reports/q3'], { folder }),
      tollgate(['charges', 'list'], { folder }),
      tollgate(['healthcheck'], { folder }),
      tollgate(['check'], { folder }),
    ]);
    for (const { code, stderr } of [token, keys, match, charges, health, check]) {
      expect(stderr).toContain(using);
      expect(code).toBe(0);
    }
    expect(match.stdout).toMatch(/^matched: payment required\n/);
    expect(health.stdout).toBe(`ready: ${running.url('admin')}/readyz\n`);
    const routes = await fetch(`${running.url('registry')}/v1/billing/protected-routes`, {
      headers: { authorization: `Bearer ${token.stdout.trim()}` },
    });
    expect(routes.status).toBe(200);
    expect((await tollgate(['serve'], { folder })).code).toBe(64);
  });

  test('behaviour: a server started from flags says what to type next, and each line works as it stands', async () => {
    const { folder } = freshFolder();
    const running = await start(folder, QUICK);
    const said = running.stderr();
    expect(said).toContain(`curl -i ${running.url('proxy')}/reports/example\n`);
    expect((await fetch(`${running.url('proxy')}/reports/example`)).status).toBe(402);
    // A method that no route names is asked for the same price, and no advice is given that flags cannot follow.
    expect((await fetch(`${running.url('proxy')}/reports/example`, { method: 'POST' })).status).toBe(402);
    const warned = running.lines.filter(({ level, msg }) => level === 'warn' && !msg.startsWith('TESTNET'));
    expect(warned.map(({ msg }) => msg).filter((msg) => /public_url|undeclared_methods/.test(msg))).toEqual([]);
    expect((await tollgate(['check'], { folder })).stderr).toContain('warning: without --public-url, absolute');
    expect(said).toContain('TOKEN=$(tollgate token)');
    expect(said).toContain(`${running.url('registry')}/v1/billing/protected-routes`);
    expect(said).toMatch(/To pay: .*(?:wallet with test USDC on base-sepolia|a demo runs on this machine)/);
  });

  test('attack: no secret stands in the runtime files, and nobody else can read or ask the socket', async () => {
    const { folder } = freshFolder();
    await start(folder, QUICK);
    const data = join(folder, 'data');
    const written = readFileSync(join(data, 'running.json'), 'utf8');
    const secrets = Object.values(
      JSON.parse(readFileSync(join(data, 'secrets.json'), 'utf8')) as Record<string, string>,
    );
    expect(secrets).toHaveLength(3);
    for (const secret of secrets) expect(written).not.toContain(secret);
    for (const name of ['running.json', 'tollgate.sock']) expect(statSync(join(data, name)).mode & 0o777).toBe(0o600);
  });

  test('behaviour: a socket that a killed server left is taken over; when none runs, commands say so', async () => {
    const { folder } = freshFolder();
    const first = await start(folder, QUICK);
    await first.kill();
    expect(await tollgate(['token'], { folder })).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/^No configuration\./),
    });
    const second = await start(folder, QUICK);
    expect((await tollgate(['token'], { folder })).stderr).toContain(`(process ${second.pid})`);
    second.signal('SIGTERM');
    expect(await second.exited).toBe(0);
    expect((await tollgate(['token'], { folder })).code).toBe(64);
  });

  test('refuses: to guess which of two servers is meant, and names both', async () => {
    const { folder } = freshFolder();
    await Promise.all([start(folder, [...QUICK, '--data', 'one']), start(folder, [...QUICK, '--data', 'two'])]);
    const { code, stderr } = await tollgate(['token'], { folder });
    expect(code).toBe(64);
    expect(stderr).toMatch(/Several run in this folder[^]*--config one\/running\.json[^]*--config two\/running\.json/);
    expect((await tollgate(['token', '--config', 'two/running.json'], { folder })).code).toBe(0);
  });

  test('behaviour: a server’s advice names the configuration if it would not be found', async () => {
    const files = freshFolder();
    files.write('tollgate.yaml', 'registry: {}\n');
    const running = await start(files.folder, QUICK);
    expect(running.stderr()).toContain('tollgate token --config data/running.json');
    const { how } = await running.line(({ msg }) => msg === 'made random secrets for the first start');
    expect(how).toContain('`tollgate token --config data/running.json` prints a dashboard token');
  });
});

describe('beside a server whose configuration is filled in from its environment', () => {
  const text = `
proxy: { listen: "127.0.0.1:0", upstream: "\${UPSTREAM}" }
registry: { listen: "127.0.0.1:0", jwt: { secret: "\${JWT_SECRET}" } }
admin: { listen: "127.0.0.1:0" }
charges: { secrets: ["\${CHARGE_SECRET}"] }
receivers:${RECEIVER.replace(ADDRESS, '${PAY_TO}')}
routes: [{ route_pattern: "/reports/*", method: GET, amount: "0.10" }]
`;
  const env = { UPSTREAM: 'http://127.0.0.1:1', JWT_SECRET, CHARGE_SECRET: SECRET, PAY_TO: ADDRESS };

  test.each([
    ['tollgate.yaml', []],
    ['other.yaml', ['--config', 'other.yaml']],
  ])(
    'behaviour: commands beside a server of %s need no variable again, but the secret that they need themselves',
    async (name, flags) => {
      const files = freshFolder();
      files.write(name, text);
      const { folder } = files;
      expect(RECEIVER).toContain(ADDRESS);
      expect((await tollgate(['charges', 'list', ...flags], { folder })).code).toBe(64);
      await start(folder, flags, env);
      const [charges, match, token, told] = await Promise.all([
        tollgate(['charges', 'list', ...flags], { folder }),
        tollgate(['match', 'GET', '/reports/q3'], { folder }),
        tollgate(['token'], { folder }),
        tollgate(['token'], { folder, env: { JWT_SECRET } }),
      ]);
      expect([charges.code, match.code, token.code, told.code]).toEqual([0, 0, 64, 0]);
      expect(token.stderr).toContain('set JWT_SECRET here too');
      expect(told.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
      for (const { stdout, stderr } of [charges, match, token, told]) {
        expect(stdout + stderr).not.toContain(JWT_SECRET);
        expect(stdout + stderr).not.toContain(SECRET);
      }
    },
  );
});
