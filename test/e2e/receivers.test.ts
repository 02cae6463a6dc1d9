// Receivers of a running Tollgate with two workers: how their services stand by the payments that either worker asked about, the
// check that `check --online` makes, and the 402 of a tried request, which only a worker can write.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

let paid: PaidTollgate;
let token = '';
beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /thing/* 0.10', 'POST /thing/* 0.20'],
    facilitators: [{}, { account: 2 }],
    more: 'workers: 2',
  });
  token = await paid.cli('token');
}, 180_000);
afterAll(() => paid?.stop());
afterEach(() => paid.facilitators.forEach(({ clearFaults }) => clearFaults()));

type Facilitator = {
  readonly host: string;
  readonly status: string;
  readonly since: string | null;
  readonly last_error: string | null;
  readonly p50_ms: number | null;
};
type Receiver = {
  readonly id: string;
  readonly routes: number;
  readonly ways: readonly { readonly facilitators: readonly Facilitator[]; readonly rpc: unknown }[];
};
type Try = {
  readonly answer: { readonly status: number; readonly headers: [string, string][]; readonly body: string } | null;
  readonly reason: string | null;
  readonly curl: string;
};

type Reply = { readonly status: number; readonly headers: Headers; readonly text: string };

async function ask(method: string, path: string): Promise<Reply> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${paid.tollgate().url('registry')}${path}`, { method, headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function receiver(): Promise<Receiver> {
  const { status, text } = await ask('GET', '/v1/receivers');
  expect(status).toBe(200);
  for (const { url } of paid.facilitators) expect(text).not.toContain(url);
  const [first] = (JSON.parse(text) as { data: Receiver[] }).data;
  if (first === undefined) throw new Error('no receiver');
  return first;
}
const facilitators = async (): Promise<readonly Facilitator[]> => (await receiver()).ways[0]?.facilitators ?? [];
const hosts = (): string[] => paid.facilitators.map(({ url }) => new URL(url).host);
const pay = async (target: string): Promise<number> => {
  const response = await paid.pay(target, await paid.sign(await paid.quote(target)));
  await response.arrayBuffer();
  return response.status;
};

test('behaviour: the 402 of a tried request is one that a worker writes, for every method, and holds', async () => {
  const plain = (text: string): string => text.replaceAll(/chg_[\w-]+/g, 'chg');
  const decoded = (value: string | null | undefined): string => plain(Buffer.from(value ?? '', 'base64').toString());
  for (const method of ['GET', 'POST']) {
    const query = new URLSearchParams({ method, path: '/thing/a%20b?x=1' });
    const { answer, reason, curl } = JSON.parse((await ask('GET', `/v1/billing/try?${query}`)).text) as Try;
    const real = await fetch(paid.url('/thing/a%20b?x=1'), { method });
    expect([answer?.status, reason, real.status]).toEqual([402, null, 402]);
    expect(plain(answer?.body ?? '')).toBe(plain(await real.text()));
    const shown = new Map(answer?.headers.map(([name, value]) => [name.toLowerCase(), value]));
    expect(decoded(shown.get('payment-required'))).toBe(decoded(real.headers.get('payment-required')));
    expect(curl).toContain(`curl -i -X ${method}`);
    const [chargeId] = /chg_[\w-]+/.exec(answer?.body ?? '') ?? [];
    const why = await ask('GET', `/v1/billing/why/${chargeId}`);
    expect(JSON.parse(why.text)).toMatchObject({ charges: [], quote: { signed_here: true } });
  }
  const free = await ask('GET', `/v1/billing/try?${new URLSearchParams({ method: 'GET', path: '/free' })}`);
  expect(JSON.parse(free.text)).toMatchObject({ answer: null, reason: null });
});

test('behaviour: facilitators and node stand as they answered at the start, then as either worker last found them', async () => {
  const asked = await until('all have answered', async () => {
    const one = await receiver();
    return one.ways[0]?.facilitators.every(({ status }) => status !== 'unasked') ? one : undefined;
  });
  expect(asked).toMatchObject({ id: 'default', routes: 2 });
  expect(asked.ways[0]?.facilitators).toEqual(
    hosts().map((host) => ({
      host,
      auth: null,
      status: 'ok',
      since: expect.any(String),
      last_error: null,
      p50_ms: null,
    })),
  );
  expect(asked.ways[0]?.rpc).toEqual({ host: new URL(paid.chain.rpcUrl).host, status: 'ok' });

  const [first] = paid.facilitators;
  first?.fault('verify', { kind: 'answer', status: 401, body: { error: 'who?' } });
  const before = Date.now();
  expect(await pay('/thing/refused')).toBe(200);
  const [refused, served] = await facilitators();
  expect(refused).toMatchObject({
    ...{ status: 'unauthorized', p50_ms: null },
    last_error: 'status 401: it does not know who calls; check auth',
  });
  expect(Date.parse(refused?.since ?? '')).toBeGreaterThanOrEqual(before - 1);
  expect(served).toMatchObject({ status: 'ok', last_error: null, p50_ms: expect.any(Number) });
  // Whichever worker takes it: what was called last counts.
  expect(await pay('/thing/again')).toBe(200);
  expect((await facilitators())[0]).toMatchObject({ status: 'ok', last_error: null, p50_ms: expect.any(Number) });
});

test('behaviour: a check finds what check --online finds, once in ten seconds', async () => {
  const [first] = paid.facilitators;
  first?.fault('supported', { kind: 'answer', status: 403, body: {} }, 100);
  const path = '/v1/receivers/default/check';
  const checked = await ask('POST', path);
  // At once: the command takes some of the ten seconds.
  const early = await ask('POST', path);
  const found = JSON.parse(checked.text) as { ok: boolean; findings: object[]; checked_at: string };
  expect([checked.status, found.ok]).toEqual([200, false]);
  expect(Date.parse(found.checked_at)).toBeLessThanOrEqual(Date.now());
  const online = await paid.cli('check', '--online', '--json').catch((error: { stdout: string }) => error.stdout);
  const said = (JSON.parse(online) as { online: { receiver?: string; level: string; detail: string }[] }).online;
  const ofReceiver = said.flatMap(({ receiver: id, ...finding }) => (id === 'default' ? [finding] : []));
  expect(found.findings).toEqual(ofReceiver);
  expect(found.findings).toContainEqual({
    level: 'cannot_serve',
    detail: expect.stringContaining(`the facilitator ${hosts()[0]} takes no call`),
  });
  expect(early.status).toBe(429);
  expect(early.text).toContain('"too_many_requests"');
  expect(Number(early.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await ask('POST', '/v1/receivers/nobody/check')).status).toBe(404);
});
