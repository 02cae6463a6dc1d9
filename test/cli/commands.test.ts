// Every command with its whole work, in this process: what it writes where, and its exit code. The same commands as real
// processes stand in process.test.ts, few of them, because each costs the start of a Node.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { RECEIVER, SECRET } from '../config/support.ts';
import { fakeIo } from './support.ts';

let folder: string;
const put = (name: string, text: string): void => writeFileSync(join(folder, name), text);

/** A command as main.ts runs it, in the folder of this file. */
async function run(...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = fakeIo({ folder });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  put(
    'tollgate.yaml',
    `
proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1", timeouts: { drain_delay: 0s, drain: 1s } }
registry: { listen: "127.0.0.1:0", jwt: { secret: "${SECRET}", audience: panel } }
admin: { listen: "127.0.0.1:0" }
receivers:${RECEIVER}
routes:
  - { route_pattern: "/reports/*", method: GET, amount: "0.10" }
  - { route_pattern: "/reports/:id", amount: "0.20", status: paused }
`,
  );
  put('openapi.yaml', 'openapi: 3.1.0\npaths:\n  /reports/{id}: { get: { parameters: [{ $ref: "x.yaml" }] } }\n');
  const listed = (discovery: string): string => `
proxy: { upstream: "http://127.0.0.1:1" }
registry: {}
receivers:${RECEIVER}
routes:
  - { route_pattern: "/reports/*", method: GET, amount: "0.10" }
  - { route_pattern: "/other", amount: "0.20" }
  - { route_pattern: "/internal/x", amount: "0.20" }
  - { route_pattern: "/paused", amount: "0.20", status: paused }
discovery: { ${discovery} }
`;
  put('listed.yaml', listed('openapi: openapi.yaml, exclude: ["/internal/*"]'));
  put('unread.yaml', listed('openapi: missing.yaml'));
  put('bad.yaml', 'registry:\n  listn: x\n  jwt: { secret: canary }\n');
  put(
    'selling-sidecar.yaml',
    `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "https://r", api_key: ${'k'.repeat(16)} }\ncharges: { secrets: ["${SECRET}"] }\ndiscovery: {}\n`,
  );
  put(
    'sidecar.yaml',
    `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "https://r", api_key: ${'k'.repeat(16)} }\ncharges: { secrets: ["${SECRET}"] }\n`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('commands that ask', () => {
  test('behaviour: check says ok with a summary, and warns on standard error', async () => {
    const { code, stdout, stderr } = await run('check');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok\n {2}shape: all-in-one\n/);
    expect(stderr).toMatch(/^warning: proxy\.undeclared_methods is forward/m);
  });

  test('behaviour: check prints every problem and ends with 64', async () => {
    const { code, stdout } = await run('check', '-c', 'bad.yaml');
    expect(code).toBe(64);
    expect(stdout).toMatch(/^bad\.yaml:2:3 registry\.listn: .*\nbad\.yaml:3:18 registry\.jwt\.secret: .*\n$/);
    expect(stdout).not.toContain('canary');
  });

  test('behaviour: check --json prints the result for programs', async () => {
    const { code, stdout } = await run('check', '-c', 'bad.yaml', '--json');
    expect(code).toBe(64);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      problems: [{ file: 'bad.yaml', line: 2, column: 3, path: 'registry.listn' }, { line: 3 }],
    });
  });

  test('behaviour: check says how many routes will be public, and what is wrong with their description', async () => {
    const { code, stdout, stderr } = await run('check', '-c', 'listed.yaml');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}discovery: 2 of 3 routes will be public$/m);
    const warnings = stderr.split('\n').filter((line) => line.includes('openapi.yaml'));
    expect(warnings).toEqual([
      'warning: openapi.yaml:3: refers to something outside this file, which is not read; write it into the file',
      'warning: openapi.yaml:2: has no operation for * /other; its method and template alone are told',
    ]);
  });

  test('behaviour: check says what would be public, and what is left out and why', async () => {
    const { stdout, stderr } = await run('check', '-c', 'listed.yaml');
    const lines = stdout.split('\n').filter((line) => /^ {2}(?:not )?public: /.test(line));
    expect(lines).toEqual([
      expect.stringMatching(/^ {2}public: 3 operations in \/openapi\.json \(\d+ bytes\) and \/llms\.txt$/),
      '  public: GET /reports/{id} 0.10 USD',
      '  public: GET /other 0.20 USD',
      '  public: POST /other 0.20 USD',
      '  not public: * /internal/x (named by discovery.exclude)',
      '  not public: * /paused (paused: it costs nothing)',
    ]);
    expect(stderr).not.toContain('left out');
    const json = JSON.parse((await run('check', '-c', 'listed.yaml', '--json')).stdout) as Record<string, unknown>;
    expect(json['public']).toEqual({
      operations: expect.arrayContaining([{ method: 'GET', path: '/reports/{id}', amount: '0.10', currency: 'USD' }]),
      left_out: [
        { method: '*', route_pattern: '/internal/x', why: 'excluded' },
        { method: '*', route_pattern: '/paused', why: 'paused' },
      ],
      bytes: expect.any(Number),
    });
  });

  test('behaviour: check warns of what is sold and cannot be told', async () => {
    const { stderr } = await run('check', '-c', 'unread.yaml');
    expect(stderr).toContain(
      'warning: left out of /openapi.json (a wildcard without an operation in an OpenAPI document): GET /reports/*\n',
    );
  });

  test('behaviour: openapi --public prints what the proxy would serve', async () => {
    const { code, stdout, stderr } = await run('openapi', '--public', '-c', 'listed.yaml');
    expect(code).toBe(0);
    expect(stderr).toContain('openapi.yaml:3: refers to something outside this file');
    const document = JSON.parse(stdout) as { paths: object };
    expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url: expect.stringMatching(/^http:/) }] });
    expect(Object.keys(document.paths)).toEqual(['/reports/{id}', '/other']);
  });

  test('refuses: openapi --public without a discovery section, and in a sidecar', async () => {
    const none = await run('openapi', '--public', '-c', 'tollgate.yaml');
    expect([none.code, none.stdout]).toEqual([64, '']);
    expect(none.stderr).toContain('write a section `discovery:`');
    const sidecar = await run('openapi', '--public', '-c', 'selling-sidecar.yaml');
    expect([sidecar.code, sidecar.stdout]).toEqual([69, '']);
    expect(sidecar.stderr).toContain('A running sidecar serves /openapi.json.');
  });

  test('behaviour: check warns of a description that cannot be read, and says ok', async () => {
    const { code, stdout, stderr } = await run('check', '-c', 'unread.yaml', '--json');
    expect([code, stderr]).toEqual([0, '']);
    const { summary, warnings } = JSON.parse(stdout) as Record<string, unknown>;
    expect(summary).toMatchObject({ discovery: '3 of 3 routes will be public' });
    expect(warnings).toContain(
      'missing.yaml:1: cannot be read (ENOENT); check its name and permissions; methods and templates alone are told',
    );
  });

  test('behaviour: match says which route and why', async () => {
    const { code, stdout } = await run('match', 'get', '/reports/a/b?c');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^matched: payment required\n {2}goes upstream as GET \/reports\/a\/b\n[^]*GET \/reports\/\* 0\.10 USD: wins\n$/,
    );
  });

  test('behaviour: match says of a path that is not canonical that a proxy which asks may not forward it', async () => {
    const rest = readFileSync(join(folder, 'tollgate.yaml'), 'utf8').replace(/^proxy: .*$/m, '');
    put('asked.yaml', `decision: { listen: "127.0.0.1:0", dialect: nginx }\n${rest}`);
    const told = (await run('match', 'GET', '/reports//a/b?c', '-c', 'asked.yaml')).stdout;
    expect(told).toMatch(
      /^matched: payment required\n {2}behind a proxy that asks .* 400: only \/reports\/a\/b is let in\n/,
    );
    expect((await run('match', 'GET', '/reports/a/b?c', '-c', 'asked.yaml')).stdout).not.toContain('400');
  });

  test('behaviour: match --json is the wire answer with reasons', async () => {
    const { code, stdout } = await run('match', 'GET', '/reports/q3', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      matched: true,
      payment_required: false,
      route: { route_pattern: '/reports/:id', status: 'paused' },
      params: { id: 'q3' },
      considered: [{ because: expect.stringContaining('paused') }, { route: { route_pattern: '/reports/*' } }],
    });
  });

  test('behaviour: match ends with 1 where nothing matches', async () => {
    const { code, stdout } = await run('match', 'GET', '/free');
    expect([code, stdout]).toEqual([1, 'not matched: no route matches: free\n']);
  });

  test('behaviour: match of a sidecar ends with 69, its routes are elsewhere', async () => {
    const { code, stderr } = await run('match', 'GET', '/x', '-c', 'sidecar.yaml');
    expect(code).toBe(69);
    expect(stderr).toContain('kept by its registry');
  });

  test('refuses: match of one word, naming the other', async () => {
    const [path, method] = await Promise.all([run('match', '/reports/q3'), run('match', 'post')]);
    expect(path).toMatchObject({
      code: 64,
      stderr: 'METHOD: is missing; write it before the path, such as match GET /reports/q3\n',
    });
    expect(method).toMatchObject({
      code: 64,
      stderr: 'PATH: is missing; write it after the method, such as match POST /reports/q3\n',
    });
  });

  test('refuses: match of a path without slash, a method the proxy never lets in', async () => {
    const [path, method] = await Promise.all([run('match', 'GET', 'x'), run('match', 'TRACE', '/x')]);
    expect([path.code, method.code]).toEqual([64, 64]);
  });

  test('behaviour: version and openapi print what they are asked for', async () => {
    const [version, openapi] = await Promise.all([run('version', '--json'), run('openapi')]);
    expect(JSON.parse(version.stdout)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    });
    expect(JSON.parse(openapi.stdout)).toMatchObject({
      openapi: '3.1.0',
      info: { version: JSON.parse(version.stdout).version },
    });
  });

  test('refuses: an unknown command and an unknown flag', async () => {
    const { code, stdout, stderr } = await run('mach', 'GET', '/x');
    expect([code, stdout, stderr]).toEqual([64, '', 'mach: is no command; did you mean match?\n']);
  });
});

