// An API with users that begins to sell, as its owner goes about it: a day of a dry run, then customers by their keys, then passes,
// then other passes. Customers, payers and strangers ask without a pause all the while. Every answer is written down, and none is
// one that was not promised to that client at that time. The money is on a chain, and the clients that pay are the public ones.
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startChain, type Chain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { createPayer, type Payer } from '../support/chain/payer.ts';
import type { TestFacilitator } from '../support/facilitator-server.ts';
import { PAY_TO } from '../support/paid-tollgate.ts';
import { temporaryFolder } from '../support/process.ts';
import { leftOf, offerOf, offersOf, present, tokenOf, type Entry } from './bought-passes.ts';
import { seriesOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FUNDS = 10_000_000_000n;
/** Answers of every client between two steps. */
const ENOUGH = 3;
/** Requests that the metered customer has in a month. */
const QUOTA = 7;
const PATIENCE = { timeout: 60_000, interval: 20 };

/** The steps of the owner, in their order. */
const STEPS = ['observing', 'charging', 'key added', 'key removed', 'passes', 'other passes'] as const;
type Step = (typeof STEPS)[number];

/** The answers that the contract promises, by client; those of a step go on until one is named for a later step. */
const PROMISED = {
  stranger: { observing: ['200 observed'], charging: ['402 payment_required'] },
  lost: { observing: ['404 observed'], charging: ['402 payment_required'] },
  partner: { observing: ['200 observed'], charging: ['200 customer'] },
  poster: { observing: ['200 observed'], charging: ['200 customer'] },
  staff: { observing: ['200 observed'], charging: ['200 customer'] },
  metered: { observing: ['200 observed'], charging: ['200 customer', '402 customer_quota_used_up'] },
  newcomer: {
    ...{ observing: ['200 observed'], charging: ['402 customer_unknown'] },
    ...{ 'key added': ['200 customer'], 'key removed': ['402 customer_unknown'] },
  },
  payer: { observing: ['200 observed'], charging: ['200 paid'] },
  // Pays and presents passes though nothing is asked yet.
  eager: { observing: ['200 observed'] },
  daily: { passes: ['200 paid', '200 pass'] },
  counted: { passes: ['200 paid', '200 pass'] },
} as const satisfies Readonly<Record<string, Partial<Readonly<Record<Step, readonly string[]>>>>>;
type Kind = keyof typeof PROMISED;

type Seen = { readonly kind: Kind; readonly from: number; readonly to: number; readonly said: string };

const files = temporaryFolder();
const closers: (() => unknown)[] = [];
const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');
const KEYS = {
  partner: 'a-key-of-a-partner-of-the-owner',
  poster: 'a-key-of-another-partner-of-it',
  newcomer: 'a-key-that-comes-and-goes-again',
  metered: 'a-key-of-a-customer-with-a-quota',
};
const keysFile = `${files.folder}/partners.txt`;
/** Puts a file of keys in place as owners do: the old one or the new one, never a half. */
function writeKeys(...names: readonly (keyof typeof KEYS)[]): void {
  writeFileSync(`${keysFile}~`, names.map((name) => `${digestOf(KEYS[name])}  ${name}\n`).join(''));
  renameSync(`${keysFile}~`, keysFile);
}
writeKeys('partner', 'poster');
const quotaFile = files.write('metered.txt', `${digestOf(KEYS.metered)} metered\n`);

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** A token of the issuer that the API's users sign in with. */
function tokenAt(nowMs: number): string {
  const exp = Math.floor(nowMs / 1000) + 600;
  const claims = { iss: 'https://id.example.com', aud: 'api', sub: 'ann', exp, jti: generatePrivateKey() };
  const input = `${encode({ alg: 'EdDSA', typ: 'JWT', kid: 'k1' })}.${encode(claims)}`;
  return `${input}.${sign(null, Buffer.from(input), privateKey).toString('base64url')}`;
}

let chain: Chain;
let facilitator: TestFacilitator;
let kit: PlanKit;
let payer: Payer;
let jwksUrl = '';
let until = '';

const OBSERVED = (): string => `observe: { until: "${until}" }`;
const CUSTOMERS = 'customers: [partners, staff, metered]';
const PASSES =
  'passes: [{ id: day, amount: "0.80", seconds: 86400 }, { id: many, amount: "0.70", uses: 100000 }, { id: top-up, amount: "0.90", credit: "0.90" }]';
const OTHER_PASSES =
  'passes: [{ id: day, amount: "0.80", seconds: 3600, scope: route }, { id: many, amount: "0.75", uses: 5 }, { id: top-up, amount: "0.90", credit: "0.90" }]';

/** The owner's file. */
function written(plan: readonly string[], amount: string): string {
  return [
    'selling:',
    `  plans: [{ id: default, ${plan.join(', ')} }]`,
    ...(plan.includes(CUSTOMERS)
      ? [
          '  customers:',
          `    - { id: partners, header: X-Api-Key, keys_file: ${keysFile} }`,
          `    - { id: staff, header: Authorization, jwt: { issuer: "https://id.example.com", audience: api, jwks_url: "${jwksUrl}", name: sub } }`,
          `    - { id: metered, header: X-Metered-Key, keys_file: ${quotaFile}, quota: { requests: ${QUOTA}, window: month } }`,
        ]
      : []),
    'routes:',
    `  - { method: GET, route_pattern: /report, amount: "${amount}" }`,
    '  - { method: POST, route_pattern: /report, amount: "0.25" }',
  ].join('\n');
}

const seen: Seen[] = [];
const problems: unknown[] = [];
const counts = new Map<Kind, number>();
/** The step in force, and the one that is being put in force. */
let [inForce, begun] = [0, 0];
const ended = new AbortController();
/** Who pays unasked has nothing to pay for once the API asks. */
const eagerEnded = new AbortController();
const loops: Promise<void>[] = [];

/** An answer as the table names it: its status, and how the API was told that it passed, or why it did not. */
function saidBy(status: number, reason: string | undefined, body: string): string {
  const { access, code } = JSON.parse(body) as { readonly access?: string; readonly code?: string };
  return `${status} ${access ?? reason?.split(':', 1)[0] ?? code}`;
}
const saidOf = ({ status, headers, body }: Answer): string =>
  saidBy(status, headers['tollgate-reason']?.toString(), body);
const saidIn = async (response: Response): Promise<string> =>
  saidBy(response.status, response.headers.get('tollgate-reason') ?? undefined, await response.text());

/** Asks without a pause, in the name of `kind`. */
function keepAsking(kind: Kind, once: () => Promise<string>): void {
  const go = async (): Promise<void> => {
    const stop = kind === 'eager' ? AbortSignal.any([ended.signal, eagerEnded.signal]) : ended.signal;
    while (!stop.aborted) {
      const from = inForce;
      const said = await once();
      seen.push({ kind, from, to: begun, said });
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    counts.delete(kind);
  };
  counts.set(kind, 0);
  loops.push(go().catch((error: unknown) => void problems.push(kind, error)));
}

/** Resolves when every client has had so many further answers. */
async function everybodyAsked(times = ENOUGH): Promise<void> {
  const before = new Map(counts);
  await vi.waitFor(() => {
    expect(problems).toEqual([]);
    for (const [kind, count] of before) {
      const now = counts.get(kind);
      if (now !== undefined) expect([kind, now - count >= times]).toEqual([kind, true]);
    }
  }, PATIENCE);
}

/** The owner's next step. Who asks meanwhile may have the answer of before or the one of after it. */
async function step(next: Step, work: () => unknown): Promise<void> {
  begun = STEPS.indexOf(next);
  await work();
  inForce = begun;
  await everybodyAsked();
}

function promisedTo(kind: Kind, at: number): readonly string[] {
  const said: Partial<Readonly<Record<Step, readonly string[]>>> = PROMISED[kind];
  return STEPS.slice(0, at + 1).reduce<readonly string[]>((last, name) => said[name] ?? last, []);
}

/** Answers that nobody was promised, each once. */
function unpromised(): readonly string[] {
  const found = seen.flatMap(({ kind, from, to, said }) => {
    const steps = Array.from({ length: to - from + 1 }, (_, n) => from + n);
    return steps.some((at) => promisedTo(kind, at).includes(said))
      ? []
      : [`${kind} ${STEPS[from]}-${STEPS[to]}: ${said}`];
  });
  return [...new Set(found)];
}

const asking = (kind: Kind, target: string, ask: () => Ask = () => ({})): void =>
  keepAsking(kind, async () => saidOf(await kit.ask(target, ask())));

const lineOf = (msg: string): unknown => kit.lines.find((line) => line.msg === msg);
const credentialOf = async (entry: Entry, by = payer): Promise<string> => {
  const payload = await by.authorize({ to: entry.payTo, value: BigInt(entry.amount) });
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted: entry, payload })).toString('base64');
};
const payFor = async (entry: Entry): Promise<Answer> =>
  kit.ask('/report', { headers: { 'payment-signature': await credentialOf(entry) } });

