// docs/operating.md as an operator uses it: its configurations load, its backup and restore are run on a ledger with real
// payments, and its proxies are started in front of Tollgate where they are installed (Debian: nginx, caddy).
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { request } from 'node:https';
import { connect as connectTls } from 'node:tls';
import type { Socket } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { NODE, readText } from '../deploy/support.ts';
import { configOf } from '../config/support.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { programBuild } from '../support/build.ts';
import { CERTIFICATE, KEY } from '../support/certificate.ts';
import { freePort } from '../support/free-port.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { temporaryFolder } from '../support/process.ts';
import { findBlock, readBlocks } from './blocks.ts';

const DOCUMENT = 'docs/operating.md';
const blocks = readBlocks(DOCUMENT);
const PATH = `${path.dirname(NODE)}:${process.env['PATH'] ?? ''}:/usr/sbin`;

type Run = { readonly code: number; readonly stdout: string; readonly stderr: string };

function script(of: string, env: Readonly<Record<string, string>> = {}): Promise<Run> {
  return new Promise((resolve) => {
    execFile('sh', ['-e', '-c', of], { env: { PATH, ...env } }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, stdout, stderr });
    });
  });
}

const missing = async (command: string): Promise<boolean> => (await script(`command -v ${command}`)).code !== 0;
const [noNginx, noCaddy] = await Promise.all([missing('nginx'), missing('caddy')]);

describe('backup and restore of SQLite in docs/operating.md', () => {
  let paid: PaidTollgate;
  let folder: string;
  beforeAll(async () => {
    paid = await startPaidTollgate({ routes: ['* /reports/* 0.10'] });
    folder = path.dirname(paid.config);
    writeFileSync(path.join(folder, 'backup.mjs'), findBlock(blocks, 'backup.mjs').text);
  }, 60_000);
  afterAll(() => paid?.stop());

  const buy = async (): Promise<string> => {
    const credential = await paid.sign(await paid.quote('/reports/q3', 'POST'));
    expect((await paid.pay('/reports/q3', credential, { method: 'POST' })).status).toBe(200);
    return credential;
  };
  const here = (name: string): Promise<Run> => script(`cd ${folder}; ${findBlock(blocks, name).text}`);
  const modesOf = (...names: string[]): number[] => names.map((name) => statSync(path.join(folder, name)).mode & 0o777);
  const BACKUP = 'backup-2026-11-25';

  test('behaviour: a backup made while payments come in is restored: its charges and quotes are good, later ones are not charged twice', async () => {
    await buy();
    await buy();
    const [backup] = await Promise.all([here('a backup while Tollgate serves'), ...[1, 2, 3].map(buy)]);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    expect(modesOf(BACKUP, `${BACKUP}/tollgate.db`, `${BACKUP}/secrets.json`)).toEqual([0o700, 0o600, 0o600]);
    const quote = await paid.quote('/reports/q3', 'POST');
    const later = await buy();
    const earned = await paid.earned();
    expect(earned).toBe(600_000n);
    await paid.tollgate().kill();
    expect(await here('a restore while Tollgate is stopped')).toMatchObject({ code: 0, stderr: '' });
    expect(modesOf('data', 'data/tollgate.db', 'data/secrets.json')).toEqual([0o700, 0o600, 0o600]);
    await paid.restart();
    const restored = await paid.charges();
    expect(restored.length).toBeGreaterThanOrEqual(2);
    expect(restored.length).toBeLessThanOrEqual(5);
    const again = await paid.pay('/reports/q3', later, { method: 'POST' });
    expect([again.status, again.headers.get('tollgate-reason')]).toEqual([
      402,
      expect.stringContaining('nonce_already_used'),
    ]);
    expect(await paid.earned()).toBe(earned);
    const quoted = await paid.pay('/reports/q3', await paid.sign(quote), { method: 'POST' });
    expect(quoted.status).toBe(200);
    expect((await paid.charges())[0]?.id).toBe(quote.extra.external_ref);
  }, 60_000);

  test('behaviour: the backup out of a container, which has no shell, holds the charges', async () => {
    await buy();
    const [command = ''] = /^docker exec .*$/m.exec(findBlock(blocks, 'a backup out of a container').text) ?? [];
    const asHere = command
      .replace('docker exec -i tollgate /nodejs/bin/node', 'node')
      .replaceAll(' /data', ` ${folder}/data`);
    expect(await script(`cd ${folder}; ${asHere}`)).toMatchObject({ code: 0, stderr: '' });
    const copy = new DatabaseSync(path.join(folder, 'data/backup/tollgate.db'), { readOnly: true });
    const count = copy.prepare('SELECT count(*) AS charges FROM charges').get();
    copy.close();
    expect(count).toEqual({ charges: (await paid.charges()).length });
  });
});

