// Claims as the journey makes them, each of a payment of its own.
import { createHash } from 'node:crypto';
import type { ChargedRequest, Claim, Proof } from '../../src/domain/payment/charge.ts';

export const NETWORK = 'eip155:84532';
export const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const ROUTE_ID = '11111111-1111-4111-8111-111111111111';
export const OTHER_ROUTE = '22222222-2222-4222-8222-222222222222';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const address = (n: number): string => `0x${n.toString(16).padStart(40, '0')}`;
export const hash32 = (n: number): string => `0x${n.toString(16).padStart(64, '0')}`;

export const requestOf = (method: string, target: string): ChargedRequest => ({
  method,
  path: target.split('?', 1)[0] ?? '',
  targetSha256: sha256(target),
});

/** The `n`th payment, of the `payer`th payer. */
export function claimOf(n: number, rest: Partial<Claim> & { payer?: number } = {}): Claim {
  const { payer = n, ...claim } = rest;
  const credential = claim.credential ?? Buffer.from(`credential ${n}`).toString('base64');
  return {
    id: `chg_test-${n}`,
    payment: { network: NETWORK, asset: ASSET.toLowerCase(), payer: address(payer), unique: hash32(n) },
    credential,
    credentialSha256: sha256(credential),
    x402Version: 2,
    way: {
      receiverId: 'default',
      network: NETWORK,
      scheme: 'exact',
      asset: ASSET,
      decimals: 6,
      payTo: address(0xbeef),
      timeoutSeconds: 300,
      terms: { name: 'USDC', version: '2' },
    },
    amount: 100_000n,
    deadline: 4_000_000_000n,
    route: { id: ROUTE_ID, method: 'GET', pattern: '/reports/*' },
    request: requestOf('GET', `/reports/${n}?key=value`),
    requestId: `request-${n}`,
    price: { amount: '0.10', currency: 'USD' },
    customerId: null,
    settle: 'before_forward',
    asker: null,
    askSha256: null,
    pass: null,
    ...claim,
  };
}

/** The same claim on another network. */
export function abroad(claim: Claim, network = 'eip155:8453'): Claim {
  return { ...claim, payment: { ...claim.payment, network }, way: { ...claim.way, network } };
}

/** What settles `claim`: a transfer of its own. */
export function proofOf(claim: Pick<Claim, 'payment' | 'amount'>, rest: Partial<Proof> = {}): Proof {
  return {
    transaction: claim.payment.unique,
    logIndex: null,
    amount: claim.amount,
    payer: claim.payment.payer,
    ...rest,
  };
}