/** The public client as it is, told by its own setting which of the prices to pay; its program keeps the token of a pass. */
const tokens = new Map<string, string>();
function buyerOf(pass: string, key: `0x${string}`): () => Promise<string> {
  const client = new x402Client((_, offered) => {
    const wanted = offered.find(({ extra }) => (extra as Entry['extra']).pass?.id === pass);
    if (wanted === undefined) throw new Error(`${pass} is not offered`);
    return wanted;
  }).register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)));
  const paying = wrapFetchWithPayment(fetch, client);
  return async () => {
    const token = tokens.get(pass);
    const headers: Record<string, string> = token === undefined ? {} : { 'tollgate-pass': token };
    const response = await paying(`${kit.urlOf('proxy')}/report`, { headers });
    tokens.set(pass, response.headers.get('tollgate-pass') ?? '');
    return saidIn(response);
  };
}

beforeAll(async () => {
  chain = await startChain();
  closers.push(chain.stop);
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  closers.push(facilitator.close);
  payer = await createPayer(chain, FUNDS);
  const keySet = createServer((_req, res) => {
    res.end(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig' }] }));
  });
  await new Promise<void>((resolve) => {
    keySet.listen(0, '127.0.0.1', resolve);
  });
  closers.push(() => keySet.close());
  jwksUrl = `http://127.0.0.1:${(keySet.address() as AddressInfo).port}/jwks`;
  // The dry run ends now, and began a day ago.
  until = new Date(Math.ceil(Date.now() / 1000) * 1000).toISOString();
  kit = await startPlans(written([OBSERVED()], '0.10'), {
    money: { facilitator: facilitator.url, rpcUrl: chain.rpcUrl },
    startsMsAgo: DAY_MS,
    handle: (req, res) => {
      req.resume();
      if (req.url === '/report?lost') res.statusCode = 404;
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ access: req.headers['tollgate-access'], amount: req.headers['tollgate-amount'] }));
    },
  });
}, 120_000);
afterAll(async () => {
  ended.abort();
  await Promise.all(loops);
  await kit?.close();
  for (const close of closers.toReversed()) await close();
  files.remove();
});

