// Customers who need not pay, by keys, tokens, networks and the upstream's own sign-in; and free requests and quotas, which are
// counted in a real store. What a peer's paywall leaks by is an attack here.
import { createHash, createHmac, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, request, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { recogniseTokens } from '../../src/gateway/selling/customers/tokens.ts';
import { systemClock } from '../../src/host/clock.ts';
import { temporaryFolder } from '../support/process.ts';
import { buyPass, tokenOf } from './bought-passes.ts';
import { codeOf, seriesOf, startPlans, type Answer, type PlanKit } from './kit.ts';

const files = temporaryFolder();
const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');
const KEY = 'a-key-of-a-partner-0001';
const NAMED = 'a-key-of-a-partner-0002';
const METERED = 'a-key-with-a-quota-00001';
const keysFile = files.write('keys.txt', `# partners\n${digestOf(KEY)}\n${digestOf(NAMED)}  acme\n`);
const quotaFile = files.write('quota.txt', `${digestOf(METERED)} metered\n`);
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig' };
const SECRET = 'a-secret-of-customers-tokens-32-bytes';

let kit: PlanKit;
let keySet: Server;
let keySetIsAway = true;
let keySetCalls = 0;

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** A token as the issuer signs it, or `by` in its place. */
function token(claims: object = {}, header: object = {}, by?: (input: string) => Buffer): string {
  const base = {
    iss: 'https://id.example.com',
    aud: 'api',
    sub: 'ann',
    plan: 'pro',
    exp: Math.floor(kit.now() / 1000) + 600,
  };
  const input = `${encode({ alg: 'EdDSA', typ: 'JWT', kid: 'k1', ...header })}.${encode({ ...base, ...claims })}`;
  return `${input}.${(by?.(input) ?? signBytes(null, Buffer.from(input), privateKey)).toString('base64url')}`;
}
const bearer = (value: string): { headers: Record<string, string> } => ({
  headers: { Authorization: `Bearer ${value}` },
});
const reasonOf = (answer: Answer): unknown => [answer.status, answer.headers['tollgate-reason']];
/** Ends the responses that wait at the upstream. */
const slow: (() => void)[] = [];

beforeAll(async () => {
  keySet = createServer((_req, res) => {
    keySetCalls++;
    if (keySetIsAway) res.destroy();
    else res.end(JSON.stringify({ keys: [jwk] }));
  });
  await new Promise<void>((resolve) => {
    keySet.listen(0, '127.0.0.1', resolve);
  });
  const jwks = `http://127.0.0.1:${(keySet.address() as AddressInfo).port}/jwks`;
  const handle: RequestListener = (req, res) => {
    req.resume();
    const access = req.headers['tollgate-access'];
    if (req.url?.startsWith('/own') === true && req.headers['x-own'] !== 'right' && access === 'customer') {
      res.writeHead(401, { 'www-authenticate': 'Own realm="x"' }).end('who are you');
    } else if (req.url?.endsWith('held') === true) {
      // Its client leaves.
    } else if (req.url?.endsWith('slow') === true) slow.push(() => res.end('served'));
    else if (req.url?.endsWith('stream') === true) {
      res.write('served');
      slow.push(() => res.end());
    } else if (req.url?.endsWith('missing') === true) res.writeHead(404).end('nothing here');
    else res.end('served');
  };
  kit = await startPlans(
    [
      'selling:',
      '  plans:',
      '    - { id: keys, customers: [partners] }',
      '    - { id: tokens, customers: [staff, shared] }',
      '    - { id: office, customers: [office] }',
      '    - { id: own, customers: [own] }',
      '    - { id: own-free, customers: [own], free: { requests: 2, window: day } }',
      '    - { id: own-pass, customers: [own], cookie: true, passes: [{ id: minute, amount: "0.90", seconds: 60 }] }',
      '    - { id: metered, customers: [metered], free: { requests: 1, window: hour } }',
      '    - { id: free, free: { requests: 2, window: hour, identities: 3 } }',
      '    - { id: by-customer, free: { requests: 1, window: month, by: customer } }',
      '  customers:',
      `    - { id: partners, header: X-Api-Key, keys_file: ${keysFile} }`,
      `    - { id: staff, header: Authorization, jwt: { issuer: "https://id.example.com", audience: api, jwks_url: "${jwks}", require: { plan: [pro, team], org.kind: [paying] }, name: sub } }`,
      `    - { id: shared, header: X-Token, jwt: { issuer: "https://id.example.com", audience: api, secret: ${SECRET} } }`,
      '    - { id: office, networks: [10.1.0.0/16, "fd00:1::/32"] }',
      '    - { id: own, header: X-Own, ask: { statuses: [401] } }',
      `    - { id: metered, header: X-Api-Key, keys_file: ${quotaFile}, quota: { requests: 2, window: day } }`,
      'routes:',
      ...['keys', 'tokens', 'office', 'own', 'own-free', 'own-pass', 'metered', 'free', 'by-customer'].map(
        (id) => `  - { method: GET, route_pattern: "/${id}/*", amount: "0.10", plan_id: ${id} }`,
      ),
      ...['own-free', 'own-pass', 'free', 'metered'].map(
        (id) => `  - { method: POST, route_pattern: "/${id}/*", amount: "0.10", plan_id: ${id} }`,
      ),
      '  - { method: GET, route_pattern: /named, amount: "0.10", plan_id: keys, allow_anonymous: false }',
    ].join('\n'),
    {
      handle,
      proxy: 'trusted_proxies: [127.0.0.1], customer_header_trusted: true, cors_origins: ["https://app.example.com"]',
    },
  );
});
afterAll(async () => {
  await kit.close();
  keySet.close();
  files.remove();
});

describe('keys', () => {
  test('behaviour: a key whose digest stands in the file passes free, its credential goes upstream as it came', async () => {
    for (const [value, name] of [
      [KEY, 'partners'],
      [`Bearer ${NAMED}`, 'acme'],
    ] as const) {
      const answer = await kit.ask('/keys/a', { headers: { 'X-Api-Key': value } });
      expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'private, no-store']);
      expect(kit.told()).toMatchObject({
        'tollgate-access': 'customer',
        'tollgate-customer-id': name,
        'x-api-key': value,
      });
    }
    expect(kit.lines.findLast(({ msg }) => msg === 'request')).toMatchObject({
      outcome: 'customer',
      customer_id: 'acme',
    });
    expect((await kit.ask('/named', { headers: { 'X-Api-Key': KEY } })).status).toBe(200);
    expect(seriesOf(await kit.metrics(), 'tollgate_customers_total', { customers: 'partners', result: 'known' })).toBe(
      '3',
    );
  });

  test('attack: made-up, doubled, short and spelled keys pay as anybody does, and are told so', async () => {
    for (const headers of [
      { 'X-Api-Key': 'made-up-key-of-nobody-1' },
      { 'X-Api-Key': [KEY, KEY] },
      { 'X-Api-Key': 'short' },
      { 'X-Api-Key': `Bearer Bearer ${KEY}` },
      { 'X-Api-Key': digestOf(KEY) },
    ])
      expect([headers, reasonOf(await kit.ask('/keys/a', { headers }))]).toEqual([headers, [402, 'customer_unknown']]);
    expect(reasonOf(await kit.ask(`/keys/a?X-Api-Key=${KEY}`))).toEqual([402, 'payment_required']);
    expect(reasonOf(await kit.ask('/keys/a', { headers: { X_Api_Key: KEY } }))).toEqual([402, 'payment_required']);
    expect(codeOf(await kit.ask('/named'))).toBe('customer_required');
  });

  test('attack: a right key passes however many wrong ones its address has tried, and a payment stays possible', async () => {
    for (let n = 0; n < 70; n++)
      await kit.ask('/keys/a', { headers: { 'X-Api-Key': `wrong-key-number-${n}-of-many` } });
    expect((await kit.ask('/keys/a', { headers: { 'X-Api-Key': KEY } })).status).toBe(200);
    expect((await kit.pay('/keys/a', { headers: { 'X-Api-Key': 'wrong-key-of-a-payer-1' } })).status).toBe(200);
    expect(kit.told()).toMatchObject({ 'tollgate-access': 'paid' });
  });

  test('attack: a customer who carries a payment as well is not charged: it is not even read', async () => {
    const before = kit.facilitated.length;
    const headers = { 'X-Api-Key': KEY, 'payment-signature': ['nonsense', 'twice'] };
    expect((await kit.ask('/keys/a', { headers })).status).toBe(200);
    expect([kit.facilitated.length, kit.told()['payment-signature']]).toEqual([before, undefined]);
  });

  test('attack: a header that says who a customer is makes none', async () => {
    for (const headers of [
      { 'X-Customer-Id': 'acme' },
      { 'Tollgate-Customer-Id': 'acme' },
      { 'Tollgate-Access': 'customer' },
    ])
      expect((await kit.ask('/keys/a', { headers })).status).toBe(402);
  });

  test('behaviour: a changed file is in force within a second; a wrong one changes nothing', async () => {
    const late = 'a-key-that-came-later-1';
    const status = async (key: string): Promise<number> =>
      (await kit.ask('/keys/a', { headers: { 'X-Api-Key': key } })).status;
    writeFileSync(keysFile, `${digestOf(NAMED)} acme\n${digestOf(late)}\n`);
    await vi.waitFor(async () => expect([await status(late), await status(KEY)]).toEqual([200, 402]));
    writeFileSync(keysFile, 'not a digest\n');
    await vi.waitFor(() => expect(kit.lines.find(({ msg }) => String(msg).includes('cannot be used'))).toBeDefined());
    expect(await status(late)).toBe(200);
  });
});

