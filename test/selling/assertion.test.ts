// The signed statement to the upstream, as an upstream, an operator and an attacker meet it. Verifiers as people write them are
// run by test/docs/assertion.test.ts.
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startTollgate } from '../../src/compose.ts';
import { createDerivedKey, publicKeySet } from '../../src/domain/selling/assertion-key.ts';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { temporaryFolder } from '../support/process.ts';
import { API_KEY, readText, startPlans, type PlanKit } from './kit.ts';

const OLD = 'the-older-charge-secret-of-32-bytes!';
const NEW = 'the-newer-charge-secret-of-32-bytes!';
const SHARED = 'a-secret-that-the-upstream-knows-too';
const AUDIENCE = 'https://api.internal';
const KEYS = '/.well-known/jwks.json';
const ROUTES = [
  'routes:',
  '  - { method: GET, route_pattern: "/plain/*", amount: "0.10", plan_id: plain }',
  '  - { method: GET, route_pattern: "/paused", amount: "0.10", plan_id: plain, status: paused }',
  '  - { method: GET, route_pattern: "/none", amount: "0.10" }',
  '  - { method: GET, route_pattern: "/none/paused", amount: "0.10", status: paused }',
].join('\n');

type Written = { readonly secrets?: readonly string[]; readonly listener?: string; readonly assertion?: string };

function written({ secrets = [OLD], listener = 'admin', assertion = `audience: "${AUDIENCE}"` }: Written = {}): string {
  return [
    `charges: { secrets: [${secrets.join(', ')}] }`,
    `selling: { public_keys_listen: ${listener}, plans: [{ id: plain }] }`,
    ...(assertion === '' ? [] : [`assertion: { ${assertion} }`]),
    ROUTES,
  ].join('\n');
}

let kit: PlanKit;
beforeAll(async () => {
  kit = await startPlans(written(), {
    proxy: 'customer_header_trusted: true',
    handle: (req, res) => {
      req.resume().on('end', () => res.end(JSON.stringify(req.rawTrailers)));
    },
  });
});
afterAll(() => kit.close());

/** The assertion that the upstream saw last; undefined if there was none. */
function assertionSeen(): string | undefined {
  const value = kit.told()['tollgate-assertion'];
  return typeof value === 'string' ? value : undefined;
}

/** Reads an assertion as an upstream does that takes the keys of `listener`. */
async function verified(token: string | undefined, keys?: string): Promise<JWTPayload> {
  const text = keys ?? (await (await fetch(kit.urlOf('admin') + KEYS)).text());
  const set = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
  const options = { typ: 'tollgate+jwt', algorithms: ['EdDSA'], audience: AUDIENCE, currentDate: new Date(kit.now()) };
  return (await jwtVerify(token ?? '', set, options)).payload;
}

const hashed = (query: string): string => createHash('sha256').update(query).digest('base64url');