describe('a day of a dry run', () => {
  test('behaviour: everybody is served free for a day, whatever they carry, and nothing of it is taken', async () => {
    asking('stranger', '/report');
    asking('lost', '/report?lost');
    asking('partner', '/report', () => ({ headers: { 'X-Api-Key': KEYS.partner } }));
    asking('poster', '/report', () => ({
      method: 'POST',
      body: '{}',
      headers: { 'X-Api-Key': `Bearer ${KEYS.poster}` },
    }));
    asking('staff', '/report', () => ({ headers: { Authorization: `Bearer ${tokenAt(kit.now())}` } }));
    asking('metered', '/report', () => ({ headers: { 'X-Metered-Key': KEYS.metered } }));
    asking('newcomer', '/report', () => ({ headers: { 'X-Api-Key': KEYS.newcomer } }));
    keepAsking('payer', async () => saidIn(await payer.fetch(`${kit.urlOf('proxy')}/report`)));
    const entry: Entry = { payTo: PAY_TO, amount: '100000', scheme: 'exact', network: 'eip155:84532', extra: {} };
    const credential = await credentialOf(entry);
    const carried = { 'payment-signature': credential, 'x-payment': credential, 'tollgate-pass': 'pass_of_nobody' };
    asking('eager', '/report', () => ({ headers: carried }));
    expect(lineOf('a plan observes: its routes are free for everybody until then')).toMatchObject({
      ...{ level: 'warn', plan: 'default', until },
    });
    for (let hour = 0; hour < 23; hour++) {
      await everybodyAsked(1);
      kit.pass(HOUR_MS);
    }
    expect(await kit.ready()).toContain(`the plan default observes until ${until}: its routes are free`);
    expect(seriesOf(await kit.metrics(), 'tollgate_observe_until_timestamp_seconds', { plan: 'default' })).toBe(
      String(Date.parse(until) / 1000),
    );
    expect(unpromised()).toEqual([]);
    const names = kit.upstream.seen.flatMap(({ rawHeaders }) => rawHeaders.map((name) => name.toLowerCase()));
    expect(names.filter((name) => /^(?:payment-|x-payment|tollgate-pass|sign-in)/.test(name))).toEqual([]);
    expect(facilitator.calls.filter(({ operation }) => operation !== 'supported')).toEqual([]);
    expect(await chain.balanceOf(PAY_TO)).toBe(0n);
  });

  test('behaviour: who is a customer is written down before its end, and changes nothing yet', async () => {
    kit.standAt(Date.parse(until) - 60_050);
    await kit.reload(written([OBSERVED(), CUSTOMERS], '0.10'));
    await everybodyAsked();
    expect(unpromised()).toEqual([]);
    expect(lineOf('the dry run of a plan ends in a minute: its routes charge from then on')).toBeUndefined();
    kit.pass(50);
    await vi.waitFor(
      () =>
        expect(lineOf('the dry run of a plan ends in a minute: its routes charge from then on')).toMatchObject({
          ...{ level: 'warn', plan: 'default', until },
        }),
      PATIENCE,
    );
  });

  test('behaviour: it ends by itself: from that moment on customers pass by their keys, payers pay, and others get the 402', async () => {
    kit.standAt(Date.parse(until) - 50);
    await kit.reload(written([OBSERVED(), CUSTOMERS], '0.10'));
    await everybodyAsked();
    eagerEnded.abort();
    await vi.waitFor(() => expect(counts.has('eager')).toBe(false), PATIENCE);
    await step('charging', () => kit.pass(50));
    await vi.waitFor(
      () =>
        expect(lineOf('the dry run of a plan is over: its routes charge from now on')).toMatchObject({
          ...{ level: 'warn', plan: 'default', until },
        }),
      PATIENCE,
    );
    expect(await kit.ready()).toContain('no plan observes');
    // The public clients sign by the time of this machine.
    kit.release();
    await everybodyAsked();
    expect(unpromised()).toEqual([]);
  });

  test('behaviour: what it would have earned is exact: each answer that is charged for, and no other', async () => {
    const observed = kit.upstream.seen.filter(({ headers }) => headers['tollgate-access'] === 'observed');
    const charged = observed.filter(({ url }) => url !== '/report?lost');
    const cents = charged.reduce((sum, { method }) => sum + (method === 'POST' ? 25 : 10), 0);
    const text = (await kit.metrics()).split('\n').filter((line) => line.startsWith('tollgate_would_charge_total{'));
    const sums = text.map((line) => Math.round(100 * Number(line.split(' ').at(-1))));
    expect(sums.reduce((sum, each) => sum + each, 0)).toBe(cents);
    const lines = kit.lines.filter(({ msg }) => msg === 'would have asked');
    expect([lines.length, lines.filter((line) => line['would_charge'] === true).length]).toEqual([
      observed.length,
      charged.length,
    ]);
  });
});

