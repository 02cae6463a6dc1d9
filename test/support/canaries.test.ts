// The watch over secrets must itself be able to fail: every way in which one could be written is planted here once, and
// must be found. What is found is taken away, so that this file passes.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createLog } from '../../src/host/log.ts';
import { keepRequest, keepSecret, openOutput, startFile, takeLeaks } from './canaries.ts';
import { startProcess, temporaryFolder } from './process.ts';
import { openRaw } from './raw-client.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  // Planted leaks that a failing test has left behind.
  takeLeaks();
});

const whose = (): readonly string[] => takeLeaks().map(({ secret }) => secret);
const log = createLog('error', () => undefined, Date.now);

/** A server, and what arrived there last: what a careless program would write. */
async function listen(): Promise<{ port: number; seen: () => { url: string; headers: Record<string, unknown> } }> {
  let url = '';
  let headers: Record<string, unknown> = {};
  const server = createServer((req, res) => {
    [url, headers] = [req.url ?? '', req.headers];
    res.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen: () => ({ url, headers }) };
}

describe('a secret that is written is found', () => {
  test('behaviour: nothing is found where nothing was written, and redacted fields are not found', () => {
    keepSecret('planted', 'canary-of-the-first-test');
    log.info('fine', { authorization: 'canary-of-the-first-test', other: 'canary-of-another' });
    expect(whose()).toEqual([]);
  });

  test('attack: a secret is found in a message, a field, an error, below the level of the log, before it was known', () => {
    log.error('before canary-of-a-message-1');
    for (const nth of [1, 2, 3, 4]) keepSecret(`planted ${nth}`, `canary-of-a-message-${nth}`);
    log.error('field', { path: '/x/canary-of-a-message-2' });
    log.error('error', { error: new Error('got canary-of-a-message-3') });
    log.debug('debug', { nested: { list: ['canary-of-a-message-4'] } });
    expect(whose()).toEqual(['planted 1', 'planted 2', 'planted 3', 'planted 4']);
  });

  test('attack: a part of a long secret is found, and what is no secret is not', () => {
    const token = `eyJhbGciOiJIUzI1NiJ9.${Buffer.from('{"sub":"somebody","exp":1,"more":"of it"}').toString('base64url')}`;
    keepSecret('planted', token);
    keepSecret('filling', 'x'.repeat(200));
    log.error(`cut: ${token.slice(0, 60)}…`);
    log.error(`begins: eyJhbGciOiJIUzI1NiJ9. ${'x'.repeat(100)}`);
    expect(whose()).toEqual(['planted']);
  });

  test('attack: the next file of a process knows what was named, not what requests carried, and searches a log that files share', () => {
    const write = openOutput('a log that files share');
    keepSecret('planted', 'canary-that-was-named');
    keepRequest('/', [['authorization', 'canary-of-a-request']]);
    write('canary-that-was-named canary-of-a-request');
    startFile();
    expect(whose()).toEqual([]);
    write('nothing else: canary-of-a-request');
    expect(whose()).toEqual([]);
    write('canary-that-was-named');
    expect(whose()).toEqual(['planted']);
  });

  test('attack: a secret that a request carried is found: credentials, cookies, payments with their signature, the query', async () => {
    const { port, seen } = await listen();
    const signature = `0x${Buffer.from('a signature of somebody').toString('hex')}`;
    const payment = Buffer.from(JSON.stringify({ payload: { signature } })).toString('base64');
    await fetch(`http://127.0.0.1:${port}/a?email=ann@example.com`, {
      headers: { authorization: 'Bearer planted-api-key-1', 'payment-signature': payment },
    });
    log.error('seen', { what: JSON.stringify(seen()) });
    log.error('decoded', { what: signature });
    expect(new Set(whose())).toEqual(
      new Set(['authorization', 'payment-signature', 'payment-signature, its signature', 'query']),
    );
    const raw = await openRaw(port);
    closers.push(raw.close);
    raw.send(
      'GET /b?token=abcdefghij HTTP/1.1\r\nHost: h\r\nCookie: sid=planted-cookie-1; a=b\r\nX-Payment: planted-payment-1\r\n\r\n',
    );
    await raw.answer();
    log.error('seen', { what: JSON.stringify(seen()) });
    expect(whose().toSorted()).toEqual(['Cookie', 'X-Payment', 'query']);
  });

  test('attack: a secret that a process wrote is found: of its configuration, its files, its environment', async () => {
    const files = temporaryFolder();
    closers.push(files.remove);
    files.write('key.txt', 'planted-api-key-in-a-file\n');
    const config = files.write(
      'tollgate.yaml',
      [
        'registry:',
        '  listen: 127.0.0.1:0',
        '  jwt: { secret: "planted-jwt-secret-of-thirty-two-bytes", issuer: tollgate, audience: dashboard }',
        '  api_keys: [{ name: a, key: planted-api-key-of-a, scopes: [sdk] }, { name: b, key_file: key.txt, scopes: [sdk] }]',
        'charges: { secrets: ["planted-charge-secret-number-one-32b", "planted-charge-secret-number-two-32b"] }',
        'admin: { listen: 127.0.0.1:0 }',
      ].join('\n'),
    );
    const tollgate = await startProcess({
      args: ['serve', '-c', config],
      env: { SOME_API_KEY: 'planted-key-of-the-environment' },
      listeners: ['registry', 'admin'],
    });
    await tollgate.kill();
    expect(tollgate.lines.length).toBeGreaterThan(1);
    expect(whose()).toEqual([]);
    const planted = [
      'planted-jwt-secret-of-thirty-two-bytes',
      'planted-api-key-of-a',
      'planted-api-key-in-a-file',
      'planted-charge-secret-number-one-32b',
      'planted-charge-secret-number-two-32b',
      'planted-key-of-the-environment',
    ];
    for (const secret of planted) openOutput('a careless process')(`{"msg":"${secret}"}\n`);
    expect(takeLeaks().map(({ writer }) => writer)).toEqual(planted.map(() => 'a careless process'));
  });

  test('attack: a secret that a real process wrote on either of its streams is found', async () => {
    const files = temporaryFolder();
    closers.push(files.remove);
    for (const [config, words] of [
      ['proxy: { listn: planted-canary-on-a-stream }', ['check']],
      ['proxy: { upstream: "http://planted-canary-on-a-stream/x" }', ['serve']],
    ] as const) {
      keepSecret('planted', 'planted-canary-on-a-stream');
      keepSecret('planted', 'tollgate.yaml:1:');
      const file = files.write('tollgate.yaml', config);
      const tollgate = await startProcess({ args: [...words, '-c', file], listeners: [] });
      expect(await tollgate.exited).toBe(64);
      await expect.poll(() => whose()).toContain('planted');
    }
  });
});
