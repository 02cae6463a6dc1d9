// The reference client and facilitator as they are, over a real virtual machine: what they agree on is what Tollgate has to
// read, and the chain of the tests behaves as theirs does.
import type { PaymentRequirements } from '@x402/core/types';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { checkTransaction, readTransfer } from '../../../../src/gateway/rails/svm/check.ts';
import { readTransaction, type Transaction } from '../../../../src/gateway/rails/svm/transaction.ts';
import { BLOCKHASH_BLOCKS, startSvm, SVM_NETWORK, SVM_USDC, type SvmChain } from '../../../support/svm/chain.ts';
import { startSvmFacilitator, type SvmFacilitator } from '../../../support/svm/facilitator.ts';
import { createSvmPayer, type SvmPayer } from '../../../support/svm/payer.ts';
import { keyOf } from '../../../support/svm/wire.ts';

const SHOP = keyOf('shop').address;
const DESTINATION = findTokenAccount(SHOP, SVM_USDC) ?? '';

let chain: SvmChain;
let facilitator: SvmFacilitator;
let payer: SvmPayer;
let requirements: PaymentRequirements;

beforeAll(async () => {
  chain = await startSvm();
  facilitator = await startSvmFacilitator(chain);
  payer = await createSvmPayer(chain);
  chain.mint(SHOP, 0n);
  requirements = {
    scheme: 'exact',
    network: SVM_NETWORK,
    amount: '10000',
    asset: SVM_USDC,
    payTo: SHOP,
    maxTimeoutSeconds: 60,
    extra: { feePayer: facilitator.feePayer },
  };
});
afterAll(async () => {
  await facilitator.close();
  await chain.stop();
});

type Payment = Awaited<ReturnType<SvmPayer['client']['createPaymentPayload']>>;

async function pay(by = payer): Promise<Payment> {
  const resource = { url: 'https://shop.example/', description: '', mimeType: '' };
  return by.client.createPaymentPayload({ x402Version: 2, resource, accepts: [requirements] });
}

async function ask(operation: 'verify' | 'settle', paymentPayload: Payment): Promise<Record<string, unknown>> {
  const response = await fetch(`${facilitator.url}/${operation}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: requirements }),
  });
  return (await response.json()) as Record<string, unknown>;
}

function transactionOf({ payload }: Payment): Transaction {
  const reading = readTransaction(String(payload['transaction']));
  if (!reading.ok) throw new Error(reading.why);
  return reading.transaction;
}

test('behaviour: a payment of the client passes our check, verifies, settles and arrives', async () => {
  const payment = await pay();
  const transaction = transactionOf(payment);
  const wanted = { mint: SVM_USDC, decimals: 6, destination: DESTINATION, amount: 10_000n };
  expect(checkTransaction(transaction, wanted)).toBeUndefined();
  expect(transaction.signers).toEqual([facilitator.feePayer, payer.address]);
  expect(readTransfer(transaction)?.authority).toBe(payer.address);

  const before = chain.balanceOf(SHOP) ?? 0n;
  expect(await ask('verify', payment)).toMatchObject({ isValid: true, payer: payer.address });
  const settled = await ask('settle', payment);
  expect(settled).toMatchObject({ success: true, payer: payer.address });
  expect((chain.balanceOf(SHOP) ?? 0n) - before).toBe(10_000n);

  // What is on the chain is the same message, whoever signed beside the payer.
  const landed = chain.rpc('getTransaction', [
    settled['transaction'],
    { commitment: 'confirmed', encoding: 'base64' },
  ]) as {
    transaction: [string];
    meta: { err: unknown };
  };
  expect(landed.meta.err).toBe(null);
  const seen = readTransaction(landed.transaction[0]);
  expect(seen.ok && seen.transaction.messageHash).toBe(transaction.messageHash);
  const source = readTransfer(transaction)?.source;
  const [newest] = chain.rpc('getSignaturesForAddress', [source, { commitment: 'confirmed' }]) as {
    signature: string;
  }[];
  expect(newest?.signature).toBe(settled['transaction']);
});

test('refuses: a payment of money that is not there, and one from an account that is not', async () => {
  const poor = await createSvmPayer(chain, 9_999n, 'poor');
  const simulation = { isValid: false, invalidReason: 'invalid_exact_svm_transaction_simulation_failed' };
  expect(await ask('verify', await pay(poor))).toMatchObject(simulation);
  const none = await createSvmPayer(chain, 0n, 'none');
  expect(await ask('verify', await pay(none))).toMatchObject(simulation);
});

test('refuses: one payment twice, and a payment that is too old', async () => {
  const [first, late] = [await pay(), await pay()];
  expect(await ask('settle', first)).toMatchObject({ success: true });
  expect(await ask('settle', first)).toMatchObject({ success: false, errorReason: 'duplicate_settlement' });
  facilitator.forget();
  const simulation = 'invalid_exact_svm_transaction_simulation_failed';
  expect(await ask('settle', first)).toMatchObject({ success: false, errorReason: simulation });

  // The client took the hash of the latest block, and one block came since.
  chain.mine(BLOCKHASH_BLOCKS - 1);
  expect(await ask('verify', late)).toMatchObject({ isValid: true });
  chain.mine();
  expect(await ask('verify', late)).toMatchObject({ isValid: false, invalidReason: simulation });
});