describe('customers', () => {
  test('behaviour: a customer with a quota passes so often, and is asked to pay from then on', async () => {
    const answers = (): readonly string[] => seen.flatMap(({ kind, said }) => (kind === 'metered' ? [said] : []));
    await vi.waitFor(() => expect(answers()).toContain('402 customer_quota_used_up'), PATIENCE);
    expect(answers().filter((said) => said === '200 customer')).toHaveLength(QUOTA);
  });

  test('behaviour: a key that is added to the file is good, and one that is taken out is not, without a reload', async () => {
    const READ = "customers' keys were read again";
    const change = async (...names: readonly (keyof typeof KEYS)[]): Promise<void> => {
      const mark = kit.lines.length;
      writeKeys(...names);
      await vi.waitFor(() => expect(kit.lines.slice(mark).some(({ msg }) => msg === READ)).toBe(true), PATIENCE);
    };
    await step('key added', () => change('partner', 'poster', 'newcomer'));
    await step('key removed', () => change('partner', 'poster'));
    expect(unpromised()).toEqual([]);
  });
});

describe('passes', () => {
  let credit = '';

  test('behaviour: passes are added: a quote from before is paid as quoted, who pays singly goes on, a pass is bought and used', async () => {
    const quoted = await offerOf(kit, '/report', undefined);
    await step('passes', () => kit.reload(written([CUSTOMERS, PASSES], '0.12')));
    const offered = await offersOf(kit, '/report');
    expect(offered.map(({ amount, extra }) => [amount, extra.pass?.id])).toEqual([
      ...[
        ['120000', undefined],
        ['800000', 'day'],
        ['700000', 'many'],
        ['900000', 'top-up'],
      ],
    ]);
    const paid = await payFor(quoted);
    expect(JSON.parse(paid.body)).toEqual({ access: 'paid', amount: '0.10' });
    for (const [kind, pass] of [
      ['daily', 'day'],
      ['counted', 'many'],
    ] as const) {
      const key = generatePrivateKey();
      await chain.mint(privateKeyToAccount(key).address, 1_000_000n);
      keepAsking(kind, buyerOf(pass, key));
    }
    await everybodyAsked();
    const topped = await payFor(await offerOf(kit, '/report', 'top-up'));
    credit = tokenOf(topped);
    expect([saidOf(topped), leftOf(topped)]).toEqual(['200 paid', '0.78 USD']);
    expect(leftOf(await present(kit, '/report', credit))).toBe('0.66 USD');
    expect(unpromised()).toEqual([]);
  });

  test('behaviour: other passes are sold: those that were sold stay as they were, and what was quoted is bought or nothing is', async () => {
    const [quoted, passQuoted, , creditQuoted] = await offersOf(kit, '/report');
    if (quoted === undefined || passQuoted === undefined || creditQuoted === undefined) throw new Error('no quotes');
    await step('other passes', () => kit.reload(written([CUSTOMERS, OTHER_PASSES], '0.15')));
    expect((await offerOf(kit, '/report', 'day')).extra.pass).toMatchObject({ seconds: 3600, scope: 'route' });
    expect(leftOf(await present(kit, '/report', tokens.get('day') ?? ''))).toMatch(/^8[5-6]\d{3}s$/);
    expect(leftOf(await present(kit, '/report', tokens.get('many') ?? ''))).toMatch(/^9\d{4}$/);
    // A credit is of money: a request takes what it costs now.
    expect(leftOf(await present(kit, '/report', credit))).toBe('0.51 USD');
    const single = await payFor(quoted);
    expect(JSON.parse(single.body)).toEqual({ access: 'paid', amount: '0.12' });
    expect(leftOf(await payFor(creditQuoted))).toBe('0.75 USD');
    // It was quoted a day, which is not sold for that money any more: it is sold nothing else for it.
    const gone = await payFor(passQuoted);
    expect([gone.status, gone.headers['tollgate-pass'], gone.headers['payment-required']]).toEqual([
      ...[402, undefined, expect.any(String)],
    ]);
    const { data } = JSON.parse((await kit.dashboard('GET', '/v1/billing/passes')).body) as {
      readonly data: readonly Readonly<Record<string, unknown>>[];
    };
    expect(data.find(({ pass }) => pass === 'many')).toMatchObject({ status: 'live', sold: '100000' });
    await everybodyAsked();
  });
});

