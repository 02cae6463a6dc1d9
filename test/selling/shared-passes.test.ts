// Passes by uses and credit where the ledger is elsewhere, as processes of their own: two workers over SQLite, and a sidecar whose
// ledger is their registry. All together they give what was bought; a ledger that is away, slow, late or killed lets nobody in
// unpaid and draws nothing for nothing.
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { mintToken } from '../../src/registry/auth/dashboard-tokens.ts';
import { startFront } from '../support/lossy-front.ts';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { startBeliever } from './kit.ts';

const SECRET = 'a-secret-of-shared-passes-of-32-bytes';
const KEY = 'a-key-of-shared-passes-1';
const JWT_SECRET = 'a-secret-of-dashboard-tokens-32-bytes';
const LEDGER = '/v1/ledger/';
const files = temporaryFolder();
const running = new Set<TollgateProcess>();
const closers: (() => unknown)[] = [];
afterAll(async () => {
  await Promise.all([...running].map((each) => each.kill()));
  for (const close of closers) await close();
  files.remove();
});

let upstream: Upstream;
let own: TollgateProcess;
let sidecar: TollgateProcess;
let facilitator = '';
let registryUrl = '';
/** Responses that the upstream holds back. */
const held: ServerResponse[] = [];
/** What becomes of a call of the ledger: it goes through, it is cut before the registry has it, or its answer is lost. */
let weather: 'fair' | 'cut' | 'lost' = 'fair';
/** Bodies of the calls that the weather is about; undefined: all. */
let about: string | undefined;

const PLANS = [
  'selling:',
  '  plans:',
  '    - { id: api, passes: [{ id: ten, amount: "0.50", uses: 10 }, { id: three, amount: "0.20", uses: 3 }, { id: money, amount: "0.90", credit: "0.90" }] }',
  '    - { id: time, passes: [{ id: hour, amount: "0.30", seconds: 3600 }] }',
].join('\n');