describe('an assertion', () => {
  test('behaviour: it says what the plain headers say, and which method, path and query were forwarded', async () => {
    await kit.reload(written());
    const paid = await kit.pay("/plain/%7ea?q='1'&b=%2F", { headers: { 'x-customer-id': 'ann' } });
    const told = kit.told();
    const claims = await verified(assertionSeen());
    expect([paid.status, kit.upstream.seen.at(-1)?.url]).toEqual([200, "/plain/~a?q='1'&b=%2F"]);
    expect(claims).toEqual({
      ...{ iss: 'tollgate', aud: AUDIENCE, iat: claims.iat, exp: (claims.iat ?? 0) + 60, jti: claims.jti },
      ...{ htm: 'GET', htu: '/plain/~a', qsh: hashed("q='1'&b=%2F") },
      ...{ access: 'paid', route_id: told['tollgate-route-id'], charge_id: told['tollgate-charge-id'] },
      ...{ payer: told['tollgate-payer'], network: told['tollgate-network'], amount: '0.10', currency: 'USD' },
      customer_id: 'ann',
    });
    expect(Math.abs((claims.iat ?? 0) * 1000 - kit.now())).toBeLessThan(30_000);
    expect(claims['network']).toBe('eip155:84532');
    expect(claims.jti).toMatch(/^[\w-]{24}$/);
  });

  test('behaviour: each request has one of its own, a ttl of its own, and the issuer is the public URL', async () => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", ttl: 5s, on: all` }));
    const ids = new Set<unknown>();
    for (let n = 0; n < 70; n++) {
      await kit.ask('/free');
      const { jti, iat = 0, exp = 0, qsh } = await verified(assertionSeen());
      ids.add(jti);
      expect([exp - iat, qsh]).toEqual([5, hashed('')]);
    }
    expect(ids.size).toBe(70);
    const public_ = await startPlans(written({ assertion: `audience: "${AUDIENCE}", on: all` }), {
      proxy: 'public_url: "https://api.example.com"',
    });
    onTestFinished(() => public_.close());
    await public_.ask('/free', { method: 'HEAD' });
    const claims = await verified(String(public_.told()['tollgate-assertion']));
    expect(claims).toMatchObject({ iss: 'https://api.example.com', htm: 'HEAD', htu: '/free', access: 'free' });
  });

  const said = async (path: string, method = 'GET'): Promise<unknown> => {
    if (path === '/none') await kit.pay(path);
    else await kit.ask(path, { method });
    const token = assertionSeen();
    return token === undefined ? undefined : (await verified(token))['access'];
  };
  test.each([
    ['plan', ['free', undefined, undefined, undefined, undefined]],
    ['protected', ['free', 'free', 'paid', 'free', undefined]],
    ['all', ['free', 'free', 'paid', 'free', 'free']],
  ])('behaviour: on %s asserts what it says', async (on, expected) => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", on: ${on}` }));
    const heard = [
      ...[await said('/paused'), await said('/none/paused'), await said('/none')],
      ...[await said('/plain/x', 'POST'), await said('/free')],
    ];
    expect(heard).toEqual(expected);
  });

  test('behaviour: it names the customer who need not pay, and says of a dry run that it is one', async () => {
    const until = new Date(kit.now() + 3_600_000).toISOString();
    const sold = (plan: string): string =>
      written().replace(
        'plans: [{ id: plain }]',
        `customers: [{ id: office, networks: [127.0.0.0/8] }], plans: [${plan}]`,
      );
    await kit.reload(sold('{ id: plain, customers: [office] }'));
    expect((await kit.ask('/plain/x')).status).toBe(200);
    expect(await verified(assertionSeen())).toMatchObject({ access: 'customer', customer_id: 'office' });
    await kit.reload(sold(`{ id: plain, observe: { until: "${until}" } }`));
    expect((await kit.ask('/plain/x')).status).toBe(200);
    const claims = await verified(assertionSeen());
    expect([claims['access'], claims['customer_id'], claims['charge_id']]).toEqual(['observed', undefined, undefined]);
  });

  test('behaviour: left out, nothing is signed and nothing is published', async () => {
    await kit.reload(written({ assertion: '' }));
    expect((await kit.pay('/plain/x')).status).toBe(200);
    expect([kit.told()['tollgate-access'], assertionSeen()]).toEqual(['paid', undefined]);
    for (const listener of ['admin', 'registry']) expect((await fetch(kit.urlOf(listener) + KEYS)).status).toBe(404);
  });

  test('behaviour: a handshake of a WebSocket carries one', async () => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", on: all` }));
    const seen = new Promise<string>((resolve) => {
      kit.upstream.server.once('upgrade', (req, socket) => {
        resolve(String(req.headers['tollgate-assertion']));
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      });
    });
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
    const asked = kit.ask('/socket?x', { headers: { ...headers, 'sec-websocket-version': '13' } });
    expect(await verified(await seen)).toMatchObject({ htm: 'GET', htu: '/socket', qsh: hashed('x') });
    expect((await asked).status).toBe(403);
  });

  test('behaviour: HS256 signs with the secret that the upstream knows, and nothing is published', async () => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", on: all, alg: HS256, secret: "${SHARED}"` }));
    await kit.ask('/free?a=1');
    const token = assertionSeen() ?? '';
    const { payload, protectedHeader } = await jwtVerify(token, Buffer.from(SHARED), { algorithms: ['HS256'] });
    expect(protectedHeader).toEqual({ typ: 'tollgate+jwt', alg: 'HS256', kid: expect.stringMatching(/^[\w-]{22}$/) });
    expect(payload).toMatchObject({ htm: 'GET', htu: '/free', qsh: hashed('a=1') });
    expect((await fetch(kit.urlOf('admin') + KEYS)).status).toBe(404);
    expect(JSON.stringify(kit.lines)).not.toContain(SHARED);
  });

  test('behaviour: the log says at a start and a reload what is asserted, for whom, with which key', async () => {
    await kit.reload(written({ secrets: [NEW], listener: 'registry' }));
    expect(kit.lines.findLast(({ msg }) => msg === 'requests are asserted to the upstream')).toMatchObject({
      ...{ audience: AUDIENCE, on: 'plan', alg: 'EdDSA', ttl_s: 60, kid: createDerivedKey(NEW).kid },
      public_keys: `registry ${KEYS}`,
    });
    const text = JSON.stringify(kit.lines);
    expect([text.includes(OLD), text.includes(NEW)]).toEqual([false, false]);
  });
});

