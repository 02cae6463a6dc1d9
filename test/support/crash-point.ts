// Stops the process dead at a named point of a charge's life (TOLLGATE_TEST_STOP_AT), so that a test can kill it right
// there. Refused if NODE_ENV is production. What is on the disk at that point is what a crash would leave.
import type { PaymentsWrapper } from '../../src/compose/payments.ts';
import type { Log } from '../../src/host/log.ts';

/** `mid_body` stops nothing: the test holds the upstream's answer there. */
export const CRASH_POINTS = [
  'after_claim',
  'after_settle_started',
  'after_settle_sent',
  'after_settled',
  'mid_body',
  'before_delivered',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Undefined if no point is named. Throws a sentence if it may not be on, or names no point. */
export function createCrashPoint(
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): PaymentsWrapper | undefined {
  const wanted = env['TOLLGATE_TEST_STOP_AT'];
  if (wanted === undefined || wanted === '') return undefined;
  if (env['NODE_ENV'] === 'production')
    throw new Error('TOLLGATE_TEST_STOP_AT is for tests only and NODE_ENV is production: remove one of them');
  if (!CRASH_POINTS.some((point) => point === wanted))
    throw new Error(`TOLLGATE_TEST_STOP_AT is "${wanted}"; the points are: ${CRASH_POINTS.join(', ')}`);

  const reached = (point: CrashPoint): void => {
    if (point !== wanted) return;
    log.warn('stopped for a test', { at: point });
    // The whole of this thread, in the middle of whatever it does; only a signal ends it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };

  return ({ ledger, rail }) => ({
    ledger: {
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
    },
    rail: {
      ...rail,
      settle: async (presented, offer, history, sending) => {
        const end = await rail.settle(presented, offer, history, sending);
        reached('after_settle_sent');
        return end;
      },
    },
  });
}