describe('tokens', () => {
  const claims = { org: { kind: 'paying' } };

  test('behaviour: while no key set could ever be read a token is 503, never a 402; nobody else notices', async () => {
    // The wrong keys of before are forgotten.
    kit.pass(61_000);
    expect(codeOf(await kit.ask('/tokens/a', bearer(token(claims))))).toBe('customers_unavailable');
    expect((await kit.ask('/tokens/a')).status).toBe(402);
    expect((await kit.ask('/tokens/a', { headers: { authorization: 'Basic YTpi' } })).status).toBe(402);
    keySetIsAway = false;
    kit.pass(31_000);
    expect((await kit.ask('/tokens/a', bearer(token(claims)))).status).toBe(200);
    expect(kit.told()).toMatchObject({ 'tollgate-customer-id': 'ann', 'tollgate-access': 'customer' });
    keySetIsAway = true;
    kit.pass(3_600_000);
    expect((await kit.ask('/tokens/a', bearer(token({ ...claims, sub: 'bob' })))).status).toBe(200);
  });

  test('attack: other algorithms, issuers, audiences, keys, claims and times', async () => {
    kit.pass(61_000);
    const hmac = (secret: string) => (input: string) =>
      createHash('sha256')
        .update(secret + input)
        .digest();
    const other = generateKeyPairSync('ed25519').privateKey;
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    const tokens: Readonly<Record<string, string>> = {
      none: token(claims, { alg: 'none' }, () => Buffer.alloc(1)),
      confused: token(claims, { alg: 'HS256' }, (input) => createHmac('sha256', pem).update(input).digest()),
      forged: token(claims, {}, (input) => signBytes(null, Buffer.from(input), other)),
      hashed: token(claims, {}, hmac('x')),
      issuer: token({ ...claims, iss: 'https://id.example.com/' }),
      audience: token({ ...claims, aud: 'other' }),
      unlimited: token({ ...claims, exp: undefined }),
      early: token({ ...claims, nbf: Math.floor(kit.now() / 1000) + 300 }),
      plan: token({ ...claims, plan: 'trial' }),
      nested: token({ org: { kind: 'free' } }),
      flat: token({ org: 'paying' }),
      nameless: token({ ...claims, sub: 'two words' }),
      jwk: token(claims, { jwk, kid: undefined, crit: ['b64'] }),
      large: token({ ...claims, pad: 'x'.repeat(9000) }),
    };
    for (const [name, value] of Object.entries(tokens))
      expect([name, reasonOf(await kit.ask('/tokens/a', bearer(value)))]).toEqual([name, [402, 'customer_unknown']]);
    const late = token({ ...claims, exp: Math.floor(kit.now() / 1000) - 120 });
    expect(reasonOf(await kit.ask('/tokens/a', bearer(late)))).toEqual([402, 'customer_expired']);
    const shared = token({}, { alg: 'HS256', kid: undefined }, (input) =>
      createHmac('sha256', SECRET).update(input).digest(),
    );
    expect((await kit.ask('/tokens/a', { headers: { 'X-Token': shared } })).status).toBe(200);
    expect(reasonOf(await kit.ask('/tokens/a', bearer(shared)))).toEqual([402, 'customer_unknown']);
  });

  test('attack: a right token passes however many made-up ones its address has shown, and these cost no call of the key set each', async () => {
    keySetIsAway = false;
    kit.pass(61_000);
    const calls = keySetCalls;
    for (let n = 0; n < 80; n++) await kit.ask('/tokens/a', bearer(token({ ...claims, n }, { kid: `made-up-${n}` })));
    expect(keySetCalls - calls).toBeLessThanOrEqual(1);
    expect((await kit.ask('/tokens/a', bearer(token({ ...claims, fresh: 1 })))).status).toBe(200);
    expect(reasonOf(await kit.ask('/tokens/a', bearer(token({ ...claims, n: 80 }, { kid: 'made-up' }))))).toEqual([
      ...[402, 'customer_unknown'],
    ]);
  });

  test('attack: what a client that showed too much shows next waits for its turn, and is nobody’s if too many wait', async () => {
    const key = { kind: 'secret', secret: SECRET } as const;
    const proof = {
      kind: 'jwt',
      issuer: 'https://id.example.com',
      audience: 'api',
      key,
      require: {},
      name: undefined,
    } as const;
    const shared = token({}, { alg: 'HS256', kid: undefined }, (input) =>
      createHmac('sha256', SECRET).update(input).digest(),
    );
    let isFull = true;
    let turns = 0;
    const recognise = recogniseTokens('authorization', 'staff', proof, {
      keySet: () => {
        throw new Error('a secret needs no key set');
      },
      ...{ clock: { ...systemClock, now: kit.now }, isOver: () => true },
      slowly: (work) => (isFull ? undefined : (turns++, work())),
    });
    const request = { req: { rawHeaders: ['Authorization', `Bearer ${shared}`] } } as never;
    expect(await recognise(request)).toEqual({ kind: 'refused', because: 'customer_unknown' });
    isFull = false;
    for (let times = 0; times < 2; times++) expect(await recognise(request)).toEqual({ kind: 'known', name: 'staff' });
    // A verdict that is kept needs no turn.
    expect(turns).toBe(1);
  });
});

