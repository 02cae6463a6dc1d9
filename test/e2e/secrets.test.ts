// No secret comes out: not in an answer of the proxy, the registry or the admin listener, not in the output of a command,
// not in a message about a configuration that is wrong. Everything secret here holds one word, which is looked for in all
// of it; what processes log is watched beside (test/support/watch-canaries.ts).
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from '../cli/support.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const WORD = 'CANARY';
const secret = (name: string): string => `${WORD}-${name}-0123456789-abcdefghijklmnop`;
const files = temporaryFolder();
const running: TollgateProcess[] = [];
const closers: (() => unknown)[] = [];
let upstream: Upstream;
let registry: TollgateProcess;
let sidecar: TollgateProcess;
let config = '';

/** A facilitator and node that tells everything it was told, as a careless one may. */
async function startEcho(): Promise<string> {
  const server = createServer((req, res) => {
    const told = JSON.stringify({ url: req.url, headers: req.headers }).replaceAll('"', "'");
    if (req.url?.includes('/verify')) {
      res.setHeader('EXTENSION-RESPONSES', Buffer.from(told).toString('base64'));
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify({ isValid: false, invalidReason: told, invalidMessage: told, payer: told }));
      return;
    }
    res.writeHead(500, { 'X-Told': told }).end(told);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  upstream = await startUpstream();
  const echo = await startEcho();
  const receivers = [
    'receivers:',
    `  - { id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", rpc_url: "${echo}/v2/${secret('rpc')}",`,
    `      facilitators: [{ url: "${echo}/f", headers: { Authorization: "Bearer ${secret('facilitator')}", X-API-Key: ${secret('facilitator-key')} } }] }`,
    `charges: { secrets: ["${secret('charge-1')}", "${secret('charge-2')}"] }`,
    'x402: { v1: true }',
    'log: { level: debug }',
  ];
  config = files.write(
    'registry.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 1s } }`,
      'registry:',
      '  listen: 127.0.0.1:0',
      `  jwt: { secret: "${secret('jwt')}", issuer: tollgate, audience: dashboard }`,
      `  api_keys: [{ name: side, key: "${secret('api-key')}", scopes: [sdk, ledger] }]`,
      'admin: { listen: 127.0.0.1:0 }',
      'routes: [{ method: GET, route_pattern: "/paid", amount: "0.10" }]',
      ...receivers,
    ].join('\n'),
  );
  registry = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  running.push(registry);
  const side = files.write(
    'sidecar.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 1s } }`,
      `sync: { registry_url: "${registry.url('registry')}", api_key: "${secret('api-key')}", snapshot_file: side/routes.json, listen: 127.0.0.1:0 }`,
      'admin: { listen: 127.0.0.1:0 }',
      ...receivers,
    ].join('\n'),
  );
  sidecar = await startProcess({ args: ['serve', '-c', side], listeners: ['proxy', 'sync', 'admin'] });
  running.push(sidecar);
  // It listens before its first set of routes is there.
  await sidecar.line(({ msg }) => msg === 'routes synced');
});
afterAll(async () => {
  for (const one of running) await one.kill();
  for (const close of closers) await close();
  await upstream?.close();
  files.remove();
});

