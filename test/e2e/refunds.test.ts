// Refunds over a real chain and a real process: an operator sends tokens back and Tollgate records what the chain proves, and
// nothing that it does not. What is recorded survives a kill, is told to a webhook, and stands in every book.
import { encodeFunctionData, type Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MULTICALL, MULTICALL_ABI, testAccount, USDC, USDC_ABI } from '../support/chain/chain.ts';
import { createPayer } from '../support/chain/payer.ts';
import { startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER_TOKEN = '0x00000000000000000000000000000000000070C0';
const STRANGER = '0x9999999999999999999999999999999999999999';
const CONFIRMATIONS = 2;

let paid: PaidTollgate;
let token: string;
let hook: WebhookReceiver;

beforeAll(async () => {
  hook = await startWebhookReceiver([SECRET], () => 'take');
  paid = await startPaidTollgate({
    routes: ['GET /report 0.10', 'POST /fails 0.10'],
    receiver: `, confirmations: ${CONFIRMATIONS}`,
    more: `webhooks: [{ id: books, url: "${hook.url}", secret: ${SECRET}, events: [charge.refunded], allow_private: true }]`,
    handle: (req, res) => {
      req.resume();
      res.statusCode = req.url === '/fails' ? 500 : 200;
      res.end('here');
    },
  });
  token = await paid.cli('token');
  const code = await paid.chain.rpc('eth_getCode', [USDC, 'latest']);
  await paid.chain.rpc('anvil_setCode', [OTHER_TOKEN, code]);
}, 180_000);
afterAll(async () => {
  await paid?.stop();
  hook?.close();
});

/** So that the test's watch on secrets does not take a charge id in a query for part of a secret. */
const encoded = (text: string): string => text.replace(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`);
const ask = async (method: string, path: string, body?: object): Promise<Response> =>
  fetch(`${paid.tollgate().url('registry')}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
type Answer = { readonly status: number; readonly code: string | undefined; readonly charge: ChargeSeen };
const refund = async (id: string, body: object): Promise<Answer> => {
  const response = await ask('POST', `/v1/billing/charges/${id}/refunds`, body);
  const charge = (await response.json()) as ChargeSeen;
  return { status: response.status, code: charge['code'] as string | undefined, charge };
};
const said = async (id: string, body: object): Promise<string> => {
  const { status, code = '' } = await refund(id, body);
  return `${status} ${code}`.trim();
};
const chargeOf = async (id: string): Promise<ChargeSeen> =>
  (await (await ask('GET', `/v1/billing/charges/${id}`)).json()) as ChargeSeen;
/** A report that was bought; the id of its charge. */
const bought = async (): Promise<string> => {
  const before = new Set((await paid.charges()).map(({ id }) => id));
  expect((await paid.payer.fetch(paid.url('/report'))).status).toBe(200);
  return until(
    'the charge is delivered',
    async () => (await paid.charges()).find(({ id, status }) => !before.has(id) && status === 'delivered')?.id,
  );
};
const send = (to: string, amount: bigint): Promise<string> => paid.chain.write('transfer', [to, amount]);
/** Sent and deep enough. */
const sent = async (amount: bigint, to = paid.payer.address): Promise<string> => {
  const hash = await send(to, amount);
  await paid.chain.mine(CONFIRMATIONS - 1);
  return hash;
};
const sendAs = async (to: string, data: string): Promise<string> => {
  const hash = await paid.chain.rpc('eth_sendTransaction', [{ from: testAccount(5).address, to, data }]);
  await paid.chain.mine(CONFIRMATIONS);
  return String(hash);
};
/** Money that the books show as given back. */
const given = async (): Promise<bigint> => {
  const { data } = (await (await ask('GET', '/v1/billing/summary?bucket=total')).json()) as {
    data: { refunded_atomic: string }[];
  };
  return data.reduce((sum, { refunded_atomic: atomic }) => sum + BigInt(atomic), 0n);
};
const metric = async (): Promise<string | undefined> => {
  const text = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
  return /^tollgate_refunds_total\{currency="USD"\} (.*)$/m.exec(text)?.[1];
};

describe('refunds', () => {
  beforeAll(async () => {
    await paid.chain.mint(testAccount(1).address, 1_000_000_000n);
    await paid.chain.mint(MULTICALL, 1_000_000_000n);
  });

  test(
    'behaviour: what the chain proves is recorded, once, and stands in the charge, the list, the sums, the log, the audit log and the webhook',
    { timeout: 60_000 },
    async () => {
      const id = await bought();
      expect((await chargeOf(id))['refunded']).toBeNull();
      const part = await sent(40_000n);
      const first = await refund(id, {
        transaction: part.toUpperCase().replace('0X', '0x'),
        amount: '0.04',
        reason: 'too late',
      });
      expect(first.status).toBe(201);
      expect(first.charge).toMatchObject({
        status: 'delivered',
        refunded_at: null,
        refunded: { amount: '0.04', transactions: [part] },
        refunds: [
          { transaction: part, proven: true, amount: '0.04', amount_atomic: '40000', reason: 'too late', log_index: 0 },
        ],
      });
      expect(await said(id, { transaction: part, amount: '0.04' })).toBe('200');
      expect(await said(id, { transaction: part })).toBe('200');
      expect(await said(id, { transaction: part, amount: '0.05' })).toBe('409 duplicate');
      const rest = await sent(60_000n);
      expect(await said(id, { transaction: rest, amount: '0.0600001' })).toBe('422 invalid');
      expect(await said(id, { transaction: rest, amount: '0.07' })).toBe('409 refund_exceeds');
      expect(await said(id, { transaction: rest })).toBe('201');
      expect(await said(id, { transaction: await sent(1n), amount: '0.000001' })).toBe('409 refund_exceeds');

      const whole = await chargeOf(id);
      expect(whole).toMatchObject({ refunded: { amount: '0.10', transactions: [part, rest] }, amount: '0.10' });
      expect(whole['refunded_at']).toEqual(expect.any(String));
      expect((await paid.charges()).find((each) => each.id === id)).toEqual(whole);
      const summary = (await (await ask('GET', '/v1/billing/summary?bucket=total')).json()) as { data: object[] };
      expect(summary.data).toMatchObject([{ charges: 1, amount: '0.10', refunded: '0.10', refunded_atomic: '100000' }]);
      const log = await paid
        .tollgate()
        .line(({ msg, transaction }) => msg === 'charge refunded' && transaction === rest);
      expect(log).toMatchObject({
        charge_id: id,
        amount: '0.06',
        currency: 'USD',
        proven: true,
        by: 'dashboard:tollgate-cli',
      });
      const audit = (await (await ask('GET', `/v1/audit?subject=${encoded(id)}`)).json()) as {
        data: Record<string, unknown>[];
      };
      expect(audit.data.map(({ kind, via }) => `${String(kind)} ${String(via)}`)).toEqual([
        'charge.refunded jwt',
        'charge.refunded jwt',
      ]);
      await until('both were told', async () => hook.taken.length === 2);
      expect(hook.taken.map(({ type, data }) => [type, data['id'], data['refunded']])).toEqual([
        ['charge.refunded', id, { amount: '0.04', transactions: [part] }],
        ['charge.refunded', id, { amount: '0.10', transactions: [part, rest] }],
      ]);
      expect(hook.wrong).toEqual([]);
      // What is scraped was read a moment before.
      await until('the metric has both', async () => (await metric()) === '0.1');
      const history = (await (await ask('GET', `/v1/billing/charges/${id}/history`)).json()) as {
        data: { event: string }[];
      };
      expect(history.data.filter(({ event }) => event === 'refunded')).toHaveLength(2);
      expect(await paid.cli('why', id)).toContain(`was given back by ${part}, ${rest}`);
    },
  );

  test(
    'attack: no transfer but one of the charge’s token to its payer, young and deep enough, proves a refund',
    { timeout: 60_000 },
    async () => {
      const old = await sent(100_000n);
      const id = await bought();
      const payment = String((await chargeOf(id))['transaction']);
      const unproven = async (what: string, transaction: string): Promise<void> =>
        expect([what, await said(id, { transaction })]).toEqual([what, '422 refund_unproven']);
      await unproven('older than the payment', old);
      await unproven('the payment itself', payment);
      await unproven('no transaction of the chain', `0x${'ab'.repeat(32)}`);
      await unproven('to somebody else', await sent(100_000n, STRANGER));
      await unproven('too little', await sent(99_999n));
      const transfer = encodeFunctionData({
        abi: USDC_ABI,
        functionName: 'transfer',
        args: [paid.payer.address, 100_000n],
      });
      const mint = encodeFunctionData({
        abi: USDC_ABI,
        functionName: 'mint',
        args: [testAccount(5).address, 100_000n],
      });
      await sendAs(OTHER_TOKEN, mint);
      await unproven('of another token', await sendAs(OTHER_TOKEN, transfer));
      const shallow = await send(paid.payer.address, 100_000n);
      const early = await refund(id, { transaction: shallow });
      expect([early.status, early.code]).toEqual([422, 'refund_unproven']);
      expect(early.charge['detail']).toContain('it is 1 deep, and 2 confirmations are asked for');
      await paid.chain.mine();
      expect(await said(id, { transaction: shallow })).toBe('201');

      const next = await bought();
      expect([await said(next, { transaction: shallow }), await said(id, { transaction: shallow })]).toEqual([
        '422 refund_unproven',
        '200',
      ]);
      expect((await chargeOf(next))['refunded']).toBeNull();
    },
  );

  test(
    'behaviour: of two transfers in one transaction each proves one refund, and a larger one is spared',
    { timeout: 60_000 },
    async () => {
      const [one, two, three] = [await bought(), await bought(), await bought()];
      const give = (amount: bigint): object => ({
        target: USDC,
        callData: encodeFunctionData({ abi: USDC_ABI, functionName: 'transfer', args: [paid.payer.address, amount] }),
      });
      const both = encodeFunctionData({
        abi: MULTICALL_ABI,
        functionName: 'tryAggregate',
        args: [true, [give(200_000n), give(100_000n)]],
      });
      const transaction = await sendAs(MULTICALL, both);
      expect((await refund(one, { transaction })).charge['refunds']).toMatchObject([{ log_index: 1, amount: '0.10' }]);
      expect((await refund(two, { transaction })).charge['refunds']).toMatchObject([{ log_index: 0, amount: '0.10' }]);
      expect(await said(three, { transaction })).toBe('422 refund_unproven');
    },
  );

  test(
    'attack: tokens that go from the payer to itself, or leave it again in the same transaction, prove nothing',
    { timeout: 60_000 },
    async () => {
      const id = await bought();
      const { address } = paid.payer;
      const moveFromPayer = async (to: string): Promise<Hex> => {
        const { signature, authorization } = await paid.payer.authorize({ to, value: 100_000n });
        const { from, value, validAfter, validBefore, nonce } = authorization;
        const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature];
        return encodeFunctionData({ abi: USDC_ABI, functionName: 'transferWithAuthorization', args });
      };
      const itself = await refund(id, { transaction: await sendAs(USDC, await moveFromPayer(address)) });
      expect([itself.status, itself.charge['detail']]).toEqual([
        422,
        expect.stringContaining("it moves none of the charge's token from somebody else"),
      ]);
      const give = encodeFunctionData({ abi: USDC_ABI, functionName: 'transfer', args: [address, 100_000n] });
      const calls = [give, await moveFromPayer(STRANGER)].map((callData) => ({ target: USDC, callData }));
      const both = encodeFunctionData({ abi: MULTICALL_ABI, functionName: 'tryAggregate', args: [true, calls] });
      const there = await refund(id, { transaction: await sendAs(MULTICALL, both) });
      expect([there.status, there.charge['detail']]).toEqual([
        422,
        expect.stringContaining("it takes the charge's token from the payer as well"),
      ]);
      expect((await chargeOf(id))['refunded']).toBeNull();
    },
  );

  test('attack: two refunds at once give no more back than was taken', { timeout: 60_000 }, async () => {
    const id = await bought();
    const transfers = [await sent(60_000n), await sent(60_000n)];
    const ends = await Promise.all(transfers.map((transaction) => said(id, { transaction, amount: '0.06' })));
    expect(ends.toSorted()).toEqual(['201', '409 refund_exceeds']);
    expect((await chargeOf(id))['refunded']).toMatchObject({ amount: '0.06' });
    const won = transfers[ends.indexOf('201')];
    const again = await Promise.all([1, 2, 3].map(() => said(id, { transaction: won })));
    expect(again).toEqual(['200', '200', '200']);
  });

  test('refuses: what says nothing that can be recorded', async () => {
    const id = await bought();
    const transaction = `0x${'cd'.repeat(32)}`;
    for (const body of [
      {},
      { transaction: 'x' },
      { transaction: `${transaction}\0` },
      { transaction: '5'.repeat(88) },
      { transaction, amount: 0.1 },
      { transaction, amount: '0' },
      { transaction, amount: '-1' },
      { transaction, amount: '1e3' },
      { transaction, reason: 'a\0b' },
      { transaction, reason: 'two\nlines' },
      { transaction, reason: 'x'.repeat(201) },
      { transaction, unproven: 'yes' },
      { transaction, amuont: '0.01' },
    ])
      expect([body, await said(id, body)]).toEqual([body, '422 invalid']);
    expect(await said(id, { transaction, amount: '999999999999' })).toBe('409 refund_exceeds');
    expect(await said('chg_unknown', { transaction })).toBe('404 not_found');
    // Nothing was taken for it.
    const poor = await createPayer(undefined, 0n);
    const credential = await paid.sign(await paid.quote('/report'), poor);
    expect((await paid.pay('/report', credential)).status).toBe(402);
    expect((await chargeOf(id))['refunded']).toBeNull();
  });

  test(
    'behaviour: what is owed is a file to pay from, at the command line and over HTTP, and leaves it once it was sent back',
    { timeout: 60_000 },
    async () => {
      for (let time = 0; time < 2; time++)
        expect((await paid.payer.fetchV1(paid.url('/fails'), { method: 'POST' })).status).toBe(500);
      const file = async (): Promise<string[][]> => {
        const response = await ask('GET', '/v1/billing/owed.csv');
        expect([response.status, response.headers.get('content-type')]).toEqual([
          200,
          'text/csv; charset=utf-8; header=present',
        ]);
        expect(response.headers.get('content-disposition')).toMatch(
          /^attachment; filename="owed-\d{4}-\d\d-\d\d\.csv"$/,
        );
        return (await response.text())
          .trimEnd()
          .split('\r\n')
          .map((line) => line.split(','));
      };
      const lines = await until('both are owed', async () => {
        const found = await file();
        return found.length === 3 && found;
      });
      expect(lines[0]).toEqual(['charge_id', 'network', 'asset', 'to', 'amount', 'amount_atomic', 'since', 'reason']);
      const [id = '', network, asset, to = '', amount, atomic = '', since, reason] = lines[1] ?? [];
      expect([network, asset?.toLowerCase(), to, amount, atomic, reason]).toEqual([
        ...['eip155:84532', USDC.toLowerCase(), paid.payer.address.toLowerCase(), '0.10', '100000', 'upstream'],
      ]);
      expect(new Date(since ?? '').getTime()).toBeGreaterThan(0);
      expect((await paid.cli('charges', 'list', '--owed', '--csv')).split(/\r?\n/)).toEqual(
        lines.map((line) => line.join(',')),
      );
      // Paid by the file.
      const part = await sent(30_000n, to);
      expect(await paid.cli('charges', 'refund', id, '--tx', part, '--amount', '0.03', '--reason', 'half')).toBe(
        `${id}\trefunded in part\t0.03`,
      );
      expect((await file())[1]?.slice(4, 6)).toEqual(['0.07', '70000']);
      expect((await chargeOf(id))['owed']).toBe('upstream');
      const rest = await sent(70_000n, to);
      expect(await paid.cli('charges', 'refund', id, '--tx', rest)).toBe(`${id}\trefunded\t0.10`);
      expect(await paid.cli('charges', 'refund', id, '--tx', rest)).toBe(`${id}\trefunded\t0.10\trecorded before`);
      expect((await file()).map(([first]) => first)).toEqual(['charge_id', lines[2]?.[0]]);
      expect(await chargeOf(id)).toMatchObject({ owed: null, status: 'settled', refunded: { amount: '0.10' } });
      const wrong = await paid
        .cli('charges', 'refund', lines[2]?.[0] ?? '', '--tx', rest, '--amount', '0.07')
        .catch((error: unknown) => error);
      expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('its transfer proves another refund') });
    },
  );

  test(
    'behaviour: killed at any moment of a refund, it is recorded once or not at all, and asking again records it',
    { timeout: 90_000 },
    async () => {
      for (const afterMs of [0, 3, 12]) {
        const id = await bought();
        const before = await given();
        const transaction = await sent(100_000n);
        const asked = refund(id, { transaction }).catch(() => undefined);
        await new Promise((resolve) => {
          setTimeout(resolve, afterMs);
        });
        await paid.restart();
        const answer = await asked;
        const again = await refund(id, { transaction });
        expect([answer?.status === 201 ? [200] : [200, 201], again.status]).toEqual([
          expect.arrayContaining([again.status]),
          again.status,
        ]);
        expect(again.charge['refunds']).toHaveLength(1);
        expect(again.charge['refunded']).toEqual({ amount: '0.10', transactions: [transaction] });
        expect((await given()) - before).toBe(100_000n);
      }
    },
  );

  test(
    'behaviour: with the chain away nothing is taken for proven, and an operator’s word is recorded as that',
    { timeout: 60_000 },
    async () => {
      const id = await bought();
      const transaction = await sent(100_000n);
      await paid.chain.stop();
      const away = await ask('POST', `/v1/billing/charges/${id}/refunds`, { transaction });
      expect([away.status, ((await away.json()) as { code: string }).code]).toEqual([503, 'chain_unavailable']);
      expect(away.headers.get('retry-after')).toBe('5');
      const failed = await paid.cli('charges', 'refund', id, '--tx', transaction).catch((error: unknown) => error);
      expect(failed).toMatchObject({ code: 69, stderr: expect.stringContaining('--unproven') });
      expect((await chargeOf(id))['refunded']).toBeNull();
      expect(await paid.cli('charges', 'refund', id, '--tx', transaction, '--unproven')).toBe(`${id}\trefunded\t0.10`);
      expect(await chargeOf(id)).toMatchObject({
        refunded: { amount: '0.10', transactions: [transaction] },
        refunds: [{ proven: false, log_index: null, reason: null }],
      });
      expect(await paid.cli('charges', 'show', id)).toContain('not all of it proven on the chain');
    },
  );
});
