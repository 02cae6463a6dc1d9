// docs/assertion.md as the owner of an API uses it: each program in it that can run here serves an API behind a real Tollgate, is
// asked through it, and is attacked around it. Those in Python and Go are left out where python3 or go is not installed.
import { execFile, spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  createDerivedKey,
  createSharedKey,
  publicKeySet,
  type AssertionKey,
} from '../../src/domain/selling/assertion-key.ts';
import { ROOT } from '../deploy/support.ts';
import { startPlans, type PlanKit } from '../selling/kit.ts';
import { findBlock, readBlocks } from './blocks.ts';

const DOCUMENT = 'docs/assertion.md';
const blocks = readBlocks(DOCUMENT);
const SECRET = 'the-charge-secret-of-the-document-32';
const STRANGE = 'a-charge-secret-of-somebody-else-32!';
const SHARED = 'a-secret-of-the-document-of-32-bytes';
const ISSUER = 'https://api.example.com';
const AUDIENCE = 'https://api.internal';
const HEADER = 'Tollgate-Assertion';

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-assertion-'));
symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
const fileOf = (name: string): string => path.join(folder, name);
for (const { name, text } of blocks)
  if (/^[\w-]+\.\w+$/.test(name)) writeFileSync(fileOf(name), text.replace("from 'express'", "from 'express-5'"));

/** An API, as the document writes it, on a port of its own. */
type Api = { readonly url: string; readonly close: () => Promise<void> };

const lacks = (program: string, ...args: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    execFile(program, args, (error) => resolve(error !== null));
  });
const [noPython, noGo] = await Promise.all([lacks('python3', '--version'), lacks('go', 'version')]);

async function load<Module>(name: string): Promise<Module> {
  return (await import(/* @vite-ignore */ pathToFileURL(fileOf(name)).href)) as Module;
}