test('behaviour: no client had an answer that it was not promised', async () => {
  ended.abort();
  await Promise.all(loops);
  expect(problems).toEqual([]);
  expect(unpromised()).toEqual([]);
  const answered = Map.groupBy(seen, ({ kind }) => kind);
  expect([...answered.keys()].toSorted()).toEqual(Object.keys(PROMISED).toSorted());
});

type Charge = { readonly amount_atomic: string; readonly status: string };
/** All charges, a page after the other. */
async function listCharges(): Promise<readonly Charge[]> {
  const charges: Charge[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const at = cursor === '' ? '' : `&cursor=${cursor}`;
    const { body } = await kit.dashboard('GET', `/v1/billing/charges?limit=200${at}`);
    const page = JSON.parse(body) as { readonly data: readonly Charge[]; readonly next_cursor: string | null };
    charges.push(...page.data);
    cursor = page.next_cursor;
  }
  return charges;
}

test('behaviour: what the clients paid is what the facilitator settled, what was charged, and what arrived', async () => {
  // That a response was handed over is written down after it.
  const charges = await vi.waitFor(async () => {
    const all = await listCharges();
    expect(all.filter(({ status }) => status !== 'delivered')).toEqual([]);
    return all;
  }, PATIENCE);
  const sumOf = (amounts: readonly string[]): bigint => amounts.reduce((sum, each) => sum + BigInt(each), 0n);
  const settled = facilitator.calls.filter(({ operation }) => operation === 'settle');
  const arrived = await chain.balanceOf(PAY_TO);
  // Two buyers of passes, who paid 0.80 and 0.70.
  const spent = FUNDS - (await chain.balanceOf(payer.address)) + 800_000n + 700_000n;
  expect(sumOf(charges.map(({ amount_atomic: amount }) => amount))).toBe(arrived);
  expect(
    sumOf(settled.map(({ body }) => (body as { paymentRequirements: { amount: string } }).paymentRequirements.amount)),
  ).toBe(arrived);
  expect(spent).toBe(arrived);
  expect(charges).toHaveLength(seen.filter(({ said }) => said === '200 paid').length + 4);
});
