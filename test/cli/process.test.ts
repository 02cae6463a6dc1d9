// The program as people run it: real processes from the checkout. One of each kind, for what only a process has: its
// streams, its exit code, its signals and the options of Node. What the commands do in full stands in commands.test.ts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ADDRESS, RECEIVER, SECRET } from '../config/support.ts';
import { startProcess } from '../support/process.ts';
import { NO_NETWORK } from '../support/no-network.ts';
import { BARE_ENV, MAIN, NODE, tollgate } from './support.ts';

let folder: string;
const run = (...argv: string[]) => tollgate(argv, { folder });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  const config = `
proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1", timeouts: { drain_delay: 0s, drain: 1s } }
registry: { listen: "127.0.0.1:0", jwt: { secret: "${SECRET}" } }
admin: { listen: "127.0.0.1:0" }
receivers:${RECEIVER}
routes: [{ route_pattern: "/reports/*", method: GET, amount: "0.10" }]
`;
  writeFileSync(join(folder, 'tollgate.yaml'), config);
  writeFileSync(join(folder, 'bad.yaml'), 'registry:\n  listn: x\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string;
};

describe.concurrent('behaviour: exit codes and streams', () => {
  test.each<[argv: string[], code: number, stdout: RegExp, stderr: RegExp]>([
    [['--version'], 0, new RegExp(`^tollgate ${version.replaceAll('.', '\\.')} \\(node v\\d+`), /^$/],
    [['--help'], 0, /^tollgate: .*\n[^]* serve .*\n/, /^$/],
    [['openapi'], 0, /^\{\n {2}"openapi": "3\.1\.\d"/, /^$/],
    [['check'], 0, /^ok\n/, /^warning: /],
    [['check', '-c', 'bad.yaml'], 64, /^bad\.yaml:2:3 registry\.listn: /, /^$/],
    [['-c', 'bad.yaml'], 64, /^$/, /^bad\.yaml:2:3 registry\.listn: /],
    [['match', 'GET', '/reports/q3'], 0, /^matched: payment required\n/, /^$/],
    [['match', 'GET', '/free'], 1, /^not matched: /, /^$/],
    [['mach'], 64, /^$/, /^mach: is no command; did you mean match\?\n$/],
    [['charges', 'show'], 64, /^$/, /needs the id of a charge/],
    [['healthcheck', '--url', 'http://127.0.0.1:1/readyz'], 1, /^$/, /^not ready: nothing answers/],
  ])('tollgate %j ends with %i', async (argv, code, stdout, stderr) => {
    const result = await run(...argv);
    expect(result).toEqual({ code, stdout: expect.stringMatching(stdout), stderr: expect.stringMatching(stderr) });
  });

  test('attack: a lenient HTTP parser does not start', async () => {
    const env = { NODE_OPTIONS: '--insecure-http-parser' };
    const { code, stderr } = await tollgate(['--upstream', 'http://127.0.0.1:2', '--pay-to', ADDRESS], { folder, env });
    expect(code).toBe(64);
    expect(stderr).toContain('--insecure-http-parser');
  });
});

test('behaviour: a running Tollgate says where it listens, beside it keys, tokens and match work, SIGTERM ends it with 0', async () => {
  const running = await startProcess({ cwd: folder, env: BARE_ENV, listeners: ['proxy', 'registry', 'admin'] });
  onTestFinished(running.kill);
  const unpaid = await fetch(`${running.url('proxy')}/reports/a/b`);
  expect(unpaid.status).toBe(402);
  const [ready, token, key] = await Promise.all([
    run('healthcheck', '--url', `${running.url('admin')}/readyz`),
    run('token'),
    run('keys', 'create', '--name', 'ci'),
  ]);
  expect([ready.code, token.code, key.code]).toEqual([0, 0, 0]);

  const sdk = await fetch(`${running.url('registry')}/v1/protected-routes/routes`, {
    headers: { Authorization: `Bearer ${key.stdout.trim()}` },
  });
  expect(await sdk.json()).toMatchObject([{ route_pattern: '/reports/*', source: 'config' }]);
  const dashboard = { Authorization: `Bearer ${token.stdout.trim()}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ route_pattern: '/stored', method: 'GET', amount: '3' });
  const created = await fetch(`${running.url('registry')}/v1/billing/protected-routes`, {
    method: 'POST',
    headers: dashboard,
    body,
  });
  expect(created.status).toBe(201);
  // The route of the file is in the store too now: it must not stand there twice.
  const matched = await run('match', 'GET', '/stored', '--json');
  expect(JSON.parse(matched.stdout)).toMatchObject({ route: { amount: '3', source: 'dashboard' } });

  running.signal('SIGTERM');
  expect(await running.exited).toBe(0);
});

/** util-linux: a terminal of its own for a program. */
const SCRIPT = '/usr/bin/script';

test.skipIf(!existsSync(SCRIPT))(
  'behaviour: Ctrl-C at a terminal ends an idle server at once, its drain_delay notwithstanding',
  async () => {
    const file = join(folder, 'terminal.yaml');
    writeFileSync(
      file,
      `proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1", timeouts: { drain_delay: 300s, drain: 600s } }
registry: { listen: "127.0.0.1:0", store: "sqlite:terminal/t.db" }
admin: { listen: "127.0.0.1:0" }
log: { format: json }
`,
    );
    const command = `echo server $$; exec '${NODE}' ${NO_NETWORK.join(' ')} '${MAIN}' serve -c '${file}'`;
    const child = spawn(SCRIPT, ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], {
      env: BARE_ENV,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let server: number | undefined;
    // The server is a child of the terminal's, which would leave it behind: `exec` made it the shell that said its id.
    onTestFinished(() => {
      if (child.exitCode !== null) return;
      try {
        if (server !== undefined) process.kill(server, 'SIGKILL');
      } finally {
        child.kill('SIGKILL');
      }
    });
    const exited = once(child, 'exit');
    let shown = '';
    const ready = Promise.withResolvers<number>();
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      const id = /^server (\d+)\r?$/m.exec(shown)?.[1];
      if (id !== undefined) server = Number(id);
      const port = /"listener":"proxy"[^\n]*"port":(\d+)/.exec(shown)?.[1];
      if (port !== undefined && shown.includes('"listener":"admin"')) ready.resolve(Number(port));
    });
    // An idle connection that is kept holds nothing up.
    const idle = connect(await ready.promise, '127.0.0.1');
    await once(idle, 'connect');
    idle.resume();
    child.stdin.write('\u0003');
    expect(await exited).toEqual([0, null]);
    expect(shown).toContain('"signal":"SIGINT"');
  },
);