describe('networks', () => {
  test('behaviour: a client of a network passes, by the address that a trusted proxy names', async () => {
    for (const [from, status] of [
      ['10.1.2.3', 200],
      ['10.2.0.1', 402],
      ['fd00:1:2::3', 200],
      ['fd00:2::1', 402],
    ] as const)
      expect([from, (await kit.ask('/office/a', { headers: { 'X-Forwarded-For': from } })).status]).toEqual([
        from,
        status,
      ]);
    // What stands before the last address is the client's own word.
    expect((await kit.ask('/office/a', { headers: { 'X-Forwarded-For': '10.1.2.3, 192.0.2.1' } })).status).toBe(402);
  });
});

describe('the upstream’s own sign-in', () => {
  test('behaviour: what the upstream knows is delivered, its no becomes a 402 with a new quote', async () => {
    expect((await kit.ask('/own/a', { headers: { 'X-Own': 'right' } })).body).toBe('served');
    expect(kit.told()).toMatchObject({ 'tollgate-access': 'customer', 'x-own': 'right' });
    const refused = await kit.ask('/own/a', { headers: { 'X-Own': 'wrong' } });
    expect([...(reasonOf(refused) as unknown[]), refused.headers['www-authenticate']]).toEqual([
      402,
      'customer_unknown',
      undefined,
    ]);
    expect(refused.headers['payment-required']).toBeDefined();
    expect(refused.body).not.toContain('who are you');
    expect(kit.lines.findLast(({ msg }) => msg === 'request')).toMatchObject({
      outcome: 'payment_required',
      status: 402,
    });
  });

  test('attack: no credential, an empty one, two, or a payment beside it: the upstream is not asked unpaid', async () => {
    const served = kit.upstream.seen.length;
    for (const headers of [
      {},
      { 'X-Own': '' },
      { 'X-Own': ['right', 'right'] },
      { 'X-Own': 'right', 'x-payment': 'e30=' },
    ])
      expect([headers, (await kit.ask('/own/a', { headers })).status]).toEqual([headers, 402]);
    expect(kit.upstream.seen.length).toBe(served);
  });

  test('behaviour: after the upstream’s no a free request is still looked at, and the upstream told another word', async () => {
    const wrong = { headers: { 'X-Own': 'wrong', 'X-Forwarded-For': '192.0.2.77' } };
    const answer = await kit.ask('/own-free/a', wrong);
    expect([answer.status, answer.body, kit.told()['tollgate-access']]).toEqual([200, 'served', 'free']);
    // A body can be sent once: it is asked to pay.
    expect((await kit.ask('/own-free/a', { ...wrong, method: 'POST', body: '{}' })).status).toBe(402);
  });

  test('behaviour: who holds a pass passes by it, in a cookie too, and the upstream is not asked; a pass that is over is none', async () => {
    const { answer } = await buyPass(kit, '/own-pass/a', 'minute');
    const cookie = `tollgate_pass=${tokenOf(answer)}`;
    const served = kit.upstream.seen.length;
    for (const method of ['GET', 'POST']) {
      const body = method === 'GET' ? {} : { body: '{}' };
      const passed = await kit.ask('/own-pass/a', { method, ...body, headers: { 'X-Own': 'wrong', cookie } });
      expect([passed.status, kit.told()['tollgate-access']]).toEqual([200, 'pass']);
    }
    expect(kit.upstream.seen.length - served).toBe(2);
    kit.pass(61_000);
    const over = await kit.ask('/own-pass/a', { method: 'POST', body: '{}', headers: { 'X-Own': 'right', cookie } });
    expect([over.status, kit.told()['tollgate-access']]).toEqual([200, 'customer']);
  });

  test('behaviour: a customer may send as many requests at once as anybody, beside as many streams', async () => {
    const right = { headers: { 'X-Own': 'right', 'X-Forwarded-For': '192.0.2.80' } };
    const many = (target: string): Promise<readonly Answer[]> =>
      Promise.all(Array.from({ length: 25 }, () => kit.ask(target, right)));
    const streams = many('/own/stream');
    await vi.waitFor(() => expect(slow).toHaveLength(25));
    const first = kit.ask('/own/a', right);
    expect((await first).status).toBe(200);
    const rest = many('/own/slow');
    await vi.waitFor(() => expect(slow).toHaveLength(50));
    for (const end of slow.splice(0)) end();
    for (const { status } of [...(await streams), ...(await rest)]) expect(status).toBe(200);
  });

  test('attack: of thirty made-up credentials at once the upstream is asked about ten', async () => {
    const served = kit.upstream.seen.length;
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async (_, n) => {
        const headers = { 'X-Own': `wrong ${n}`, 'X-Forwarded-For': '192.0.2.81' };
        return (await kit.ask('/own/slow', { headers })).status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([402]));
    expect(kit.upstream.seen.length - served).toBe(10);
  });

  test('attack: ten refusals a minute and client, then nobody is asked', async () => {
    const from = { 'X-Own': 'wrong', 'X-Forwarded-For': '192.0.2.78' };
    for (let n = 0; n < 10; n++) await kit.ask('/own/a', { headers: from });
    const served = kit.upstream.seen.length;
    expect(reasonOf(await kit.ask('/own/a', { headers: from }))).toEqual([402, 'customer_unknown']);
    expect(kit.upstream.seen.length).toBe(served);
    expect((await kit.ask('/own/a', { headers: { 'X-Own': 'right', 'X-Forwarded-For': '192.0.2.79' } })).status).toBe(
      200,
    );
  });
});

