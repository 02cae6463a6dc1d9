// One POST out into the internet, over real sockets: to the address that was judged and to no other, however its name, its
// redirects or the environment want it; and no endpoint can hold the sender.
import { execFile } from 'node:child_process';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { systemSchedule } from '../../src/host/clock.ts';
import { createPublicPost, type PublicPostAnswer, type PublicPostRequest } from '../../src/host/public-post.ts';
import { CERTIFICATE, KEY } from '../support/certificate.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listen(handle: RequestListener, tls = false): Promise<number> {
  const server = tls ? createTlsServer({ key: KEY, cert: CERTIFICATE }, handle) : createServer(handle);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

const HERE = [{ address: '127.0.0.1', family: 4 }];
type Asked = Partial<PublicPostRequest> & Pick<PublicPostRequest, 'url'>;
function send(
  asked: Asked,
  {
    resolve = async () => HERE,
    signal = new AbortController().signal,
    ca,
  }: {
    resolve?: (name: string) => Promise<readonly { address: string; family: number }[]>;
    signal?: AbortSignal;
    ca?: string | undefined;
  } = {},
): Promise<PublicPostAnswer> {
  const post = createPublicPost({ resolve, schedule: systemSchedule, ca });
  return post({ headers: { 'x-a': 'b' }, body: 'hällo', timeoutMs: 5_000, allowPrivate: true, ...asked }, signal);
}
const unanswered = (reason: string | RegExp): unknown => ({
  kind: 'unanswered',
  reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
});

test('behaviour: the body, its length and the headers arrive, and the status, Retry-After and beginning come back', async () => {
  const seen: unknown[] = [];
  const port = await listen((req, res) => {
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => {
      seen.push([
        req.method,
        req.url,
        req.headers['host'],
        req.headers['x-a'],
        req.headers['content-length'],
        Buffer.concat(parts).toString(),
      ]);
      res.writeHead(503, { 'retry-after': '7' }).end('y'.repeat(300));
    });
  });
  const answer = await send({ url: `http://hooks.example.com:${port}/in?a=b` });
  expect(answer).toEqual({ kind: 'answered', status: 503, retryAfter: '7', beginning: 'y'.repeat(256) });
  expect(seen).toEqual([['POST', '/in?a=b', `hooks.example.com:${port}`, 'b', '6', 'hällo']]);
});

test('behaviour: over TLS the certificate is checked against the name, not the address', async () => {
  const port = await listen((_req, res) => void res.writeHead(204).end(), true);
  const url = (host: string): string => `https://${host}:${port}/`;
  expect(await send({ url: url('localhost') }, { ca: CERTIFICATE })).toMatchObject({ kind: 'answered', status: 204 });
  expect(await send({ url: url('hooks.example.com') }, { ca: CERTIFICATE })).toEqual(unanswered(/ALTNAME/));
  expect(await send({ url: url('localhost') })).toEqual(unanswered(/SELF_SIGNED|UNABLE_TO_VERIFY|DEPTH_ZERO/));
});

