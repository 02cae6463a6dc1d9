// kill -9 at every named point of a charge's life, for real: Tollgate stops dead there (a switch for tests), is killed,
// starts again on what is on the disk, and the payer sends the same request again. The chain's balance has the last word.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { createThings, payThroughKill, THINGS } from '../support/killed-thing.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess } from '../support/process.ts';

let paid: PaidTollgate;
const things = createThings();

beforeAll(async () => {
  paid = await startPaidTollgate({ routes: THINGS, handle: things.handle });
}, 180_000);

afterAll(() => paid?.stop());

describe.each(CRASH_POINTS)('killed %s', (stop) => {
  test.each(['GET', 'POST'])(
    'behaviour: a %s whose process is killed is charged once and delivered, and the ledger equals the chain',
    async (method) => {
      const target = `/thing/${stop}?${method}`;
      things.hold();
      await paid.restart({ TOLLGATE_TEST_STOP_AT: stop });
      const credential = await paid.sign(await paid.quote(target, method));
      const what = { stop, target, method, credential };
      const again = await payThroughKill(paid, what, () => paid.chain.mine(1));
      expect(again.receipt).not.toBe(null);
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
