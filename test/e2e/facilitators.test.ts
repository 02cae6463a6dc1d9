// Two facilitators over a real chain: which one is asked to settle, and what an answer under an unusual status means. The
// chain's balance has the last word.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

const PRICE = 100_000n;
let paid: PaidTollgate;

beforeAll(async () => {
  paid = await startPaidTollgate({ routes: ['* /thing/* 0.10'], facilitators: [{}, { account: 2 }] });
}, 180_000);
afterAll(() => paid?.stop());
afterEach(() => paid.facilitators.forEach(({ clearFaults }) => clearFaults()));

const settleCalls = (): number[] =>
  paid.facilitators.map(({ calls }) => calls.filter(({ operation }) => operation === 'settle').length);
const payFor = async (target: string, method: string): Promise<Response> =>
  paid.pay(target, await paid.sign(await paid.quote(target, method)), { method });
const isDelivered = () =>
  until('it is delivered', async () => (await paid.charges())[0]?.status === 'delivered' || undefined);

test.each(['GET', 'POST'])(
  'behaviour: a %s is settled by the facilitator that verified, not by the one that did not take the call',
  async (method) => {
    const [first] = paid.facilitators;
    const [before, asked] = [await paid.earned(), settleCalls()];
    first?.fault('verify', { kind: 'answer', status: 403, body: { error: 'no' } });
    const response = await payFor('/thing/verified', method);
    expect(response.status).toBe(200);
    await isDelivered();
    expect(settleCalls().map((count, at) => count - (asked[at] ?? 0))).toEqual([0, 1]);
    expect((await paid.earned()) - before).toBe(PRICE);
  },
);

describe.each([403, 404, 429, 500, 503])('a verdict and a settlement under status %d', (status) => {
  test.each(['GET', 'POST'])('behaviour: a verdict is its words, not its status: a %s is paid once', async (method) => {
    const [first] = paid.facilitators;
    const [before, asked] = [await paid.earned(), settleCalls()];
    first?.fault('verify', { kind: 'status', status });
    first?.fault('settle', { kind: 'status', status });
    const response = await payFor(`/thing/${status}`, method);
    expect(response.status).toBe(200);
    await isDelivered();
    expect(settleCalls().map((count, at) => count - (asked[at] ?? 0))).toEqual([1, 0]);
    expect((await paid.earned()) - before).toBe(PRICE);
  });
});