/** Beside a PostgreSQL that is named as in test/README.md; that of the lock file comes without them. */
const CLIENTS = path.join(process.env['TOLLGATE_TEST_POSTGRES'] ?? '', 'bin');
const noDump = !existsSync(path.join(CLIENTS, 'pg_dump'));

describe.skipIf(noDump)('dump and restore of PostgreSQL in docs/operating.md', () => {
  afterAll(() => stopSharedPostgres());

  test('behaviour: a dumped schema is restored whole: a paid answer is known, a quote is good, a later price is gone', async () => {
    const secret = 'a-secret-of-the-test-of-at-least-32-bytes';
    const url = await freshDatabase();
    const paid = await startPaidTollgate({
      routes: ['* /reports/* 0.10'],
      registry: `store: "${url}", jwt: { secret: ${secret} }`,
      more: `charges: { secrets: [${secret}] }`,
    });
    onTestFinished(() => paid.stop());
    const files = temporaryFolder();
    onTestFinished(files.remove);
    const env = { DATABASE_URL: url, BACKUP: files.folder, PATH: `${CLIENTS}:${PATH}` };
    const credential = await paid.sign(await paid.quote('/reports/q3', 'POST'));
    expect((await paid.pay('/reports/q3', credential, { method: 'POST' })).status).toBe(200);
    await until('it is delivered', async () => (await paid.charges())[0]?.status === 'delivered');
    const before = await paid.charges();
    const quote = await paid.quote('/reports/q3', 'POST');
    expect(await script(findBlock(blocks, 'a dump of PostgreSQL').text, env)).toMatchObject({ code: 0, stderr: '' });
    expect((await paid.pay('/reports/q3', await paid.sign(quote), { method: 'POST' })).status).toBe(200);
    await paid.tollgate().kill();
    expect(await script(findBlock(blocks, 'a restore of PostgreSQL').text, env)).toMatchObject({ code: 0 });
    await paid.restart();
    await until('it is ready', async () => (await fetch(`${paid.tollgate().url('admin')}/readyz`)).ok);
    expect((await paid.charges()).map(({ id, status }) => [id, status])).toEqual(
      before.map(({ id, status }) => [id, status]),
    );
    expect((await paid.pay('/reports/q3', await paid.sign(quote), { method: 'POST' })).status).toBe(200);
  }, 60_000);
});