async function serve(handle: RequestListener): Promise<Api> {
  const server: Server = createServer(handle);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A server of ASGI that does what uvicorn does of a request without a body, for one answer a connection. */
const ASGI = `
import asyncio, json
from assertion import TollgateAssertion

async def app(scope, receive, send):
    body = json.dumps({"id": scope["path"].rpartition("/")[2], "access": scope["assertion"]["access"]}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

guarded = TollgateAssertion(app, prefix="/reports")

async def serve(reader, writer):
    # A connection without a request is Tollgate's question whether anybody is there.
    try:
        received = await reader.readuntil(b"\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        return writer.close()
    line, *fields = received.rstrip().split(b"\\r\\n")
    method, target, _ = line.split(b" ")
    raw_path, _, query = target.partition(b"?")
    headers = [(name.lower(), value.strip()) for name, _, value in (field.partition(b":") for field in fields)]
    scope = {"type": "http", "method": method.decode(), "path": raw_path.decode(), "raw_path": raw_path,
             "query_string": query, "headers": headers}
    sent = {"body": b""}
    async def send(message):
        sent.update(message)
    await guarded(scope, None, send)
    writer.write(b"HTTP/1.1 %d X\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % (sent["status"], len(sent["body"])))
    writer.write(b"" if method == b"HEAD" else sent["body"])
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
`;

function servePython(): Promise<Api> {
  return serveProgram('python3', ['-c', ASGI], { TOLLGATE_ASSERTION_SECRET: SHARED, PYTHONDONTWRITEBYTECODE: '1' });
}

/** Runs a program that says on its first line where it listens. */
async function serveProgram(
  file: string,
  args: readonly string[],
  more: Readonly<Record<string, string>>,
): Promise<Api> {
  const env = { TOLLGATE_ISSUER: ISSUER, TOLLGATE_AUDIENCE: AUDIENCE, ...more };
  const program = spawn(file, args, {
    ...{ cwd: folder, env: { ...process.env, ...env } },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => {
    program.once('exit', () => resolve());
  });
  const port = await new Promise<string>((resolve, reject) => {
    createInterface(program.stdout).once('line', resolve);
    program.once('exit', () => reject(new Error(`${file} ended`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      program.kill();
      await ended;
    },
  };
}

/** A program around the document's, which says on its first line where it listens. */
const GO = `
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
)

func main() {
	mux := http.NewServeMux()
	mux.Handle("/reports/", RequireAssertion(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assertion := r.Context().Value(assertionKey{}).(*Assertion)
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		json.NewEncoder(w).Encode(map[string]string{"id": id, "access": assertion.Access})
	})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, mux))
}
`;

async function serveGo(): Promise<Api> {
  writeFileSync(fileOf('main.go'), GO);
  await promisify(execFile)('go', ['build', '-o', 'api', 'main.go', 'assertion.go'], {
    ...{ cwd: folder, env: { ...process.env, GO111MODULE: 'off', GOCACHE: fileOf('go-cache'), GOFLAGS: '' } },
  });
  return serveProgram(fileOf('api'), [], {});
}

type Framework = {
  readonly name: string;
  readonly algorithm: 'EdDSA' | 'HS256';
  readonly start: () => Promise<Api>;
};

const FRAMEWORKS: readonly Framework[] = [
  {
    ...{ name: 'express.mjs', algorithm: 'EdDSA' },
    start: async () => serve((await load<{ app: RequestListener }>('express.mjs')).app),
  },
  {
    ...{ name: 'fastify.mjs', algorithm: 'EdDSA' },
    start: async () => {
      type Fastify = { ready: () => Promise<void>; routing: RequestListener };
      const { app } = await load<{ app: Fastify }>('fastify.mjs');
      await app.ready();
      return serve(app.routing);
    },
  },
  {
    ...{ name: 'hono.mjs', algorithm: 'EdDSA' },
    start: async () => {
      type Hono = { fetch: Parameters<typeof getRequestListener>[0] };
      const { app } = await load<{ app: Hono }>('hono.mjs');
      const listener = getRequestListener(app.fetch);
      return serve((req, res) => void listener(req, res));
    },
  },
  ...(noPython ? [] : [{ name: 'assertion.py', algorithm: 'HS256', start: servePython } as const]),
  ...(noGo ? [] : [{ name: 'assertion.go', algorithm: 'EdDSA', start: serveGo } as const]),
];

const ROUTES = [
  'selling: { plans: [{ id: plain }] }',
  'routes:',
  '  - { method: GET, route_pattern: "/reports/*", amount: "0.10", plan_id: plain }',
].join('\n');

const configured = (algorithm: Framework['algorithm']): string =>
  [
    `charges: { secrets: [${SECRET}] }`,
    `assertion: { audience: "${AUDIENCE}", alg: ${algorithm}${algorithm === 'HS256' ? `, secret: "${SHARED}"` : ''} }`,
    ROUTES,
  ].join('\n');

const PROXY = { proxy: `public_url: "${ISSUER}"` };

/** Publishes the keys, as any process with the same secrets does. */
let publisher: PlanKit;
beforeAll(async () => {
  publisher = await startPlans(configured('EdDSA'), PROXY);
  process.env['TOLLGATE_KEYS'] = `${publisher.urlOf('admin')}/.well-known/jwks.json`;
  process.env['TOLLGATE_ISSUER'] = ISSUER;
  process.env['TOLLGATE_AUDIENCE'] = AUDIENCE;
});
afterAll(async () => {
  await publisher.close();
  rmSync(folder, { recursive: true, force: true });
});

type Claims = Readonly<Record<string, unknown>>;

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const hashed = (query: string): string => createHash('sha256').update(query).digest('base64url');

/** An assertion as Tollgate would write it, but for what a test changes. */
function write(key: AssertionKey, changes: Claims = {}, head: Claims = {}): string {
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    ...{
      iss: ISSUER,
      aud: AUDIENCE,
      iat,
      exp: iat + 60,
      jti: 'once',
      htm: 'GET',
      htu: '/reports/1',
      qsh: hashed('a=1'),
    },
    ...{ access: 'paid', ...changes },
  };
  const signed = `${encode({ typ: 'tollgate+jwt', alg: key.algorithm, kid: key.kid, ...head })}.${encode(claims)}`;
  return `${signed}.${key.sign(signed)}`;
}

/** A key that signs with HMAC and whatever else an attacker can read. */
function hmacKey(secret: string | Buffer, kid: string): AssertionKey {
  const sign = (input: string): string => createHmac('sha256', secret).update(input).digest('base64url');
  return { algorithm: 'HS256', kid, sign };
}

/** Asks the API around Tollgate. */
function around(api: Api, assertions: string | readonly string[], target = '/reports/1?a=1', method = 'GET') {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: number; readonly body: string }>();
  const headers = { [HEADER]: typeof assertions === 'string' ? assertions : [...assertions] };
  const { hostname: host, port } = new URL(api.url);
  const req = request({ host, port, path: target, method, headers, agent: false }, (res) => {
    let body = '';
    res.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    res.on('end', () => resolve({ status: res.statusCode ?? 0, body })).on('error', reject);
  });
  req.on('error', reject).end();
  return promise;
}

describe.each(FRAMEWORKS)('$name', ({ algorithm, start }) => {
  let api: Api;
  beforeAll(async () => {
    api = await start();
    // A compiler takes its time on a busy machine.
  }, 120_000);
  afterAll(() => api.close());
  const key = algorithm === 'EdDSA' ? createDerivedKey(SECRET) : createSharedKey(SHARED);

  test('behaviour: what Tollgate lets pass is served, whatever its path and query, and what it did not is not', async () => {
    const kit = await startPlans(configured(algorithm), { ...PROXY, behind: api.url });
    onTestFinished(() => kit.close());
    for (const target of [
      '/reports/1',
      '/reports/2?a=1&b=%2F',
      "/reports/3?q='x'&%22[]=|{}^`",
      '/reports/4?',
      '/reports/%7e5',
    ]) {
      const answer = await kit.pay(target);
      expect.soft([answer.status, JSON.parse(answer.body)], target).toMatchObject([200, { access: 'paid' }]);
    }
    expect((await kit.ask('/reports/1', { headers: { [HEADER]: write(key) } })).status).toBe(402);
    // No route sells POST here, so it carries none, whatever the client sends.
    expect(
      (await kit.ask('/reports/1?a=1', { method: 'POST', headers: { [HEADER]: write(key, { htm: 'POST' }) } })).status,
    ).toBe(401);
  });

  test('attack: around Tollgate, nothing is served but with a good assertion for this very request, once', async () => {
    const good = write(key);
    expect(await around(api, good)).toMatchObject({ status: 200 });
    const now = Math.floor(Date.now() / 1000);
    const { keys } = JSON.parse(publicKeySet([SECRET])) as { keys: [{ x: string; kid: string }] };
    const [{ x, kid }] = keys;
    const [head = '', body = '', signature = ''] = good.split('.');
    const forged: Readonly<Record<string, string | readonly string[]>> = {
      ...{
        nothing: [],
        empty: '',
        doubled: [good, good],
        'doubled, the second forged': [good, 'a.b.c'],
        listed: `${good}, ${good}`,
      },
      ...{
        'two parts': `${head}.${body}`,
        'without a signature': `${head}.${body}.`,
        'another signature': `${head}.${body}.${signature.slice(0, -8)}AAAAAAAA`,
      },
      'another body': `${head}.${encode({ access: 'paid' })}.${signature}`,
      expired: write(key, { iat: now - 61, exp: now - 1 }),
      'of another method': write(key, { htm: 'POST' }),
      'of another path': write(key, { htu: '/reports/2' }),
      'of another query': write(key, { qsh: hashed('a=2') }),
      'of another audience': write(key, { aud: 'https://other.internal' }),
      'of another issuer': write(key, { iss: 'https://other.example.com' }),
      'of another type': write(key, {}, { typ: 'JWT' }),
      'of a stranger’s secret': write(algorithm === 'EdDSA' ? createDerivedKey(STRANGE) : createSharedKey(STRANGE)),
      'of a stranger’s secret under our name': write({ ...createDerivedKey(STRANGE), algorithm, kid: key.kid }),
      none: write({ algorithm, kid: key.kid, sign: () => '' }, {}, { alg: 'none' }),
      'none, spelled': write({ algorithm, kid: key.kid, sign: () => '' }, {}, { alg: 'nOnE' }),
      'HMAC by the public key': write(hmacKey(Buffer.from(x, 'base64url'), kid)),
      'HMAC by the text of the public key': write(hmacKey(x, kid)),
      'HMAC by the published document': write(hmacKey(publicKeySet([SECRET]), kid)),
    };
    for (const [name, assertions] of Object.entries(forged))
      expect.soft(await around(api, assertions), name).toMatchObject({ status: 401 });
    for (const target of [
      '/reports/1',
      '/reports/1?',
      '/reports/1?a=2',
      '/reports/1?a=1&b=2',
      '/reports/2?a=1',
      '/reports/%31?a=1',
    ])
      expect.soft(await around(api, good, target), target).toMatchObject({ status: 401 });
    for (const method of ['POST', 'HEAD', 'DELETE'])
      expect.soft(await around(api, good, '/reports/1?a=1', method), method).toMatchObject({ status: 401 });
  });
});

describe(DOCUMENT, () => {
  test('behaviour: every program of the document is run here, those in Python and Go if they are installed', () => {
    const names = blocks.filter(({ language }) => language !== 'yaml').map(({ name }) => name);
    const run = [...new Set([...FRAMEWORKS.map(({ name }) => name), 'assertion.mjs', 'assertion.py', 'assertion.go'])];
    expect(names.toSorted()).toEqual(run.toSorted());
  });

  test('behaviour: what the document writes into a configuration is one', async () => {
    const yaml = blocks.filter(({ language }) => language === 'yaml');
    expect(yaml).toHaveLength(1);
    const kit = await startPlans(`${findBlock(blocks, yaml[0]?.name ?? '').text}\n${ROUTES}`);
    onTestFinished(() => kit.close());
    await kit.pay('/reports/1');
    expect(kit.told()['tollgate-assertion']).toBeDefined();
  });
});
