// Payments on Solana that never land, over a real virtual machine: what cannot be known is not said, the end is read from what
// is finalized, and whoever had an answer for nothing pays first from then on.
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until, type ChargeSeen } from '../support/paid-tollgate.ts';
import { BLOCKHASH_BLOCKS, FINAL_BLOCKS } from '../support/svm/chain.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';
import { createSvmPayer } from '../support/svm/payer.ts';
import { base58 } from '../support/svm/wire.ts';

const PRICE = 100_000n;
let paid: PaidSolana;
const held = new Map<string, ServerResponse>();

beforeAll(async () => {
  paid = await startPaidSolana({
    routes: ['* /thing/* 0.10'],
    handle: (req, res) => {
      req.resume();
      if (req.url?.includes('late') === true) held.set(req.url, res);
      else res.end(`thing of ${req.url ?? ''}`);
    },
  });
}, 60_000);
afterAll(() => paid?.stop());

const stateOf = async (id: string): Promise<ChargeSeen | undefined> =>
  (await paid.charges()).find((charge) => charge.id === id);
const callsOf = (method: string): readonly Record<string, unknown>[] =>
  paid.chain.calls
    .filter((call) => call.method === method)
    .map(({ params }) => params.at(-1) as Record<string, unknown>);
/** One more look of the reconciler, which reads the finalized height in each, has come to its end. */
async function looked(id: string): Promise<void> {
  const before = callsOf('getEpochInfo').length;
  const searched = callsOf('getSignaturesForAddress').length;
  await until('the reconciler looks', async () => callsOf('getEpochInfo').length > before, 20_000);
  await until('it searches', async () => callsOf('getSignaturesForAddress').length > searched);
  expect((await stateOf(id))?.status).toBe('settling');
}

/** A GET whose blockhash is too old when the upstream has answered; resolves with its charge, whose end is not known. */
async function payTooLate(
  target: string,
  by = paid.payer,
): Promise<{ id: string; credential: string; lastValid: number }> {
  const credential = await paid.sign(target, 'GET', by);
  const response = paid.pay(target, credential);
  await until('the upstream was asked', async () => held.has(target));
  paid.chain.mine(BLOCKHASH_BLOCKS + 1);
  held.get(target)?.end('an answer for nothing');
  const answer = await response;
  const body = (await answer.json()) as { code: string; charge_id: string };
  expect([answer.status, body.code, answer.headers.get('payment-required')]).toEqual([503, 'settlement_unknown', null]);
  const lastValid = paid.chain.height() + BLOCKHASH_BLOCKS;
  return { id: body.charge_id, credential, lastValid };
}

test('behaviour: an expired transaction ends as failed when that is finalized, not before, and its payer pays first then', async () => {
  const before = paid.earned();
  const { id, credential, lastValid } = await payTooLate('/thing/late');
  // The first look alone reads until when it can land; a request never does.
  expect(callsOf('getBlockHeight')).toEqual([]);
  await until('the first look', async () => callsOf('getBlockHeight').length > 0);
  expect(callsOf('getBlockHeight')).toEqual([{ commitment: 'processed' }]);
  await until('it was written', async () => (await stateOf(id))?.['reason'] === 'payment_unused');

  // The very last block in which it can land is finalized.
  paid.chain.mine(lastValid + FINAL_BLOCKS - paid.chain.height());
  await looked(id);
  expect((await paid.pay('/thing/late', credential)).status).toBe(503);
  paid.chain.mine();
  const ended = await until(
    'it ends',
    async () => {
      const charge = await stateOf(id);
      return charge?.status === 'failed' && charge;
    },
    30_000,
  );
  expect(ended).toMatchObject({ failed_by: 'chain', reason: 'transaction_expired', settle: 'before_response' });
  expect(callsOf('getSignaturesForAddress').at(-1)).toMatchObject({ commitment: 'finalized' });
  expect(callsOf('getBlockHeight')).toHaveLength(1);

  const again = await paid.pay('/thing/late', credential);
  expect([again.status, again.headers.get('tollgate-reason')]).toEqual([402, 'payment_already_used']);
  expect(paid.earned() - before).toBe(0n);

  // The upstream ran for nothing: for the next hour it is asked after the money has come.
  let settle = (): void => undefined;
  paid.facilitator.fault('settle', { kind: 'wait', until: new Promise<void>((resolve) => (settle = resolve)) });
  const [settling, asked] = [paid.facilitator.next('settle'), paid.upstream.seen.length];
  const response = paid.pay('/thing/next', await paid.sign('/thing/next'));
  await settling;
  expect(paid.upstream.seen.length).toBe(asked);
  settle();
  expect([(await response).status, paid.earned() - before]).toEqual([200, PRICE]);
  expect((await paid.charges())[0]).toMatchObject({ settle: 'before_forward' });
}, 60_000);

test('behaviour: a search of the chain that a kill cut off goes on where it stopped, and ends nothing before', async () => {
  const by = await createSvmPayer(paid.chain, 1_000_000n, 'another');
  const before = paid.earned();
  const { id, credential, lastValid } = await payTooLate('/thing/too-late', by);
  await until('the first look', async () => (await stateOf(id))?.['reason'] === 'payment_unused');
  // From here on the node lists what strangers sent to this account: ten full pages.
  const pages = Array.from({ length: 10 }, (_, page) =>
    Array.from({ length: 100 }, (_none, at) => {
      const bytes = Buffer.alloc(64, page + 1);
      bytes.writeUInt8(at, 0);
      return { signature: base58(bytes), blockTime: null };
    }),
  );
  paid.chain.mine(lastValid + FINAL_BLOCKS + 1 - paid.chain.height());
  const searches = (): readonly Record<string, unknown>[] => callsOf('getSignaturesForAddress');
  const last = pages.at(-1)?.at(-1)?.signature;
  let begun: number;
  do {
    // A look that was under way may have taken the pages of the one that is meant.
    begun = searches().length;
    for (const result of pages) paid.chain.answer('getSignaturesForAddress', { result });
    await until('ten pages were read', async () => searches().length >= begun + pages.length, 30_000);
  } while (searches()[begun]?.['commitment'] !== 'finalized');
  expect(searches()[begun]).not.toHaveProperty('before');
  // Its node is away from then on: the next look begins when what this one found was written.
  const looks = callsOf('getEpochInfo').length;
  paid.chain.answer('getEpochInfo', 'drop', 2);
  await until('the next look', async () => callsOf('getEpochInfo').length > looks, 20_000);
  await paid.restart();
  // Its payer asks once more, so that the next look is soon.
  expect((await paid.pay('/thing/too-late', credential)).status).toBe(503);
  await until('it ends', async () => (await stateOf(id))?.status === 'failed', 60_000);
  const finalized = searches()
    .slice(begun + pages.length)
    .filter(({ commitment }) => commitment === 'finalized');
  expect(finalized.map(({ before: from }) => from)).toEqual([last]);
  expect(await stateOf(id)).toMatchObject({ failed_by: 'chain', reason: 'transaction_expired' });
  expect(paid.earned() - before).toBe(0n);
}, 120_000);

test('behaviour: the ledger and the chain agree to the last unit', async () => {
  const settled = (await paid.charges()).filter(({ status }) => ['settled', 'delivered'].includes(status));
  const sum = settled.reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(paid.earned());
});
