// A thing that is paid for while Tollgate is stopped dead at a named point, killed and started again: what the tests of all
// chains share about it. The chain's balance has the last word.
import type { RequestListener } from 'node:http';
import { expect } from 'vitest';
import { LEASE_MS } from '../../src/gateway/pay/lease.ts';
import type { CrashPoint } from './crash-point.ts';
import { until } from './paid-tollgate.ts';
import type { TollgateProcess } from './process.ts';

export const THINGS = ['* /thing/* 0.10'];
const PRICE = 100_000n;

/** `hold`: the next answer in whose target `mid_body` stands never ends. */
export function createThings(): { readonly handle: RequestListener; readonly hold: () => void } {
  let held = false;
  return {
    hold: () => void (held = false),
    handle: (req, res) => {
      req.resume();
      res.writeHead(200, { 'content-type': 'text/plain' });
      if (!req.url?.includes('mid_body') || held) {
        res.end(`thing of ${req.url ?? ''}`);
        return;
      }
      res.write('half of ');
      held = true;
    },
  };
}

export type Killable = {
  readonly pay: (target: string, credential: string, init?: RequestInit) => Promise<Response>;
  readonly earned: () => bigint | Promise<bigint>;
  readonly tollgate: () => TollgateProcess;
  readonly restart: () => Promise<void>;
};

/** Pays, kills at `stop`, starts again and asks again until what was paid for is there: once, for one price. */
export async function payThroughKill(
  paid: Killable,
  { stop, target, method, credential }: { stop: CrashPoint; target: string; method: string; credential: string },
  beforeEachAsk: () => Promise<unknown> = async () => undefined,
): Promise<{ readonly body: string; readonly receipt: string | null }> {
  const before = await paid.earned();
  const head = paid.pay(target, credential, { method });
  const first = head.then(
    async (response) => (await response.text().catch(() => 'broken')) !== 'broken',
    () => false,
  );
  if (stop === 'mid_body') await head;
  else await paid.tollgate().line(({ msg, ['at']: at }) => msg === 'stopped for a test' && at === stop);
  const moved = (await paid.earned()) - before;
  expect(moved).toBe(['after_claim', 'after_settle_started'].includes(stop) ? 0n : PRICE);
  if (stop === 'before_delivered') expect(await first).toBe(true);

  // It is killed here, with SIGKILL.
  await paid.restart();
  const ready = performance.now();
  expect(await first).toBe(stop === 'before_delivered');
  const again = await until('the payer has what was paid for', async () => {
    await beforeEachAsk();
    const response = await paid.pay(target, credential, { method });
    const body = await response.text();
    // Never 402: the payment is the payer's word for good.
    if (response.status !== 200) expect([409, 503]).toContain(response.status);
    return response.status === 200 ? { body, receipt: response.headers.get('payment-response') } : undefined;
  });
  // Of a lease of the process that died nothing is waited for.
  expect(performance.now() - ready).toBeLessThan(LEASE_MS - 2_000);
  expect(again.body).toBe(`thing of ${target}`);
  expect((await paid.earned()) - before).toBe(PRICE);
  return again;
}
