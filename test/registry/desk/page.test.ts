// The desk's page as a registry serves it: one document for every view, files that a browser may keep for ever, headers under
// which it runs nothing but them, and the hosts under which it is there at all. The page is the real one.
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDeskFiles } from '../../../src/registry/desk/desk-files.ts';
import type { DeskSettings } from '../../../src/registry/desk/desk-settings.ts';
import { openRaw } from '../../support/raw-client.ts';
import { SETTINGS, startRegistry, type Kit, type Reply } from '../kit.ts';

const DESK: DeskSettings = {
  publicUrl: undefined,
  signIn: ['link'],
  session: { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 },
  oidc: undefined,
  testnet: false,
};

let kit: Kit;
let own: string;

beforeAll(async () => {
  kit = await startRegistry({ settings: { desk: DESK }, readDeskFiles });
  own = `127.0.0.1:${kit.port}`;
});
afterAll(() => kit.close());

function setDesk(desk: DeskSettings | undefined): void {
  kit.registry.reconfigure({ ...SETTINGS, desk });
}

const get = (path: string, headers: Record<string, string | string[]> = {}, method = 'GET'): Promise<Reply> =>
  kit.ask(method, path, { headers: { Host: own, ...headers } });

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

describe('the document', () => {
  test('behaviour: /desk leads to /desk/, and so does / for who asks for a page; programs that ask for / get 404', async () => {
    for (const [path, accept] of [
      ['/desk', '*/*'],
      ['/desk?x=1', '*/*'],
      ['/', 'text/html,application/xhtml+xml'],
    ] as const) {
      const reply = await get(path, { Accept: accept });
      expect([path, reply.status, reply.headers.location]).toEqual([path, 303, '/desk/']);
    }
    expect((await get('/', { Accept: 'application/json' })).status).toBe(404);
    expect((await get('/')).status).toBe(404);
  });

  test('behaviour: every view of the desk is the one document, which a browser asks for again with its ETag', async () => {
    const document = await get('/desk/');
    expect(document.status).toBe(200);
    expect(document.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    for (const path of [
      ...['/desk/routes', '/desk/routes/0b6c', '/desk/try', '/desk/charges', '/desk/charges/chg_aA-_.~%20'],
      ...['/desk/plans', '/desk/passes', '/desk/passes/pass_a-B'],
      ...['/desk/keys', '/desk/receivers', '/desk/audit', '/desk/api', '/desk/routes?q=a&status=paused'],
    ]) {
      const view = await get(path);
      expect([path, view.status, view.body.equals(document.body)]).toEqual([path, 200, true]);
    }
    const again = await get('/desk/keys', { 'If-None-Match': String(document.headers.etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
    expect((await get('/desk/', {}, 'HEAD')).headers['content-length']).toBe(String(document.body.length));
  });

  test('refuses: anything else under /desk/ with 404, and other methods than GET and HEAD with 405', async () => {
    for (const path of [
      ...['/desk/nothing', '/desk/routes/a/b', '/desk//', '/desk/index.html', '/desk/%61pi', '/desk/keys/'],
      ...['/desk/assets/', '/desk/assets/desk.js', '/desk/assets/../index.html', '/desk/charges/', '/Desk/', '/deskx'],
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    const posted = await get('/desk/', {}, 'POST');
    expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  test('behaviour: every file that the desk’s document names is kept by browsers for ever, compressed, and small', async () => {
    const document = (await get('/desk/')).body.toString();
    const named = [...document.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
    const style = named.find((path) => path.endsWith('.css')) ?? '';
    const fonts = [...(await get(style)).body.toString().matchAll(/url\(([^)]+)\)/g)].map(
      ([, name = '']) => new URL(name, `http://${own}${style}`).pathname,
    );
    expect(fonts.length).toBeGreaterThan(0);
    const bytes = { code: 0, fonts: 0 };
    for (const path of new Set([...named, ...fonts])) {
      expect(path).toMatch(/^\/desk\/assets\/[\w-]+\.[\w-]{8,}\.\w+$/);
      const raw = await get(path);
      expect(raw.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      const br = await get(path, { 'Accept-Encoding': 'gzip, br' });
      if (path.endsWith('.woff2')) {
        expect([br.headers['content-encoding'], br.headers['content-type']]).toEqual([undefined, 'font/woff2']);
        bytes.fonts += br.body.length;
        continue;
      }
      const gz = await get(path, { 'Accept-Encoding': 'br;q=0, gzip;q=0.5' });
      expect([br.headers['content-encoding'], gz.headers['content-encoding']]).toEqual(['br', 'gzip']);
      expect(br.headers.vary).toBe('Accept-Encoding');
      expect(brotliDecompressSync(br.body)).toEqual(raw.body);
      expect(gunzipSync(gz.body)).toEqual(raw.body);
      expect(new Set([raw, br, gz].map(({ headers }) => headers.etag)).size).toBe(3);
      if (/\.(?:js|css)$/.test(path)) bytes.code += br.body.length;
    }
    expect(bytes.code).toBeLessThanOrEqual(60 * 1024);
    expect(bytes.fonts).toBeLessThanOrEqual(60 * 1024);
  });
});

describe('headers under /desk/', () => {
  test('behaviour: every answer, refusals too, lets a browser run this origin’s own files alone and nobody frame it', async () => {
    const document = await get('/desk/');
    const script = /src="([^"]+)"/.exec(document.body.toString())?.[1] ?? '';
    const answers = [
      document,
      await get('/desk'),
      await get(script),
      await get('/desk/none'),
      await get('/desk/x', {}, 'PUT'),
    ];
    answers.push(await get('/desk/', { Host: 'evil.example' }));
    for (const { headers } of answers)
      expect(headers).toMatchObject({
        'content-security-policy': POLICY,
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
    expect(document.headers).toMatchObject({
      'cross-origin-opener-policy': 'same-origin',
      'origin-agent-cluster': '?1',
    });
    expect(document.headers).not.toHaveProperty('strict-transport-security');
    expect(document.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('behaviour: an https public_url adds Strict-Transport-Security; plain http on a private address leaves out what browsers would complain about', async () => {
    setDesk({ ...DESK, publicUrl: 'https://desk.example.com' });
    const secure = await get('/desk/', { Host: 'desk.example.com' });
    expect(secure.headers).toMatchObject({
      'strict-transport-security': 'max-age=31536000',
      'cross-origin-opener-policy': 'same-origin',
    });
    setDesk(DESK);
    const nearby = await get('/desk/', { Host: `192.168.3.4:${kit.port}` });
    expect(nearby.status).toBe(200);
    expect(nearby.headers).not.toHaveProperty('cross-origin-opener-policy');
    expect(nearby.headers).not.toHaveProperty('origin-agent-cluster');
  });
});

describe('hosts', () => {
  test('attack: a name that was turned to this address (DNS rebinding) gets 403 host_refused; own names and private addresses are served', async () => {
    setDesk(DESK);
    const { port } = kit;
    for (const host of [
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      `10.1.2.3:${port}`,
      `[fd00::1]:${port}`,
    ])
      expect([host, (await get('/desk/', { Host: host })).status]).toEqual([host, 200]);
    for (const host of [
      ...['evil.example', `evil.example:${port}`, `localhost.evil.example:${port}`, `127.0.0.1.nip.io:${port}`],
      ...['localhost', '127.0.0.1', '127.0.0.1:1', `127.0.0.2:${port}`, `8.8.8.8:${port}`, `0.0.0.0:${port}`],
      ...[`10.1.2.3.evil:${port}`, `127.1:${port}`, `0x7f.1:${port}`, `localhost.:${port}`, `[::]:${port}`],
    ]) {
      const reply = await get('/desk/', { Host: host });
      expect([host, reply.status, reply.json.code]).toEqual([host, 403, 'host_refused']);
    }
  });

  test('attack: two hosts, or a target that names another host than Host, are refused', async () => {
    const client = await openRaw(kit.port);
    client.send(`GET /desk/ HTTP/1.1\r\nHost: ${own}\r\nHost: evil.example\r\n\r\n`);
    const twice = await client.answer();
    client.close();
    expect([twice.status, twice.body.toString().includes('host_refused')]).toEqual([403, true]);
    expect((await get(`http://evil.example/desk/`)).json.code).toBe('host_refused');
    expect((await get(`http://${own}/desk/`)).status).toBe(200);
  });

  test('behaviour: a desk with public_url serves its host alone, whatever the port it comes through', async () => {
    setDesk({ ...DESK, publicUrl: 'https://desk.example.com' });
    for (const host of ['desk.example.com', 'DESK.example.com', 'desk.example.com:443'])
      expect([host, (await get('/desk/', { Host: host })).status]).toEqual([host, 200]);
    for (const host of [own, 'desk.example.com:8443', 'desk.example.com.', 'evil.example', 'xdesk.example.com'])
      expect([host, (await get('/desk/', { Host: host })).status]).toEqual([host, 403]);
    setDesk(DESK);
  });
});

test('behaviour: without a desk nothing is served under /desk/, and / is as it was', async () => {
  setDesk(undefined);
  for (const path of ['/desk/', '/desk', '/desk/keys', '/desk/session'])
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  expect((await get('/', { Accept: 'text/html' })).status).toBe(404);
  setDesk(DESK);
});

test('behaviour: a desk that cannot be built is 503 with one sentence, and is tried again', async () => {
  let tries = 0;
  const without = await startRegistry({
    settings: { desk: DESK },
    readDeskFiles: () => {
      tries++;
      return Promise.reject(new Error('The desk cannot be built here: this checkout has no rolldown; run npm ci.'));
    },
  });
  try {
    const ask = (): Promise<Reply> => without.ask('GET', '/desk/', { headers: { Host: `localhost:${without.port}` } });
    expect(await ask()).toMatchObject({
      status: 503,
      json: { detail: 'The desk cannot be built here: this checkout has no rolldown; run npm ci.' },
    });
    expect((await ask()).status).toBe(503);
    expect(tries).toBe(2);
  } finally {
    await without.close();
  }
});
