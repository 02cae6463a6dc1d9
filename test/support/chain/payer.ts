// Somebody with a wallet: the public x402 clients as they are, v2 by @x402/fetch and v1 by its v1 scheme behind a fetch
// that hides the v2 header. Also signs single credentials, for tests that take them apart.
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactEvmSchemeV1 } from '@x402/evm/v1';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import type { Hex } from 'viem';
import { keepSecret } from '../canaries.ts';
import { USDC, type Chain } from './chain.ts';

export type Payer = {
  readonly address: string;
  /** Pays whatever is asked, over x402 v2. */
  readonly fetch: typeof globalThis.fetch;
  /** The same over x402 v1. */
  readonly fetchV1: typeof globalThis.fetch;
  /** Signs an EIP-3009 authorization; any field can be set. Times in seconds. */
  readonly authorize: (wanted: Wanted) => Promise<Signed>;
  /** Voids a nonce on the chain. */
  readonly cancel: (nonce: string) => Promise<void>;
};

export type Authorization = {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
};
export type Signed = { readonly signature: string; readonly authorization: Authorization };
export type Wanted = {
  readonly to: string;
  readonly value: bigint;
  readonly validAfter?: bigint;
  readonly validBefore?: bigint;
  readonly nonce?: string;
  readonly chainId?: number;
  readonly asset?: string;
  readonly name?: string;
  readonly version?: string;
};

/** A payer with `funds` of the test token. It needs no ether. */
export async function createPayer(
  chain: Chain | undefined,
  funds = 100_000_000n,
  key: Hex = generatePrivateKey(),
): Promise<Payer> {
  keepSecret('a private key', key.slice(2));
  const account = privateKeyToAccount(key);
  if (chain !== undefined && funds > 0n) await chain.mint(account.address, funds);
  return payerOf(chain, account);
}

/** Whose signatures it makes: those of a key, or of a contract. */
export type Signer = Pick<PrivateKeyAccount, 'address' | 'signTypedData'>;

export function payerOf(chain: Chain | undefined, account: Signer): Payer {
  const v2 = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const v1 = new x402Client().registerV1('base-sepolia', new ExactEvmSchemeV1(account));
  const withoutV2: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!response.headers.has('payment-required')) return response;
    const headers = new Headers(response.headers);
    headers.delete('payment-required');
    return new Response(response.body, { status: response.status, headers });
  };
  const domain = (wanted: Partial<Wanted> = {}) => ({
    name: wanted.name ?? 'USDC',
    version: wanted.version ?? '2',
    chainId: wanted.chainId ?? 84_532,
    verifyingContract: (wanted.asset ?? USDC) as Hex,
  });
  return {
    address: account.address,
    cancel: async (nonce) => {
      const message = { authorizer: account.address, nonce: nonce as Hex };
      const primaryType = 'CancelAuthorization';
      const signature = await account.signTypedData({ domain: domain(), types: CANCEL_TYPES, primaryType, message });
      const [r, s, v] = [signature.slice(0, 66), `0x${signature.slice(66, 130)}`, Number(`0x${signature.slice(130)}`)];
      await chain?.write('cancelAuthorization', [account.address, nonce, v, r, s]);
    },
    fetch: wrapFetchWithPayment(fetch, v2),
    fetchV1: wrapFetchWithPayment(withoutV2, v1),
    authorize: async (wanted) => {
      const now = BigInt(Math.floor(Date.now() / 1000));
      const message = {
        from: account.address,
        to: wanted.to as Hex,
        value: wanted.value,
        validAfter: wanted.validAfter ?? 0n,
        validBefore: wanted.validBefore ?? now + 300n,
        nonce: (wanted.nonce ?? generatePrivateKey()) as Hex,
      };
      const signature = await account.signTypedData({
        domain: domain(wanted),
        types: AUTHORIZATION_TYPES,
        primaryType: 'TransferWithAuthorization',
        message,
      });
      const { from, to, nonce } = message;
      const [value, validAfter, validBefore] = [message.value, message.validAfter, message.validBefore].map(String);
      return {
        signature,
        authorization: {
          from,
          to,
          value: value ?? '',
          validAfter: validAfter ?? '',
          validBefore: validBefore ?? '',
          nonce,
        },
      };
    },
  };
}

const AUTHORIZATION_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

const CANCEL_TYPES = {
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;