describe('TLS in front of Tollgate as docs/operating.md has it', () => {
  const files = temporaryFolder();
  const running = new Set<ChildProcess>();
  const upstreamSockets = new Set<Socket>();
  let paid: PaidTollgate;
  let keyFile: string;
  let certificateFile: string;
  beforeAll(async () => {
    keyFile = files.write('key.pem', KEY);
    certificateFile = files.write('certificate.pem', CERTIFICATE);
    paid = await startPaidTollgate({
      routes: ['* /reports/* 0.10', 'GET /socket 0.10'],
      proxy: 'trusted_proxies: [127.0.0.1/32, "::1/128"]',
      handle: (req, res) => {
        req.resume();
        if (req.url === '/events') {
          res.writeHead(200, { 'content-type': 'text/event-stream' });
          res.write('data: first\n\n');
        } else res.end(JSON.stringify({ url: req.url, from: req.headers['x-forwarded-for'] }));
      },
    });
    paid.upstream.server.on('connection', (socket: Socket) => {
      upstreamSockets.add(socket);
      socket.once('close', () => upstreamSockets.delete(socket));
    });
    paid.upstream.server.on('upgrade', (_req, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello');
      socket.on('end', () => socket.end());
      socket.on('error', () => socket.destroy());
    });
  }, 60_000);
  afterAll(async () => {
    await Promise.all([...running].map(end));
    // A tunnel or a stream that nobody ended would keep the upstream from closing.
    for (const socket of upstreamSockets) socket.destroy();
    await paid?.stop();
    files.remove();
  });

  const end = async (child: ChildProcess): Promise<void> => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode !== null || child.signalCode !== null) return;
    // nginx ends its workers with it.
    child.kill('SIGTERM');
    await ended;
  };

  /** Starts a proxy whose port takes connections when this resolves. */
  const start = async (command: string, args: readonly string[], port: number): Promise<void> => {
    const env = { PATH, HOME: files.folder, XDG_DATA_HOME: files.folder, XDG_CONFIG_HOME: files.folder };
    const child = spawn(command, args, { env, cwd: files.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    onTestFinished(() => end(child));
    const said = Promise.all([text(child.stdout), text(child.stderr)]);
    let failed: string | undefined;
    void said.then((all) => (failed = `${command} ended: ${all.join('')}`));
    await until(`${command} listens`, async () => {
      if (failed !== undefined) throw new Error(failed);
      return canConnect(port);
    });
  };

  const nginx = async (port: number): Promise<void> => {
    const server = findBlock(blocks, 'inside http { }')
      .text.replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
      .replace('127.0.0.1:8402', `127.0.0.1:${paid.tollgate().port('proxy')}`)
      .replace('/etc/ssl/api.example.com.pem', certificateFile)
      .replace('/etc/ssl/api.example.com.key', keyFile);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${path.join(files.folder, name)};`)
      .join(' ');
    const config = files.write(
      'nginx.conf',
      `daemon off; pid ${path.join(files.folder, 'nginx.pid')}; error_log stderr;\nevents {}\nhttp { access_log off; ${temporary}\n${server}\n}\n`,
    );
    await start('nginx', ['-p', files.folder, '-c', config], port);
  };

  const caddy = async (port: number): Promise<void> => {
    const site = findBlock(blocks, 'Caddyfile')
      .text.replace('api.example.com {', `https://localhost:${port} {\n\ttls ${certificateFile} ${keyFile}`)
      .replace('127.0.0.1:8402', `127.0.0.1:${paid.tollgate().port('proxy')}`);
    const config = files.write('Caddyfile', `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
    await start('caddy', ['run', '--config', config, '--adapter', 'caddyfile'], port);
  };

  describe.each([
    ['nginx', noNginx, nginx],
    ['Caddy', noCaddy, caddy],
  ])('%s', (name, isMissing, startProxy) => {
    test.skipIf(isMissing)(
      `behaviour: behind ${name} a 402 names the https address, a payment passes, and the API sees the client's address alone`,
      async () => {
        const port = await freePort();
        await startProxy(port);
        const asked = await ask(port, '/reports/q3');
        const required = JSON.parse(Buffer.from(String(asked.headers['payment-required']), 'base64').toString()) as {
          resource: { url: string };
          accepts: [Parameters<PaidTollgate['sign']>[0]];
        };
        expect([asked.status, required.resource.url]).toEqual([402, `https://localhost:${port}/reports/q3`]);
        const paying = await ask(port, '/reports/q3', {
          'payment-signature': await paid.sign(required.accepts[0]),
          'x-forwarded-for': '6.6.6.6',
        });
        expect([paying.status, JSON.parse(paying.body)]).toEqual([
          200,
          { url: '/reports/q3', from: '127.0.0.1, 127.0.0.1' },
        ]);
        // As large as a payment may be: it is Tollgate that says what is wrong with it.
        const large = await ask(port, '/reports/q3', { 'payment-signature': 'A'.repeat(16_000) });
        expect([large.status, JSON.parse(large.body)]).toMatchObject([400, { code: 'payment_malformed' }]);
        const crooked = await ask(port, '/reports/a%2Fb');
        expect(JSON.parse(crooked.body)).toMatchObject({ code: 'target_ambiguous' });
      },
      60_000,
    );

    test.skipIf(isMissing)(
      `behaviour: through ${name} a stream comes as it is sent, and a paid WebSocket is opened`,
      async () => {
        const port = await freePort();
        await startProxy(port);
        expect(await firstPiece(port, '/events')).toBe('data: first\n\n');
        const credential = await paid.sign(await paid.quote('/socket'));
        const handshake = [
          'GET /socket HTTP/1.1',
          `Host: localhost:${port}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
          `PAYMENT-SIGNATURE: ${credential}`,
          '\r\n',
        ].join('\r\n');
        const said = await saysOver(port, handshake, 'hello');
        expect(said).toMatch(/^HTTP\/1.1 101 /);
      },
      60_000,
    );
  });
});

describe('docs/operating.md', () => {
  test('behaviour: Node takes the flags that docs/operating.md names, and the program runs with them', async () => {
    const files = temporaryFolder();
    onTestFinished(files.remove);
    chmodSync(files.write('tollgate', `#!/bin/sh\nexec node ${programBuild().main} "$@"\n`), 0o755);
    const config = files.write('tollgate.yaml', 'registry: { store: sqlite:data/tollgate.db }\n');
    const env = { PATH: `${files.folder}:${PATH}`, TOLLGATE_CONFIG: config };
    expect(await script(findBlock(blocks, 'flags for Node').text, env)).toMatchObject({ code: 0 });
  });

  test('behaviour: the configurations of docs/operating.md load', () => {
    const texts = blocks.filter(({ language }) => language === 'yaml').map((block) => block.text);
    expect(texts.length).toBeGreaterThan(0);
    const files = temporaryFolder();
    onTestFinished(files.remove);
    const keys = files.write('partners.txt', `${'ab'.repeat(32)} partner\n`);
    for (const block of texts) {
      const text = block.replace('partners.txt', keys);
      const config = configOf(`registry: {}\n${text}`);
      if (config.selling.isConfigured) expect([...config.selling.plans.byId.keys()]).toEqual(['default', 'partners']);
      if (config.selling.isConfigured) continue;
      if (config.otlp === undefined) expect(config.proxy?.publicUrl).toBe('https://api.example.com');
      else expect(config.otlp).toMatchObject({ endpoint: 'http://127.0.0.1:4318/v1/traces', sample: 0.05 });
    }
  });

  test('behaviour: every metric that docs/operating.md names is in the table of metrics', () => {
    const known = new Set(
      [...readText('config/README.md').matchAll(/`([a-z_]+)(?:\{[a-z_,]+\})?`/g)].map(([, name = '']) => name),
    );
    const named = [...readText(DOCUMENT).matchAll(/`tollgate_([a-z_]+)/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  test('behaviour: every block of docs/operating.md is used by a test', () => {
    expect(blocks.map(({ name }) => name).toSorted()).toEqual(
      [
        'behind a TLS proxy on the same machine',
        'Caddyfile',
        'inside http { }',
        'a backup while Tollgate serves',
        'backup.mjs',
        'a backup out of a container',
        'a restore while Tollgate is stopped',
        'a dump of PostgreSQL',
        'a restore of PostgreSQL',
        'flags for Node',
        'traces',
        'plans',
      ].toSorted(),
    );
  });
});

type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
};

function ask(port: number, target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: 'localhost', port, path: target, headers, ca: CERTIFICATE, agent: false };
    request(options, (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        reject,
      );
    })
      .on('error', reject)
      .end();
  });
}

/** What comes first of an answer that does not end. */
function firstPiece(port: number, target: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: 'localhost', port, path: target, ca: CERTIFICATE, agent: false }, (response) => {
      response.once('data', (piece: Buffer) => {
        resolve(piece.toString());
        asking.destroy();
      });
    });
    asking.on('error', reject);
    asking.end();
  });
}

/** What comes back to `bytes`, up to `last`. */
function saysOver(port: number, bytes: string, last: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    const socket = connectTls({ host: 'localhost', port, ca: CERTIFICATE, servername: 'localhost' }, () => {
      socket.write(bytes);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`it was closed after: ${said}`)));
    socket.on('data', (piece: Buffer) => {
      said += piece.toString('latin1');
      if (!said.includes(last)) return;
      resolve(said);
      socket.destroy();
    });
  });
}

function canConnect(port: number): Promise<boolean> {
  return ask(port, '/').then(
    () => true,
    () => false,
  );
}