test('behaviour: commands that look make no store', () => expect(existsSync(join(folder, 'data'))).toBe(false));

describe('keys, tokens, migrations', () => {
  test('behaviour: a key is printed alone, listed without itself, and revoked', async () => {
    const created = await run('keys', 'create', '--name', 'ci', '--scope', 'ledger,sdk');
    expect(created.code).toBe(0);
    expect(created.stdout).toMatch(/^tg_[0-9a-f]{16}_[A-Za-z0-9_-]{43}\n$/);
    const id = created.stdout.split('_')[1] ?? '';
    const listed = await run('keys', 'list', '--json');
    expect(JSON.parse(listed.stdout)).toEqual([
      expect.objectContaining({ id: null, name: 'first-start', where: 'configuration' }),
      expect.objectContaining({ id, name: 'ci', scopes: ['sdk', 'ledger'], revoked_at: null, where: 'store' }),
    ]);
    expect(listed.stdout + listed.stderr).not.toContain(created.stdout.trim().slice(20));
    const [revoked, unknown] = [await run('keys', 'revoke', id), await run('keys', 'revoke', 'nothing')];
    expect([revoked.code, unknown.code]).toEqual([0, 1]);
    const [header, ...rows] = (await run('keys', 'list')).stdout.trimEnd().split('\n');
    expect(header).toMatch(/^ID +STATE +SCOPES +MADE +NAME$/);
    expect(rows.at(-1)).toMatch(new RegExp(`^${id} {2}revoked {2}sdk,ledger {2}\\S+ +ci$`));
    // Columns begin where their names do.
    for (const row of rows) expect(row.slice(header?.indexOf('STATE'))).toMatch(/^(?:active|revoked) /);
  });

  test('refuses: keys that cannot be made, all mistakes at once', async () => {
    const { code, stderr } = await run('keys', 'create', '--scope', 'sdk,admin', '--json');
    expect(code).toBe(64);
    expect(stderr).toMatch(/^--name: is missing.*\n--scope: is not a list.*\n--json: .*\n$/);
    expect((await run('keys', 'creat')).stderr).toContain('did you mean create?');
  });

  test('behaviour: a token is printed alone and says what the configuration says', async () => {
    const { code, stdout } = await run('token', '--ttl', '5m');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString());
    expect(claims).toMatchObject({ iss: 'tollgate', aud: 'panel' });
    expect(claims.exp - claims.iat).toBe(300);
  });

  test('refuses: a token of no duration, and where no secret signs', async () => {
    const [duration, sidecar] = await Promise.all([run('token', '--ttl', '60'), run('token', '-c', 'sidecar.yaml')]);
    expect([duration.code, sidecar.code]).toEqual([64, 64]);
    expect(sidecar.stderr).toContain('has no `registry`');
  });

  test('behaviour: migrate makes the store for its owner alone, once; a store that is none is 69', async () => {
    put('other.yaml', 'registry: { store: "sqlite:other/t.db" }\n');
    expect(await run('migrate', '--check', '-c', 'other.yaml')).toMatchObject({ code: 1 });
    expect(existsSync(join(folder, 'other'))).toBe(false);
    expect(await run('migrate', '-c', 'other.yaml')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^applied 1/),
    });
    expect(await run('migrate', '-c', 'other.yaml')).toMatchObject({ code: 0, stdout: 'up to date\n' });
    expect(await run('migrate', '--check', '-c', 'other.yaml')).toMatchObject({ code: 0, stdout: 'up to date\n' });
    expect(await run('migrate', '--grants', 'sidecar', '-c', 'other.yaml')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('has no users'),
    });
    expect(statSync(join(folder, 'other/t.db')).mode & 0o777).toBe(0o600);
    writeFileSync(join(folder, 'other/t.db'), 'x'.repeat(5000));
    expect(await run('migrate', '-c', 'other.yaml')).toMatchObject({ code: 69, stdout: '' });
    expect(await run('migrate', '--check', '-c', 'other.yaml')).toMatchObject({ code: 69, stdout: '' });
    expect(await run('match', 'GET', '/x', '-c', 'other.yaml')).toMatchObject({ code: 69, stdout: '' });
  });
});

