// A switch for tests only: stops the process dead at a named point of a charge's life, so that a test can kill it right
// there (TOLLGATE_TEST_STOP_AT). Read in this one place; refused where NODE_ENV is production, because a user who can set
// it takes the service away. What is on the disk at that point is what a crash would leave.
import type { Ledger } from '../domain/payment/ledger.ts';
import type { Rail } from '../gateway/rails/rail.ts';
import type { Log } from '../host/log.ts';

/** `mid_body` stops nothing: the test holds the upstream's answer there. */
export const STOPS = [
  'after_claim',
  'after_settle_started',
  'after_settle_sent',
  'after_settled',
  'mid_body',
  'before_delivered',
] as const;
export type Stop = (typeof STOPS)[number];

export type TestStop = {
  readonly ledger: <L extends Ledger>(ledger: L) => L;
  readonly rail: (rail: Rail) => Rail;
};

/** Undefined where the switch is off. Throws a sentence where it may not be on, or names no point. */
export function createTestStop(env: Readonly<Record<string, string | undefined>>, log: Log): TestStop | undefined {
  const wanted = env['TOLLGATE_TEST_STOP_AT'];
  if (wanted === undefined || wanted === '') return undefined;
  if (env['NODE_ENV'] === 'production')
    throw new Error('TOLLGATE_TEST_STOP_AT is for tests only and NODE_ENV is production: remove one of them');
  if (!STOPS.some((stop) => stop === wanted))
    throw new Error(`TOLLGATE_TEST_STOP_AT is "${wanted}"; the points are: ${STOPS.join(', ')}`);

  const reached = (stop: Stop): void => {
    if (stop !== wanted) return;
    log.warn('stopped for a test', { at: stop });
    // The whole of this thread, in the middle of whatever it does; only a signal ends it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };

  return {
    ledger: (ledger) => ({
      ...ledger,
      claim: async (claim, options) => {
        const claimed = await ledger.claim(claim, options);
        if (claimed.kind !== 'claimed') return claimed;
        reached('after_claim');
        // What settles at once is at the next point as well.
        if (claimed.charge.state === 'settling') reached('after_settle_started');
        return claimed;
      },
      advance: async (id, event, actor) => {
        if (event.kind === 'delivered') reached('before_delivered');
        const advanced = await ledger.advance(id, event, actor);
        if (advanced.kind === 'ok' && event.kind === 'settle_started') reached('after_settle_started');
        if (advanced.kind === 'ok' && event.kind === 'settled') reached('after_settled');
        return advanced;
      },
    }),
    rail: (rail) => ({
      ...rail,
      settle: async (presented, offer, history, sending) => {
        const end = await rail.settle(presented, offer, history, sending);
        reached('after_settle_sent');
        return end;
      },
    }),
  };
}
