// Public clients as they are, against an API that answers our 402 and takes payments by the rail alone, with a real
// facilitator and a real chain: what @x402/fetch sends is read, checked, verified and settled, over v2 and v1.
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Offer } from '../../../src/domain/payment/offer.ts';
import { createPaymentRequired } from '../../../src/domain/payment/payment-required.ts';
import type { PresentedPayment } from '../../../src/gateway/rails/rail.ts';
import { route } from '../../cases/routes.ts';
import { startChain, type Chain } from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import type { TestFacilitator } from '../../support/facilitator-server.ts';
import { createPayer, type Payer } from '../../support/chain/payer.ts';
import { FRESH, GO, PAY_TO, PRICE, facilitatorAt, makeRail, makeReceiver, offerOf } from './kit.ts';

const { rail } = makeRail();
let chain: Chain;
let facilitator: TestFacilitator;
let payer: Payer;
let api: Server;
let url: string;
const paid: PresentedPayment[] = [];

beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  payer = await createPayer(chain);
  const receiver = makeReceiver({ facilitators: [facilitatorAt(facilitator.url)] });
  const terms = offerOf(receiver);
  const offer: Offer = {
    receiver,
    ways: [{ way: terms.way, networkName: 'base-sepolia', amount: terms.amount }],
    description: terms.description,
    price: { units: 1n, scale: 1 },
    amount: '0.1',
    termsHash: Buffer.alloc(8),
    route: route('GET /report', { description: 'Bericht — café 日本', source: 'config' }),
  };
  const render = createPaymentRequired({ v1: true, requirement: rail.requirement });
  api = createServer((req, res) => {
    const answer = async (): Promise<void> => {
      const v2 = req.headers['payment-signature'];
      const value = v2 ?? req.headers['x-payment'];
      if (typeof value !== 'string') {
        const origin = `http://${req.headers.host}`;
        const rendered = render({
          offer,
          chargeId: { signed: 'chg_', nonce: '77' },
          method: 'GET',
          origin,
          path: '/report',
          reason: 'payment_required',
        });
        if (rendered === undefined) throw new Error('nothing can be offered');
        const { body, header } = rendered;
        res.writeHead(402, { 'content-type': 'application/json', 'payment-required': header }).end(body);
        return;
      }
      const presented = rail.read({ version: v2 === undefined ? 1 : 2, value }, [terms.way]);
      if (!('key' in presented)) throw new Error(JSON.stringify(presented));
      const refusal = rail.check(presented, terms, Date.now());
      if (refusal !== undefined) throw new Error(refusal.reason);
      const verification = await rail.verify(presented, terms);
      if (verification.kind !== 'valid') throw new Error(JSON.stringify(verification));
      const settlement = await rail.settle(presented, terms, FRESH, GO);
      if (settlement.kind !== 'settled') throw new Error(JSON.stringify(settlement));
      paid.push(presented);
      const { transaction } = settlement;
      const settled = { payment: presented.key, amount: PRICE, transaction, reason: undefined };
      const [name, receipt] = rail.receiptHeader(presented.version, settled);
      res.writeHead(200, { [name]: receipt }).end('the report');
    };
    answer().catch((error: unknown) => res.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  const address = api.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/report`;
});
afterAll(async () => {
  api?.close();
  api?.closeAllConnections();
  await facilitator?.close();
  await chain?.stop();
});

const receiptOf = (response: Response, name: string): unknown =>
  JSON.parse(Buffer.from(response.headers.get(name) ?? '', 'base64').toString());

test('behaviour: @x402/fetch pays over v2, and gives the charge id back', async () => {
  const before = await chain.balanceOf(PAY_TO);
  const response = await payer.fetch(url);
  expect([response.status, await response.text()]).toEqual([200, 'the report']);
  expect(paid.at(-1)).toMatchObject({ version: 2, chargeId: 'chg_77' });
  expect(await chain.balanceOf(PAY_TO)).toBe(before + PRICE);
  expect(receiptOf(response, 'payment-response')).toMatchObject({
    success: true,
    network: 'eip155:84532',
    payer: payer.address.toLowerCase(),
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
  });
});

test('behaviour: @x402/fetch with its v1 scheme, behind a fetch that hides the v2 header, pays over v1', async () => {
  const before = await chain.balanceOf(PAY_TO);
  const response = await payer.fetchV1(url);
  expect([response.status, await response.text()]).toEqual([200, 'the report']);
  expect(paid.at(-1)).toMatchObject({
    version: 1,
    payload: { envelope: { network: 'base-sepolia' } },
    chargeId: undefined,
  });
  expect(await chain.balanceOf(PAY_TO)).toBe(before + PRICE);
  expect(receiptOf(response, 'x-payment-response')).toMatchObject({ success: true, network: 'base-sepolia' });
});
