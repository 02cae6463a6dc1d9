// Payments over two workers with one ledger, on a real chain: a quote of one is good at the other, a payment is taken once, and
// what a worker that was killed had taken is its payer's again at once.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { LEASE_MS } from '../../src/gateway/pay/lease.ts';
import { startPaidTollgate, until, type Accepted, type PaidTollgate } from '../support/paid-tollgate.ts';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';

let paid: PaidTollgate;
/** Targets whose first request the upstream does not answer. */
const held = new Set<string>();

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['* /thing/* 0.10'],
    more: 'workers: 2',
    handle: (req, res) => {
      req.resume();
      if (!held.delete(req.url ?? '')) res.end(`thing of ${req.url ?? ''}`);
    },
  });
  for (const worker of [1, 2])
    await paid.tollgate().line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
}, 180_000);
afterAll(() => paid?.stop());

async function ask(
  client: RawClient,
  target: string,
  credential?: string,
): Promise<Awaited<ReturnType<RawClient['answer']>>> {
  const payment = credential === undefined ? '' : `payment-signature: ${credential}\r\n`;
  client.send(`GET ${target} HTTP/1.1\r\nHost: h\r\n${payment}\r\n`);
  return client.answer();
}

/** By which worker the request of `target` with this status was answered. */
async function workerOf(target: string, status: number): Promise<number> {
  const line = await paid
    .tollgate()
    .line((each) => each.msg === 'request' && each['path'] === target && each['status'] === status);
  return Number(line['worker']);
}

function pidOf(worker: number): number {
  const told = paid.tollgate().lines.filter(({ msg, number }) => msg === 'a worker is ready' && number === worker);
  return Number(told.at(-1)?.['pid']);
}

test('behaviour: what one worker quotes is paid at the other', async () => {
  const clients = [await openRaw(paid.tollgate().port('proxy')), await openRaw(paid.tollgate().port('proxy'))] as const;
  onTestFinished(() => clients.forEach(({ close }) => close()));
  const quoted = await ask(clients[0], '/thing/quoted');
  const header = Buffer.from(headerOf(quoted, 'payment-required') ?? '', 'base64').toString();
  const { accepts } = JSON.parse(header) as { accepts: [Accepted] };
  const answer = await ask(clients[1], '/thing/quoted', await paid.sign(accepts[0]));
  expect([answer.status, answer.body.toString()]).toEqual([200, 'thing of /thing/quoted']);
  expect(new Set([await workerOf('/thing/quoted', 402), await workerOf('/thing/quoted', 200)])).toEqual(
    new Set([1, 2]),
  );
});

test('behaviour: a payment presented to both workers at once is served once and settled once', async () => {
  const target = '/thing/twice';
  const before = await paid.earned();
  const asked = paid.upstream.seen.length;
  const credential = await paid.sign(await paid.quote(target));
  const clients = await Promise.all(Array.from({ length: 12 }, () => openRaw(paid.tollgate().port('proxy'))));
  onTestFinished(() => clients.forEach(({ close }) => close()));
  const answers = await Promise.all(clients.map((client) => ask(client, target, credential)));
  const served = answers.filter(({ status }) => status === 200);
  expect(served.length).toBeGreaterThan(0);
  for (const { body } of served) expect(body.toString()).toBe(`thing of ${target}`);
  for (const { status } of answers) expect([200, 402, 409]).toContain(status);
  expect(paid.upstream.seen.length).toBe(asked + 1);
  expect((await paid.earned()) - before).toBe(100_000n);
  const workers = await until('all are logged', async () => {
    const lines = paid.tollgate().lines.filter((line) => line.msg === 'request' && line['path'] === target);
    return lines.length === 13 && new Set(lines.map(({ worker }) => worker));
  });
  expect(workers).toEqual(new Set([1, 2]));
});

/** A payment that the upstream has and does not answer, and the worker that took it. */
async function inFlight(
  target: string,
  method: string,
): Promise<{ credential: string; worker: number; end: Promise<string> }> {
  const client = await openRaw(paid.tollgate().port('proxy'));
  onTestFinished(() => client.close());
  const who = `/who${target}`;
  await ask(client, who);
  const worker = await workerOf(who, 200);
  const credential = await paid.sign(await paid.quote(target, method));
  held.add(target);
  client.send(
    `${method} ${target} HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\npayment-signature: ${credential}\r\n\r\n`,
  );
  await until('the upstream has it', async () => !held.has(target));
  return { credential, worker, end: client.closed };
}

async function servedAgain(target: string, method: string, credential: string): Promise<string> {
  return until('it is served again', async () => {
    const response = await paid.pay(target, credential, { method }).catch(() => undefined);
    const body = await response?.text().catch(() => undefined);
    return response?.status === 200 && body;
  });
}

test.each([
  ['GET', 'settled with its answer'],
  ['POST', 'settled before it is forwarded'],
])('behaviour: a %s, %s, whose worker is killed is served again at once', async (method) => {
  const target = `/thing/killed/${method}`;
  const before = await paid.earned();
  const { credential, worker, end } = await inFlight(target, method);
  const lives = paid.tollgate().lines.filter(({ msg }) => msg === 'a worker is ready').length;
  process.kill(pidOf(worker), 'SIGKILL');
  await end;
  const since = performance.now();
  expect(await servedAgain(target, method, credential)).toBe(`thing of ${target}`);
  // The other worker was there all the time; of the lease of the dead one nothing is waited for.
  expect(performance.now() - since).toBeLessThan(LEASE_MS - 2_000);
  expect((await paid.earned()) - before).toBe(100_000n);
  await until('the dead one is replaced', async () => {
    return paid.tollgate().lines.filter(({ msg }) => msg === 'a worker is ready').length > lives;
  });
});

test('behaviour: a paid request in flight when the primary was killed is served again once the primary is ready', async () => {
  const target = '/thing/orphaned';
  const before = await paid.earned();
  const { credential, end } = await inFlight(target, 'GET');
  await paid.restart();
  await end;
  const since = performance.now();
  expect(await servedAgain(target, 'GET', credential)).toBe(`thing of ${target}`);
  expect(performance.now() - since).toBeLessThan(LEASE_MS - 2_000);
  expect((await paid.earned()) - before).toBe(100_000n);
});

test('behaviour: after all these kills of workers the ledger equals the chain', async () => {
  const charges = await until('all are delivered', async () => {
    const all = await paid.charges();
    return all.every(({ status }) => status === 'delivered') && all;
  });
  const sum = charges.reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(await paid.earned());
});
