// A payer with tokens on a Solana chain of a test, and the reference client over its key.
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { keepSecret } from '../canaries.ts';
import type { SvmChain } from './chain.ts';
import { keyOf, type Key } from './wire.ts';

export type SvmPayer = {
  readonly address: string;
  readonly key: Key;
  readonly client: x402Client;
  /** Pays whatever is asked. */
  readonly fetch: typeof globalThis.fetch;
};

/** `name`: of its key. */
export async function createSvmPayer(chain: SvmChain, funds = 100_000_000n, name = 'payer'): Promise<SvmPayer> {
  const key = keyOf(name);
  keepSecret('a private key', key.seed.toString('hex'));
  if (funds > 0n) chain.mint(key.address, funds);
  const signer = await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(key.seed));
  const client = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl: chain.rpcUrl }));
  return { address: key.address, key, client, fetch: wrapFetchWithPayment(fetch, client) };
}