test('refuses: routes delete on a SQLite store, and words that are none of it', async () => {
  expect(await run('routes', 'delete', 'x')).toMatchObject({
    code: 64,
    stdout: '',
    stderr: 'The store is a SQLite file: take the route out of `routes` and reload, or delete it on the dashboard.\n',
  });
  expect((await run('routes', 'delete')).code).toBe(64);
  expect((await run('routes', 'delet', 'x')).stderr).toContain('did you mean delete?');
  expect((await run('routes', 'delete', 'x', '-c', 'sidecar.yaml')).stderr).toContain('has no `registry`');
});

describe('behaviour: healthcheck', () => {
  test('healthcheck ends with 0 if /readyz is 200, with 1 if it is not or nothing answers, with 64 if it cannot be known', async () => {
    let status = 200;
    const asked: (string | undefined)[] = [];
    const server = createServer((req, res) => {
      asked.push(req.url);
      res.writeHead(status).end(status === 503 ? 'not ready: store\n' : 'ok\n');
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    put('admin.yaml', `registry: {}\nadmin: { listen: "0.0.0.0:${port}" }\n`);
    expect(await run('healthcheck', '-c', 'admin.yaml')).toEqual({
      code: 0,
      stdout: `ready: http://127.0.0.1:${port}/readyz\n`,
      stderr: '',
    });
    expect(asked).toEqual(['/readyz']);
    status = 503;
    expect(await run('healthcheck', '--url', `http://127.0.0.1:${port}/other`)).toMatchObject({
      code: 1,
      stderr: `not ready: http://127.0.0.1:${port}/other answered 503: store\n`,
    });
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
    expect(await run('healthcheck', '-c', 'admin.yaml')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^not ready: nothing answers at http://127\\.0\\.0\\.1:${port}/readyz \\(\\w+\\)\\n$`),
      ),
    });
    expect((await run('healthcheck')).code).toBe(64);
  });
});