describe('free requests and quotas', () => {
  // Five minutes into an hour: no window ends in the middle of a test.
  beforeAll(() => kit.pass(3_600_000 - (kit.now() % 3_600_000) + 300_000));
  const from = (address: string): { headers: Record<string, string> } => ({ headers: { 'X-Forwarded-For': address } });

  test('behaviour: so many requests of an address pass in a window, each is told how many are left', async () => {
    const first = await kit.ask('/free/a', from('192.0.2.1'));
    expect([first.status, first.headers['tollgate-free-left']]).toEqual([200, expect.stringMatching(/^1; reset=\d+$/)]);
    expect(kit.told()['tollgate-access']).toBe('free');
    const second = await kit.ask('/free/b', from('192.0.2.1'));
    expect(second.headers['tollgate-free-left']).toMatch(/^0; /);
    expect(reasonOf(await kit.ask('/free/c', from('192.0.2.1')))).toEqual([402, 'free_used_up']);
    expect(kit.lines.findLast(({ msg, outcome }) => msg === 'request' && outcome === 'quota')).toBeDefined();
    expect((await kit.pay('/free/c', from('192.0.2.1'))).status).toBe(200);
    kit.pass(3_600_000);
    expect((await kit.ask('/free/a', from('192.0.2.1'))).status).toBe(200);
    expect(Number(seriesOf(await kit.metrics(), 'tollgate_free_requests_total', { plan: 'free' }))).toBe(3);
  });

  test('behaviour: what is not charged for is given back', async () => {
    kit.pass(3_600_000);
    for (let n = 0; n < 3; n++) {
      const answer = await kit.ask('/free/missing', from('192.0.2.2'));
      expect([answer.status, answer.headers['tollgate-free-left']]).toEqual([404, expect.stringMatching(/^2; /)]);
    }
    expect((await kit.ask('/free/a', from('192.0.2.2'))).headers['tollgate-free-left']).toMatch(/^1; /);
  });

  test('attack: ten requests at once get no more than there is', async () => {
    kit.pass(3_600_000);
    const answers = await Promise.all(Array.from({ length: 10 }, () => kit.ask('/free/a', from('192.0.2.3'))));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200,
      200,
      ...Array<number>(8).fill(402),
    ]);
  });

  test('attack: more identities than there may be, and a subscriber with many networks, get nothing', async () => {
    kit.pass(3_600_000);
    for (const n of [1, 2, 3]) expect((await kit.ask('/free/a', from(`192.0.2.${n}`))).status).toBe(200);
    expect((await kit.ask('/free/a', from('192.0.2.4'))).status).toBe(402);
    expect((await kit.ask('/free/a', from('192.0.2.1'))).status).toBe(200);
    const statuses: number[] = [];
    for (let n = 0; n < 18; n++)
      statuses.push((await kit.ask('/own-free/a', from(`2001:db8:7:${n.toString(16)}::1`))).status);
    expect(statuses).toEqual([...Array<number>(16).fill(200), 402, 402]);
    // Addresses of one network of 64 bits are one identity.
    expect((await kit.ask('/own-free/a', from('2001:db8:7:1:2:3:4:5'))).status).toBe(200);
    expect((await kit.ask('/own-free/a', from('2001:db8:7:1:6:7:8:9'))).status).toBe(402);
  });

  test('behaviour: a trusted customer id has requests of its own; without one there are none', async () => {
    const as = (id: string): { headers: Record<string, string> } => ({ headers: { 'X-Customer-Id': id } });
    expect((await kit.ask('/by-customer/a', as('ann'))).status).toBe(200);
    expect(reasonOf(await kit.ask('/by-customer/a', as('ann')))).toEqual([402, 'free_used_up']);
    expect((await kit.ask('/by-customer/a', as('bob'))).status).toBe(200);
    expect(reasonOf(await kit.ask('/by-customer/a'))).toEqual([402, 'payment_required']);
  });

  test('behaviour: a customer beyond the quota goes on in the order: a free request, then a payment', async () => {
    const ask = (): Promise<Answer> =>
      kit.ask('/metered/a', { headers: { 'X-Api-Key': METERED, 'X-Forwarded-For': '192.0.2.99' } });
    const told: unknown[] = [];
    for (let n = 0; n < 3; n++) told.push([(await ask()).status, kit.told()['tollgate-access']]);
    expect(told).toEqual([
      [200, 'customer'],
      [200, 'customer'],
      [200, 'free'],
    ]);
    expect(reasonOf(await ask())).toEqual([402, 'customer_quota_used_up']);
    expect(
      Number(seriesOf(await kit.metrics(), 'tollgate_customers_total', { customers: 'metered', result: 'quota' })),
    ).toBe(2);
  });

  /** Sends a request, and leaves once the API has it. */
  async function leave(method: string, target: string, headers: Record<string, string>): Promise<void> {
    const [served, told] = [kit.upstream.seen.length, kit.lines.length];
    const req = request(new URL(target, kit.urlOf('proxy')), { method, headers, agent: false });
    req.on('error', () => undefined).end();
    await vi.waitFor(() => expect(kit.upstream.seen.length).toBeGreaterThan(served), { timeout: 10_000 });
    req.destroy();
    await vi.waitFor(() => expect(kit.lines.slice(told).some(({ msg }) => msg === 'request')).toBe(true), {
      timeout: 10_000,
    });
  }

  test('attack: a POST whose client leaves once the API has it stays counted, because its effect is the service; a GET is given back', async () => {
    kit.pass(3_600_000);
    const { headers } = from('192.0.2.44');
    await leave('GET', '/free/held', headers);
    expect((await kit.ask('/free/a', { headers })).headers['tollgate-free-left']).toMatch(/^1; /);
    await leave('POST', '/free/held', headers);
    expect(reasonOf(await kit.ask('/free/a', { headers }))).toEqual([402, 'free_used_up']);
  });

  test('attack: a customer who leaves a POST once the API has it has used it of the quota', async () => {
    kit.pass(86_400_000);
    const headers = { 'X-Api-Key': METERED, 'X-Forwarded-For': '192.0.2.45' };
    for (let n = 0; n < 2; n++) await leave('POST', '/metered/held', headers);
    expect([(await kit.ask('/metered/a', { headers })).status, kit.told()['tollgate-access']]).toEqual([200, 'free']);
  });
});

test('behaviour: pages of other origins may send the headers of customers, and read what is left', async () => {
  const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'GET' };
  const preflight = await kit.ask('/keys/a', { method: 'OPTIONS', headers });
  expect([preflight.status, preflight.headers['access-control-allow-headers']]).toEqual([
    204,
    expect.stringContaining('x-api-key'),
  ]);
  const asked = await kit.ask('/keys/a', { headers: { origin: 'https://app.example.com' } });
  expect(asked.headers['access-control-expose-headers']).toContain('Tollgate-Free-Left');
});