describe('the public keys', () => {
  test('behaviour: the listener named serves them without credentials, to be kept for a minute, and the other one does not', async () => {
    for (const [listener, other] of [
      ['admin', 'registry'],
      ['registry', 'admin'],
    ] as const) {
      await kit.reload(written({ secrets: [NEW, OLD, NEW], listener }));
      const answer = await fetch(`${kit.urlOf(listener)}${KEYS}`);
      expect([answer.status, answer.headers.get('cache-control'), answer.headers.get('content-type')]).toEqual([
        ...[200, 'max-age=60', 'application/json'],
      ]);
      const { keys } = (await answer.json()) as { keys: object[] };
      const shape = { kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: 'EdDSA' };
      expect(keys).toEqual(
        [NEW, OLD].map((secret) => ({
          ...{ ...shape, kid: createDerivedKey(secret).kid },
          x: expect.stringMatching(/^[\w-]{43}$/),
        })),
      );
      const head = await fetch(`${kit.urlOf(listener)}${KEYS}`, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
      expect((await fetch(kit.urlOf(other) + KEYS)).status).toBe(404);
      expect((await fetch(kit.urlOf(listener) + KEYS, { method: 'DELETE' })).status).not.toBe(200);
    }
  });

  test('behaviour: the port of the proxy never serves them: the path is the upstream’s', async () => {
    await kit.reload(written());
    const before = kit.upstream.seen.length;
    const answer = await kit.ask(KEYS);
    expect([answer.body, kit.upstream.seen.length]).toEqual(['[]', before + 1]);
  });

  test('behaviour: a key comes from its secret alone, the same in every process and every version', () => {
    expect(JSON.parse(publicKeySet(['an-example-of-a-secret-of-32-bytes!!']))).toEqual({
      keys: [
        {
          ...{ kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: 'EdDSA' },
          x: 'i5wT6_UCwVjQr8XQBTfZ3Zl7zM8HFrTeeK9q-ML-AOs',
          kid: 'LTMYqBb8_ENhN6adlDlLOxB_UCOyFVqEsiXNSW2dtYw',
        },
      ],
    });
  });

  test('behaviour: a sidecar signs with the same key, and serves it beside what it relays', async () => {
    await kit.reload(written());
    const files = temporaryFolder();
    const config = readText(
      [
        `proxy: { listen: "127.0.0.1:0", upstream: "${kit.upstream.url}", timeouts: { drain_delay: 0s } }`,
        `sync: { registry_url: "${kit.urlOf('registry')}", api_key: ${API_KEY}, listen: "127.0.0.1:0" }`,
        'admin: { listen: "127.0.0.1:0" }',
        `charges: { secrets: [${OLD}] }`,
        `selling: { public_keys_listen: registry, plans: [{ id: plain }] }`,
        `assertion: { audience: "${AUDIENCE}" }`,
        `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["http://127.0.0.1:1"] }]`,
      ].join('\n'),
      files.folder,
    );
    const log = createLog('error', () => undefined, systemClock.now);
    const sidecar = await startTollgate(config, { log, clock: systemClock, random: createRandom(), version: '0.0.0' });
    onTestFinished(async () => {
      await sidecar.stop(false);
      files.remove();
    });
    const urlOf = (listener: string): string => `http://127.0.0.1:${sidecar.addresses[listener]?.port}`;
    const keys = await (await fetch(urlOf('sync') + KEYS)).text();
    expect(keys).toBe(await (await fetch(kit.urlOf('admin') + KEYS)).text());
    expect((await fetch(`${urlOf('proxy')}/paused`)).status).toBe(200);
    expect(await verified(assertionSeen())).toMatchObject({ access: 'free', htu: '/paused' });
    expect((await fetch(`${urlOf('sync')}/v1/health`)).status).toBe(200);
  });
});

describe('rotation', () => {
  test('attack: an assertion signed with a secret that was taken out is good until then, and not any more', async () => {
    const on = `audience: "${AUDIENCE}", on: all`;
    const sign = async (secrets: readonly string[]): Promise<string> => {
      await kit.reload(written({ secrets, assertion: on }));
      await kit.ask('/free');
      return assertionSeen() ?? '';
    };
    const kidOf = (token: string): unknown => decodeProtectedHeader(token).kid;
    const old = await sign([OLD]);
    const announced = await sign([OLD, NEW]);
    const fresh = await sign([NEW, OLD]);
    expect([kidOf(old), kidOf(announced), kidOf(fresh)]).toEqual(
      [OLD, OLD, NEW].map((secret) => createDerivedKey(secret).kid),
    );
    for (const token of [old, announced, fresh]) await verified(token);
    await sign([NEW]);
    await verified(fresh);
    await expect(verified(old)).rejects.toThrow('no applicable key');
    await expect(verified(announced)).rejects.toThrow('no applicable key');
  });
});

describe('a client that sends an assertion', () => {
  const SPELLINGS = [
    ...['Tollgate-Assertion', 'tollgate-assertion', 'TOLLGATE-ASSERTION', 'tOLLGATE-aSSERTION', 'Tollgate_Assertion'],
    ...['Tollgate-assertion', 'TOLLGATE_ASSERTION', 'Tollgate.Assertion', 'Tollgate--Assertion', 'Tollgate-Assertion-'],
    ...['Tollgate~Assertion', 'Tollgate|Assertion', 'Tollgateassertion', 'X-Tollgate-Assertion'],
  ];
  const namesSeen = (): string[] =>
    (kit.upstream.seen.at(-1)?.rawHeaders ?? []).filter(
      (text, at) => at % 2 === 0 && /tollgate.*assertion/i.test(text),
    );

  test.each([
    ['with assertions', `audience: "${AUDIENCE}", on: all`, ['Tollgate-Assertion']],
    ['without them', '', []],
  ])('attack: in no spelling does a forged assertion reach the upstream, %s', async (_, assertion, expected) => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", on: all` }));
    await kit.ask('/free');
    const forged = assertionSeen() ?? '';
    await kit.reload(written({ assertion }));
    for (const name of SPELLINGS) {
      await kit.ask('/free', { headers: { [name]: forged } });
      // A name of another maker is no name of ours.
      expect(namesSeen(), name).toEqual(name.startsWith('X-') ? [name, ...expected] : expected);
      expect(assertionSeen(), name).not.toBe(forged);
    }
    await kit.ask('/free', { headers: { 'Tollgate-Assertion': [forged, forged] } });
    expect(namesSeen()).toEqual(expected);
    await kit.ask('/free', { headers: { 'Tollgate-Assertion': forged, connection: 'Tollgate-Assertion, close' } });
    expect(namesSeen()).toEqual(expected);
  });

  test('attack: a trailer does not carry one to the upstream', async () => {
    await kit.reload(written({ assertion: `audience: "${AUDIENCE}", on: all` }));
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const req = request(`${kit.urlOf('proxy')}/free`, { method: 'POST', headers: { trailer: 'Tollgate-Assertion' } });
    req.on('error', reject).on('response', (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      res.on('end', () => resolve(text));
    });
    req.write('x');
    req.addTrailers({ 'Tollgate-Assertion': 'forged' });
    req.end();
    expect(await promise).toBe('[]');
    expect(namesSeen()).toEqual(['Tollgate-Assertion']);
  });
});
