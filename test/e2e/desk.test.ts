// `tollgate desk` beside a running registry: the link that it prints opens the desk once, sessions are listed and ended from the
// terminal, and the code is in no argument of a process, no log line and no metric.
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { request } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tollgate } from '../cli/support.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { freePort } from '../support/free-port.ts';
import { startProcess, type TollgateProcess } from '../support/process.ts';

const { folder, remove } = temporaryFolder();
let running: TollgateProcess;
let port: number;
beforeAll(async () => {
  port = await freePort();
  const yaml = `registry: { listen: "127.0.0.1:${port}" }\nadmin: { listen: "127.0.0.1:0" }\n`;
  writeFileSync(join(folder, 'tollgate.yaml'), yaml);
  running = await startProcess({ cwd: folder, args: ['serve'], listeners: ['registry', 'admin'] });
  await running.beside();
});
afterAll(async () => {
  await running.kill();
  remove();
});

async function runIn(
  at: string,
  argv: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const { code, stdout, stderr } = await tollgate(argv, { folder: at, env });
  return { code, out: stdout, err: stderr };
}
type Reply = { status: number; cookie: string; body: string };
function ask(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const given = {
      Host: `127.0.0.1:${port}`,
      Origin: `http://127.0.0.1:${port}`,
      'Content-Type': 'application/json',
      ...headers,
    };
    const req = request({ host: '127.0.0.1', port, method, path, headers: given, agent: false }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      const cookie = String(res.headers['set-cookie'] ?? '').split(';', 1)[0] ?? '';
      res.on('end', () => resolve({ status: res.statusCode ?? 0, cookie, body: text }));
    });
    req.on('error', reject);
    req.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

test('behaviour: tollgate desk prints a link alone, which opens the desk once; sessions and revoke end it from the terminal', async () => {
  const made = await runIn(folder, ['desk', '--role', 'viewer', '--as', 'Zoë']);
  expect([made.code, made.out]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^http://127\\.0\\.0\\.1:${port}/desk/#code=[\\w-]{43}\\n$`)),
  ]);
  const code = made.out.trim().split('#code=')[1];
  const opened = await ask('POST', '/desk/session', {}, { code });
  expect(opened.status).toBe(200);
  expect((await ask('POST', '/desk/session', {}, { code })).status).toBe(401);
  const { key } = JSON.parse(opened.body) as { key: string };
  const session = { Cookie: opened.cookie, 'Tollgate-Desk': key };
  expect(JSON.parse((await ask('GET', '/desk/session', session)).body)).toMatchObject({
    subject: 'Zoë',
    role: 'viewer',
  });

  const listed = await runIn(folder, ['desk', 'sessions', '--json']);
  const [first] = JSON.parse(listed.out) as { id: string; subject: string; via: string }[];
  expect(first).toMatchObject({ subject: 'Zoë', via: 'link' });
  expect((await runIn(folder, ['desk', 'revoke', 'nobody'])).code).toBe(1);
  expect((await runIn(folder, ['desk', 'revoke', first?.id ?? ''])).code).toBe(0);
  expect((await ask('GET', '/desk/session', session)).status).toBe(401);
  const metrics = await (await fetch(`${running.url('admin')}/metrics`)).text();
  expect(metrics).toContain('tollgate_desk_sign_ins_total{via="link",result="ok"} 1');
  expect(metrics).toContain('tollgate_desk_sessions 0');
  for (const secret of [code ?? '', key])
    expect(JSON.stringify(running.lines) + running.stderr() + metrics).not.toContain(secret);
});

test('behaviour: with a token the registry itself makes the link; a wrong token and a registry that is away are told', async () => {
  const { out: jwt } = await runIn(folder, ['token']);
  const url = `http://127.0.0.1:${port}`;
  const made = await runIn(folder, ['desk', '--url', url, '--token', jwt.trim()]);
  expect([made.code, made.out.startsWith(`${url}/desk/#code=`)]).toEqual([0, true]);
  const refused = await runIn(folder, ['desk', '--url', url, '--token', 'wrong']);
  expect([refused.code, refused.out, refused.err]).toEqual([1, '', expect.stringContaining('401')]);
  const closing = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(closing, 'listening');
  const elsewhere = `http://127.0.0.1:${(closing.address() as AddressInfo).port}`;
  const away = await runIn(folder, ['desk', '--url', elsewhere, '--token', 'any']);
  closing.close();
  expect([away.code, away.out]).toEqual([69, '']);
  expect(away.err.trim()).toMatch(new RegExp(`^No registry answers at ${elsewhere}: (?!fetch failed).`));
});

test('attack: the process list is read while --open opens a browser: no argument holds the code', async () => {
  const browser = join(folder, 'browser.sh');
  const seen = join(folder, 'seen');
  writeFileSync(
    browser,
    `#!/bin/sh\nprintf '%s' "$*" > '${seen}.args'\nls -l "$1" > '${seen}.mode'\ncat "$1" > '${seen}'\n`,
  );
  chmodSync(browser, 0o700);
  const made = await runIn(folder, ['desk', '--open'], { BROWSER: browser });
  const code = made.out.trim().split('#code=')[1] ?? '';
  expect(readFileSync(seen, 'utf8')).toContain(code);
  const file = readFileSync(`${seen}.args`, 'utf8');
  expect(file).not.toContain(code);
  expect(readFileSync(`${seen}.mode`, 'utf8')).toMatch(/^-rw-------/);
  expect(existsSync(file)).toBe(false);
});