async function answer(url: string, init: RequestInit = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`;
  return { status: response.status, text };
}

/** A payment that is well formed, for what the 402 asks: it gets as far as the facilitator. */
async function payment(url: string): Promise<string> {
  const unpaid = await fetch(url);
  await unpaid.arrayBuffer();
  const asked = JSON.parse(Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString()) as {
    accepts: [{ amount: string; payTo: string }];
  };
  const [accepted] = asked.accepts;
  const now = Math.floor(Date.now() / 1000);
  const authorization = {
    from: '0x2222222222222222222222222222222222222222',
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - 60),
    validBefore: String(now + 250),
    nonce: `0x${'7'.repeat(64)}`,
  };
  const signature = `0x${Buffer.from(`${WORD} in a signature of sixty-five bytes, hex as they are. 0123456`).toString('hex')}1b`;
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload: { signature, authorization } })).toString(
    'base64',
  );
}

describe('answers', () => {
  test('attack: no answer of the proxy holds a secret, whatever was sent', async () => {
    const statuses: number[] = [];
    for (const process of [registry, sidecar]) {
      const url = process.url('proxy');
      const paying = await payment(`${url}/paid`);
      const credentials = { Authorization: `Bearer ${secret('client')}`, Cookie: `sid=${secret('cookie')}` };
      for (const [target, headers] of [
        [`/paid?token=${secret('query')}`, credentials],
        ['/paid', { ...credentials, 'PAYMENT-SIGNATURE': paying }],
        ['/paid', { ...credentials, 'PAYMENT-SIGNATURE': secret('junk-payment') }],
        ['/paid', { 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify({ [secret('member')]: 1 })).toString('base64') }],
        ['/paid', { 'X-PAYMENT': secret('junk-payment') }],
        // The path of a refused request is logged, its query never.
        [`/%zz?${secret('query')}`, credentials],
        [`/paid/${'x'.repeat(9000)}?${secret('query')}`, credentials],
      ] as const) {
        const { status, text } = await answer(`${url}${target}`, { headers });
        expect(text).not.toContain(WORD);
        statuses.push(status);
      }
    }
    expect(statuses.toSorted((a, b) => a - b)).toEqual(expect.arrayContaining([400, 402, 414]));
  });

  test('attack: no answer of a registry or a sidecar to wrong credentials and wrong bodies holds a secret', async () => {
    for (const base of [registry.url('registry'), sidecar.url('sync')]) {
      for (const path of [
        '/v1/billing/protected-routes',
        '/v1/protected-routes/routes/register',
        '/v1/ledger/claims',
        '/v1/x',
      ]) {
        for (const credential of [
          secret('api-key'),
          secret('jwt'),
          secret('guess'),
          `${secret('a')}.${secret('b')}.${secret('c')}`,
        ]) {
          const { text } = await answer(`${base}${path}?key=${secret('query')}`, {
            method: 'POST',
            headers: { Authorization: `Bearer ${credential}`, 'Content-Type': 'application/json' },
            body: '{"route_pattern":1}',
          });
          expect(text).not.toContain(WORD);
        }
      }
    }
  });

  test('attack: no answer of the admin listener holds a secret', async () => {
    for (const process of [registry, sidecar]) {
      for (const path of ['/metrics', '/readyz', '/readyz?verbose', '/livez?verbose', '/', '/debug', '/env']) {
        const { text } = await answer(`${process.url('admin')}${path}`);
        expect(text).not.toContain(WORD);
      }
    }
  });
});

describe('commands', () => {
  const run = async (argv: readonly string[]): Promise<[code: number, text: string]> => {
    const io = fakeIo({ folder: files.folder });
    const code = await runCommandLine(argv, COMMANDS, io);
    return [code, `${io.stdout()}\n${io.stderr()}`];
  };

  test.each<[words: string, code: number, shows: string]>([
    ['check', 0, 'ok'],
    ['check --json', 0, '"ok":true'],
    ['check --online', 69, 'receiver default'],
    ['check --online --json', 69, '"online":['],
    ['keys list', 0, 'side'],
    ['keys list --json', 0, '"name":"side"'],
    ['charges list', 0, ''],
    ['charges list --json', 0, '[]'],
    ['charges show x', 1, ''],
    ['match GET /paid --json', 0, '"matched":true'],
    ['migrate', 0, 'up to date'],
    ['healthcheck', 64, 'admin.listen'],
    ['keys revoke side', 1, 'configuration'],
  ])('attack: %s prints no secret', async (words, code, shows) => {
    const [ended, text] = await run([...words.split(' '), '-c', config]);
    expect([ended, text]).toEqual([code, expect.stringContaining(shows)]);
    expect(text).not.toContain(WORD);
  });

  test('attack: no command says a secret of a configuration that is wrong', async () => {
    const wrong = files.write(
      'wrong.yaml',
      [
        `proxy: { listen: "${WORD}:x", upstream: "http://user:${WORD}-password@127.0.0.1:1/${WORD}" }`,
        'registry:',
        `  jwt: { secret: "${WORD}", jwks_url: "http://user:${WORD}@id.example.com/" }`,
        `  api_keys: [{ name: a, key: "${WORD} with a space in it" }, { name: b, key: ${WORD}-2 }, ${WORD}-3]`,
        `charges: { secrets: "${WORD}", quote_ttl: 1s }`,
        `sync: { registry_url: "http://${WORD}:${WORD}@r.example.com", api_key: [${WORD}] }`,
        'receivers:',
        `  - { id: default, rpc_url: "${WORD}://x", facilitators: [{ url: "https://u:${WORD}@f.example.com", headers: { "X Key": "${WORD}", Authorization: [${WORD}] } }] }`,
      ].join('\n'),
    );
    for (const argv of [['check'], ['check', '--json'], ['serve']]) {
      const [, text] = await run([...argv, '-c', wrong]);
      expect(text).toContain('jwt');
      // An address that cannot be one is shown, because it must be found again: it is no secret.
      expect(text.replaceAll(`${WORD}:x`, '')).not.toContain(WORD);
    }
  });
});

test('attack: a reload of a wrong configuration tells what is wrong and no secret', async () => {
  files.write(
    'registry.yaml',
    `registry: { jwt: { secret: "${WORD}" }, api_keys: [{ name: a, key: "${WORD} x" }] }\ncharges: { secrets: [${WORD}] }\n`,
  );
  registry.signal('SIGHUP');
  await registry.line(({ msg }) => msg === 'the configuration was not reloaded');
});

test('attack: no secret was logged in all this', async () => {
  for (const process of running) process.signal('SIGTERM');
  for (const process of running) await process.exited;
  for (const { lines, stderr } of running) {
    expect(lines.length).toBeGreaterThan(5);
    for (const line of lines) expect(JSON.stringify(line)).not.toContain(WORD);
    expect(stderr()).not.toContain(WORD);
  }
});