function startTollgate(name: string, lines: readonly string[], listeners: readonly string[]): Promise<TollgateProcess> {
  const text = [
    ...lines,
    `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s } }`,
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["${facilitator}"] }]`,
    `charges: { secrets: [${SECRET}] }`,
    'admin: { listen: 127.0.0.1:0 }',
    PLANS,
  ].join('\n');
  return startProcess({
    args: ['serve', '-c', files.write(`${name}.yaml`, text)],
    listeners: [...listeners, 'proxy', 'admin'],
  }).then((started) => {
    running.add(started);
    return started;
  });
}

const startOwn = (): Promise<TollgateProcess> =>
  startTollgate(
    'own',
    [
      'workers: 2',
      `registry: { listen: 127.0.0.1:0, store: sqlite:shared/tollgate.db, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }], jwt: { secret: ${JWT_SECRET} } }`,
      'routes: [{ route_pattern: "/a", method: "*", amount: "0.10", plan_id: api }, { route_pattern: "/t", method: GET, amount: "0.10", plan_id: time }]',
    ],
    ['registry'],
  );
const startSidecar = (): Promise<TollgateProcess> =>
  startTollgate(
    'sidecar',
    [`sync: { registry_url: ${registryUrl}, api_key: ${KEY}, snapshot_file: "${files.folder}/routes.json" }`],
    [],
  );

beforeAll(async () => {
  upstream = await startUpstream((req, res) => {
    if (req.headers['x-hold'] !== undefined) held.push(res);
    else res.end('served');
  });
  closers.push(upstream.close);
  const believer = await startBeliever();
  facilitator = believer.url;
  closers.push(believer.close);
  const front = await startFront(
    async (request) => {
      const isMeant =
        request.url.includes(LEDGER) && (about === undefined || (await request.clone().text()).includes(about));
      if (!isMeant || weather === 'fair') return fetch(request);
      if (weather === 'lost') await (await fetch(request)).arrayBuffer();
      throw new Error('the connection ends');
    },
    () => own.port('registry'),
  );
  registryUrl = front.url;
  closers.push(front.close);
  own = await startOwn();
  sidecar = await startSidecar();
  await vi.waitFor(async () => expect(await statusOf(sidecar)).toBe(402), { timeout: 30_000, interval: 50 });
}, 90_000);

type Headers = Readonly<Record<string, string>>;
const ask = (at: TollgateProcess, target = '/a', headers: Headers = {}, method = 'GET'): Promise<Response> =>
  fetch(`${at.url('proxy')}${target}`, { method, headers: { connection: 'close', ...headers } });
const statusOf = async (at: TollgateProcess): Promise<number> => (await ask(at)).status;
const use = (at: TollgateProcess, token: string, target = '/a', headers: Headers = {}): Promise<Response> =>
  ask(at, target, { 'tollgate-pass': token, ...headers });
const told = (response: Response): readonly (string | number | null)[] => [
  response.status,
  response.headers.get('tollgate-pass-left') ?? response.headers.get('tollgate-reason'),
];
const codeOf = async (response: Response): Promise<unknown> => ((await response.json()) as { code?: unknown }).code;

type Entry = Parameters<typeof makeUpPayment>[0] & { readonly extra: { readonly pass?: { readonly id: string } } };
type Bought = { readonly token: string; readonly payer: string };
async function buy(at: TollgateProcess, pass: string, target = '/a'): Promise<Bought> {
  const asked = Buffer.from((await ask(at, target)).headers.get('payment-required') ?? '', 'base64').toString();
  const { accepts } = JSON.parse(asked) as { accepts: readonly Entry[] };
  const entry = accepts.find(({ extra }) => extra.pass?.id === pass);
  if (entry === undefined) throw new Error(`${pass} is not offered`);
  const credential = makeUpPayment(entry, Date.now());
  const bought = await ask(at, target, { 'payment-signature': credential });
  expect(bought.status).toBe(200);
  const { payload } = JSON.parse(Buffer.from(credential, 'base64').toString()) as {
    payload: { authorization: { from: string } };
  };
  return { token: bought.headers.get('tollgate-pass') ?? '', payer: payload.authorization.from };
}
/** What is drawn and reserved, in the books of the registry. */
async function booked({ payer }: Bought): Promise<readonly (string | undefined)[]> {
  // Encoded: a query is a secret of this test run, and logs name the payer.
  const spelled = Buffer.from(payer).toString('hex').replaceAll(/../g, '%$&');
  const answer = await fetch(`${own.url('registry')}${LEDGER}passes?payer=${spelled}`, {
    headers: { authorization: `Bearer ${KEY}` },
  });
  const { data } = (await answer.json()) as { data: { drawn: string; reserved: string }[] };
  return [data[0]?.drawn, data[0]?.reserved];
}

test('behaviour: what a worker sold is used at a sidecar and the other way round, by uses and by credit', async () => {
  for (const [seller, other] of [
    [own, sidecar],
    [sidecar, own],
  ] as const) {
    const [{ token: ten }, { token: money }] = [await buy(seller, 'ten'), await buy(seller, 'money')];
    expect(told(await use(other, ten))).toEqual([200, '8']);
    expect(told(await use(seller, ten))).toEqual([200, '7']);
    expect(told(await use(other, money))).toEqual([200, '0.70 USD']);
    expect(told(await use(seller, money))).toEqual([200, '0.60 USD']);
  }
});

test('attack: twenty requests at once, at two workers and a sidecar, have the two uses that are left, and no more', async () => {
  const { token } = await buy(sidecar, 'three');
  upstream.seen.length = 0;
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => use(n % 2 === 0 ? own : sidecar, token)));
  const statuses = all.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  expect(statuses.filter((status) => ![200, 402, 409].includes(status))).toEqual([]);
  expect(upstream.seen).toHaveLength(2);
  for (const at of [own, sidecar]) expect(told(await use(at, token))).toEqual([402, 'pass_used_up']);
  expect(upstream.seen).toHaveLength(2);
});

test('refuses: draws while nobody knows what is left, with 503, and lets passes by seconds in; nothing is drawn by it', async () => {
  const [ten, hour] = [await buy(sidecar, 'ten'), await buy(sidecar, 'hour', '/t')];
  for (const each of ['cut', 'lost'] as const) {
    weather = each;
    upstream.seen.length = 0;
    for (const key of [{}, { 'idempotency-key': 'order-1' }]) {
      const refused = await use(sidecar, ten.token, '/a', key);
      expect([refused.status, await codeOf(refused)]).toEqual([503, 'ledger_unavailable']);
      expect(refused.headers.get('retry-after')).toBe('5');
    }
    expect(upstream.seen).toHaveLength(0);
    expect((await use(sidecar, hour.token, '/t')).status).toBe(200);
    weather = 'fair';
    // What was reserved without anybody hearing of it is given back.
    await expect.poll(() => booked(ten), { timeout: 20_000 }).toEqual(['1', '0']);
  }
  // No ask of the key was counted: the upstream was never sent one.
  for (let asks = 1; asks <= 4; asks++)
    expect(told(await use(sidecar, ten.token, '/a', { 'idempotency-key': 'order-1' }))).toEqual([200, '8']);
});

test('behaviour: an answer whose draw nobody heard of goes to nobody and draws nothing', async () => {
  const ten = await buy(sidecar, 'ten');
  for (const key of [{}, { 'idempotency-key': 'order-1' }]) {
    [weather, about] = ['lost', '"take"'];
    const refused = await use(sidecar, ten.token, '/a', key);
    expect([refused.status, await codeOf(refused)]).toEqual([503, 'ledger_unavailable']);
    [weather, about] = ['fair', undefined];
    await expect.poll(() => booked(ten), { timeout: 20_000 }).toEqual(['1', '0']);
  }
  for (const at of [own, sidecar])
    expect(told(await use(at, ten.token, '/a', { 'idempotency-key': 'order-1' }))).toEqual([200, '8']);
});

test('behaviour: what a worker was killed with is given back at once, and what a registry was killed with when its lease is over', async () => {
  const three = await buy(own, 'three');
  expect(told(await use(sidecar, three.token))).toEqual([200, '1']);
  held.length = 0;
  const broken = use(own, three.token, '/a', { 'x-hold': '1' }).catch(() => 'broken');
  await expect.poll(() => held.length).toBe(1);
  expect(await booked(three)).toEqual(['2', '1']);
  for (const { msg, pid } of own.lines) if (msg === 'a worker is ready') process.kill(Number(pid), 'SIGKILL');
  expect(await broken).toBe('broken');
  // The registry dies between the draw and the answer, and comes back.
  const answered: Response[] = [];
  await expect
    .poll(
      async () => {
        void use(sidecar, three.token, '/a', { 'x-hold': '1' }).then((response) => answered.push(response));
        await expect.poll(() => held.length > 1 || answered.length > 0).toBe(true);
        return held.length > 1 || answered.splice(0).length === 0;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  expect(await booked(three)).toEqual(['2', '1']);
  await own.kill();
  running.delete(own);
  held[1]?.end('late');
  await expect.poll(() => answered.length, { timeout: 20_000 }).toBe(1);
  expect([answered[0]?.status, await (answered[0] && codeOf(answered[0]))]).toEqual([503, 'ledger_unavailable']);
  own = await startOwn();
  await expect.poll(() => booked(three), { timeout: 30_000 }).toEqual(['2', '0']);
  await expect.poll(async () => told(await use(sidecar, three.token)), { timeout: 20_000 }).toEqual([200, '0']);
}, 120_000);

test('behaviour: a pass that was revoked is let in nowhere within ten seconds, also where the ledger is elsewhere', async () => {
  const { token } = await buy(sidecar, 'hour', '/t');
  expect((await use(sidecar, token, '/t')).status).toBe(200);
  const terms = { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 600, now: Date.now() };
  const headers = { authorization: `Bearer ${await mintToken(JWT_SECRET, terms)}`, 'content-type': 'application/json' };
  const charges = `${own.url('registry')}/v1/billing/charges`;
  const { data } = (await (await fetch(charges, { headers })).json()) as { data: { id: string; amount: string }[] };
  const charge = data.find(({ amount }) => amount === '0.30');
  const body = JSON.stringify({ transaction: `0x${'7'.repeat(64)}`, unproven: true });
  expect((await fetch(`${charges}/${charge?.id}/refunds`, { method: 'POST', headers, body })).status).toBe(201);
  for (const at of [sidecar, own])
    await expect.poll(async () => told(await use(at, token, '/t')), { timeout: 30_000 }).toEqual([402, 'pass_revoked']);
}, 30_000);
