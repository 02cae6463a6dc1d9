// kill -9 at every named point of a charge's life, for real: Tollgate stops dead there (a switch for tests), is killed,
// starts again on what is on the disk, and the payer sends the same request again. The chain's balance has the last word.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/gateway/pay/lease.ts';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess } from '../support/process.ts';

let paid: PaidTollgate;
let holding: (() => void) | undefined;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['* /thing/* 0.10'],
    handle: (req, res) => {
      req.resume();
      res.writeHead(200, { 'content-type': 'text/plain' });
      if (!req.url?.includes('mid_body') || holding !== undefined) {
        res.end(`thing of ${req.url ?? ''}`);
        return;
      }
      res.write('half of ');
      holding = () => res.end('it');
    },
  });
}, 180_000);

afterAll(() => paid?.stop());

describe.each(CRASH_POINTS)('killed %s', (stop) => {
  test.each(['GET', 'POST'])(
    'behaviour: %s is charged once and delivered, and the ledger equals the chain',
    async (method) => {
      const target = `/thing/${stop}?${method}`;
      const before = await paid.earned();
      holding = undefined;
      await paid.restart({ TOLLGATE_TEST_STOP_AT: stop });
      const credential = await paid.sign(await paid.quote(target, method));
      const head = paid.pay(target, credential, { method });
      const first = head.then(
        async (response) => (await response.text().catch(() => 'broken')) !== 'broken',
        () => false,
      );
      if (stop === 'mid_body') await head;
      else await paid.tollgate().line(({ msg, ['at']: at }) => msg === 'stopped for a test' && at === stop);
      const movedBefore = (await paid.earned()) - before;
      expect(movedBefore).toBe(['after_claim', 'after_settle_started'].includes(stop) ? 0n : 100_000n);
      if (stop === 'before_delivered') expect(await first).toBe(true);

      // It is killed here, with SIGKILL.
      await paid.restart();
      const ready = performance.now();
      expect(await first).toBe(stop === 'before_delivered');
      const again = await until('the payer has what was paid for', async () => {
        await paid.chain.mine(1);
        const response = await paid.pay(target, credential, { method });
        const body = await response.text();
        // Never 402: the payment is the payer's word for good.
        if (response.status !== 200) expect([409, 503]).toContain(response.status);
        return response.status === 200 ? { body, receipt: response.headers.get('payment-response') } : undefined;
      });
      // Of a lease of the process that died nothing is waited for.
      expect(performance.now() - ready).toBeLessThan(LEASE_MS - 2_000);
      expect(again.body).toBe(`thing of ${target}`);
      expect(again.receipt).not.toBe(null);
      expect((await paid.earned()) - before).toBe(100_000n);
      const [charge] = await until('it is delivered', async () => {
        const charges = await paid.charges();
        return charges[0]?.status === 'delivered' ? charges : undefined;
      });
      expect(charge?.amount_atomic).toBe('100000');
      // A delivered payment buys nothing more than the very same answer.
      const asked = paid.upstream.seen.length;
      const replayed = await paid.pay(target, credential, { method });
      expect([replayed.status, await replayed.text()]).toEqual([200, again.body]);
      expect(paid.upstream.seen.length).toBe(asked);
      await paid.restart();
      expect((await paid.pay(target, credential, { method })).status).toBe(402);
    },
  );
});

test('behaviour: after all these crashes the ledger equals the chain, to the last unit', async () => {
  const charges = await paid.charges();
  expect(charges.map(({ status }) => status)).toEqual(Array(2 * CRASH_POINTS.length).fill('delivered'));
  const sum = charges.reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(await paid.earned());
});

test.each([
  ['in production', { TOLLGATE_TEST_STOP_AT: 'after_claim', NODE_ENV: 'production' }, 'NODE_ENV is production'],
  ['at an unknown point', { TOLLGATE_TEST_STOP_AT: 'somewhere' }, 'the points are'],
])('refuses: to stop %s', async (_when, env, why) => {
  // One process serves a store.
  await paid.tollgate().kill();
  const refused = await startProcess({ args: ['serve', '-c', paid.config], env, listeners: [] });
  const code = await refused.exited;
  expect(code).not.toBe(0);
  expect(refused.stderr() + JSON.stringify(refused.lines)).toContain(why);
});
