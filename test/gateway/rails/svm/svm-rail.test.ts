// The rail of Solana towards facilitators: when a way is offered, and who is asked.
import { afterEach, expect, test } from 'vitest';
import { SVM_NETWORK } from '../../../support/svm/chain.ts';
import { encode, facilitatorAt, makeRail, startScripted, type Answering, type Scripted } from '../kit.ts';
import { ACCEPTED, FEE_PAYER, OFFER, PAYER, readPayment, SHOP, TRANSACTION, WAY } from './kit.ts';

const NOT_MANAGED = 'invalid_exact_svm_fee_payer_not_managed_by_facilitator';

const servers: Scripted[] = [];
afterEach(() => Promise.all(servers.splice(0).map(({ close }) => close())));

const json =
  (body: unknown): Answering =>
  (_, res) =>
    void res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

async function startWith(...answers: readonly Answering[]) {
  for (const answer of answers) servers.push(await startScripted(answer));
  const facilitators = servers.map(({ url }) => facilitatorAt(url));
  const { rail } = makeRail({ services: () => ({ facilitators, rpcUrls: [], rpcPublic: false, confirmations: 1 }) });
  return rail;
}

test('behaviour: a way is offered once a facilitator named a fee payer, in version 2 alone', async () => {
  const kind = { x402Version: 2, scheme: 'exact', network: SVM_NETWORK, extra: { feePayer: FEE_PAYER.address } };
  const rail = await startWith(json({ kinds: [] }), json({ kinds: [{ ...kind, x402Version: 1 }, kind] }));
  expect(rail.requirement(OFFER, { chargeId: 'chg_1', upfront: false }, 2)).toBeUndefined();
  const before = rail.revision();
  const stop = rail.watch(() => [WAY]);
  await expect.poll(() => rail.revision()).toBeGreaterThan(before);
  stop();
  expect(rail.requirement(OFFER, { chargeId: 'chg_1', upfront: false }, 2)).toMatchObject({
    ...{ network: SVM_NETWORK, amount: '10000', payTo: SHOP.address },
    extra: { feePayer: FEE_PAYER.address, external_ref: 'chg_1' },
  });
  expect(rail.requirement(OFFER, { chargeId: 'chg_1', upfront: false }, 1)).toBeUndefined();
});

test('behaviour: the facilitator that verified settles, and it is told the fee payer of the payment', async () => {
  const settled = { success: true, transaction: '1'.repeat(64), network: SVM_NETWORK, payer: PAYER.address };
  const rail = await startWith(json({ isValid: false, invalidReason: NOT_MANAGED }), (req, res, body) =>
    json(req.url === '/verify' ? { isValid: true, payer: PAYER.address } : settled)(req, res, body),
  );
  const presented = readPayment(rail);
  expect(rail.check(presented, OFFER, 0)).toBeUndefined();
  expect(await rail.verify(presented, OFFER)).toMatchObject({ kind: 'valid', payer: PAYER.address });
  const named: string[] = [];
  const end = await rail.settle(presented, OFFER, { afterUnknown: false, via: undefined }, async (via) => {
    named.push(via);
    return true;
  });
  expect(end).toMatchObject({ kind: 'settled', via: rail.firstVia(presented, OFFER) });
  expect(named).toEqual([rail.firstVia(presented, OFFER)]);
  const [first, second] = servers;
  expect(first?.requests.map(({ url }) => url)).toEqual(['/verify']);
  const { paymentPayload, paymentRequirements } = JSON.parse(second?.requests.at(-1)?.body ?? '') as Record<
    'paymentPayload' | 'paymentRequirements',
    Record<string, unknown>
  >;
  expect(paymentRequirements['extra']).toEqual({ feePayer: FEE_PAYER.address });
  expect(paymentPayload).toMatchObject({ accepted: paymentRequirements, payload: { transaction: TRANSACTION } });
});

test('refuses: a payment whose fee payer nobody pays for', async () => {
  const declines = json({ isValid: false, invalidReason: NOT_MANAGED });
  const rail = await startWith(declines, declines);
  const expected = 'pay with the fee payer that is named now';
  expect(await rail.verify(readPayment(rail), OFFER)).toEqual({ kind: 'refused', reason: NOT_MANAGED, expected });
});

test('refuses: a payment of version 1, and a payload that is none', async () => {
  const rail = await startWith();
  const v1 = encode({
    x402Version: 1,
    scheme: 'exact',
    network: 'solana-devnet',
    payload: { transaction: TRANSACTION },
  });
  expect(rail.read({ version: 1, value: v1 }, [WAY])).toMatchObject({ code: 'payment_malformed' });
  const value = encode({ x402Version: 2, accepted: ACCEPTED, payload: { transaction: 'AAAA' } });
  expect(rail.read({ version: 2, value }, [WAY])).toMatchObject({ code: 'payment_malformed' });
});