describe('what is not public', () => {
  test.each([
    ...['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '[fe80::1]'],
    ...['0x7f.1', '2130706433', '127.1', '0', '[2002:7f00:1::]', '%31%32%37.0.0.1'],
  ])('attack: nothing is connected to the literal address %s', async (host) => {
    let asked = 0;
    const port = await listen((_req, res) => {
      asked += 1;
      res.end();
    });
    const answer = await send({ url: `http://${host}:${port}/`, allowPrivate: false });
    expect([answer, asked]).toEqual([unanswered(/is not a public one/), 0]);
  });

  test('attack: one private address among those of a name is enough to refuse it', async () => {
    let asked = 0;
    const port = await listen((_req, res) => {
      asked += 1;
      res.end();
    });
    const addresses = [{ address: '93.184.216.34', family: 4 }, ...HERE];
    const answer = await send(
      { url: `http://hooks.example.com:${port}/`, allowPrivate: false },
      { resolve: async () => addresses },
    );
    expect([answer, asked]).toEqual([unanswered('its address 127.0.0.1 is not a public one'), 0]);
  });

  test('attack: a name that moves after it was judged (DNS rebinding) is not asked for again', async () => {
    const looks: string[] = [];
    const port = await listen((_req, res) => void res.end('here'));
    const resolve = async (name: string): Promise<typeof HERE> => {
      looks.push(name);
      return looks.length === 1 ? HERE : [{ address: '127.0.0.2', family: 4 }];
    };
    const answer = await send({ url: `http://moves.example.com:${port}/` }, { resolve });
    expect([answer.kind, looks]).toEqual(['answered', ['moves.example.com']]);
  });

  test('attack: a redirect is an answer and no way to anywhere', async () => {
    const paths: unknown[] = [];
    const port = await listen((req, res) => {
      paths.push(req.url);
      res.writeHead(307, { location: '/other' }).end();
    });
    expect(await send({ url: `http://hooks.example.com:${port}/in` })).toMatchObject({ status: 307 });
    expect(paths).toEqual(['/in']);
  });

  test('attack: proxies of the environment are not asked, also if Node was told to ask them', async () => {
    let asked = 0;
    const proxy = await listen((_req, res) => {
      asked += 1;
      res.end();
    });
    const port = await listen((_req, res) => void res.writeHead(204).end());
    const source = path.resolve(import.meta.dirname, '../../src/host');
    const program = `
      import { createPublicPost } from '${source}/public-post.ts';
      import { systemSchedule } from '${source}/clock.ts';
      const keep = setInterval(() => undefined, 1000);
      const url = 'http://hooks.example.com:${port}/';
      const plain = await fetch(url, { method: 'POST' }).then(({ status }) => status, () => 0);
      const post = createPublicPost({ resolve: async () => [{ address: '127.0.0.1', family: 4 }], schedule: systemSchedule });
      const answer = await post({ url, headers: {}, body: '', timeoutMs: 5000, allowPrivate: true }, new AbortController().signal);
      clearInterval(keep);
      console.log(JSON.stringify([plain, answer.status]));`;
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy'];
    const env = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy}`]));
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...env, NODE_USE_ENV_PROXY: '1' },
    });
    // What asks proxies asked this one, once.
    expect([JSON.parse(stdout), asked]).toEqual([[200, 204], 1]);
  });
});

describe('endpoints that hold', () => {
  test('attack: one that never answers is left after the time-out, and one whose name never resolves too', async () => {
    const port = await listen(() => undefined);
    expect(await send({ url: `http://hooks.example.com:${port}/`, timeoutMs: 50 })).toEqual(
      unanswered('no answer came within 0.05 s'),
    );
    const never = new Promise<never>(() => undefined);
    expect(await send({ url: 'http://hooks.example.com/', timeoutMs: 50 }, { resolve: () => never })).toEqual(
      unanswered('no answer came within 0.05 s'),
    );
  });

  test('attack: of an endless body 64 KiB are read, and its status counts', async () => {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    const port = await listen((_req, res) => {
      res.on('close', closed.resolve);
      res.writeHead(200);
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(16_384, 'z'))) sent += 16_384;
        sent += 16_384;
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    });
    expect(await send({ url: `http://hooks.example.com:${port}/` })).toMatchObject({
      status: 200,
      beginning: 'z'.repeat(256),
    });
    await closed.promise;
    expect(sent).toBeGreaterThan(64 * 1024);
  });

  test('behaviour: an attempt that is broken off ends at once and closes its connection', async () => {
    const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const port = await listen((req) => {
      req.on('close', closed.resolve);
      asked.resolve();
    });
    const abort = new AbortController();
    const answer = send({ url: `http://hooks.example.com:${port}/` }, { signal: abort.signal });
    await asked.promise;
    abort.abort();
    expect(await answer).toEqual(unanswered('the attempt was broken off'));
    await closed.promise;
  });

  test('behaviour: nobody listens, the connection is cut, the name is unknown: each is said in words', async () => {
    const port = await listen((req) => void req.socket.destroy());
    expect(await send({ url: `http://hooks.example.com:${port}/` })).toEqual(unanswered('the connection was cut'));
    const [closing] = servers.splice(0);
    closing?.close();
    await new Promise((resolve) => closing?.once('close', resolve));
    expect(await send({ url: `http://hooks.example.com:${port}/` })).toEqual(unanswered('the connection was refused'));
    const resolve = (): Promise<never> => Promise.reject(new Error('ENOTFOUND'));
    expect(await send({ url: 'http://hooks.example.com/' }, { resolve })).toEqual(
      unanswered('the name hooks.example.com has no address'),
    );
  });
});
