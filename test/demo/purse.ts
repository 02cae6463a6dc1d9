// A purse of a demo that runs: what the public x402 client needs to pay from it, and what is in it.
import type { x402Client } from '@x402/fetch';
import type { DemoPurse } from '../../src/cli/demo-directory.ts';
import type { KnownNetwork } from '../../src/domain/payment/network.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

export type OpenPurse = {
  readonly network: KnownNetwork;
  /** Makes `client` pay from it. */
  readonly payWith: (client: x402Client) => void;
  /** In the smallest unit. Rejects if the chain does not answer. */
  readonly balance: () => Promise<bigint>;
};

/** `token`: its address. */
type Of = {
  readonly caip2: `${string}:${string}`;
  readonly token: string;
  readonly rpcUrl: string;
  readonly key: string;
};

export async function openPurse({ network: name, rpc_url: rpcUrl, key }: DemoPurse): Promise<OpenPurse> {
  const network = NETWORKS.find(name);
  const [token] = network?.tokens ?? [];
  if (network === undefined || token === undefined) throw new Error(`no network: ${name}`);
  const of: Of = { caip2: network.caip2 as Of['caip2'], token: token.address, rpcUrl, key };
  return { network, ...(await (network.caip2.startsWith('solana:') ? openSolana(of) : openBase(of))) };
}

async function openBase({ caip2, token, rpcUrl, key }: Of): Promise<Omit<OpenPurse, 'network'>> {
  const { ExactEvmScheme } = await import('@x402/evm/exact/client');
  const { createPublicClient, getAddress, http, parseAbi } = await import('viem');
  const { privateKeyToAccount } = await import('viem/accounts');
  const account = privateKeyToAccount(`0x${key}`);
  const client = createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }) });
  const abi = parseAbi(['function balanceOf(address) view returns (uint256)']);
  const call = { address: getAddress(token), abi, functionName: 'balanceOf', args: [account.address] } as const;
  return {
    payWith: (payer) => void payer.register(caip2, new ExactEvmScheme(account)),
    balance: () => client.readContract(call),
  };
}

async function openSolana({ caip2, token, rpcUrl, key }: Of): Promise<Omit<OpenPurse, 'network'>> {
  const { address, createKeyPairSignerFromPrivateKeyBytes, createSolanaRpc } = await import('@solana/kit');
  const { ExactSvmScheme } = await import('@x402/svm/exact/client');
  const { findTokenAccount } = await import('../../src/gateway/rails/svm/addresses.ts');
  const signer = await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(Buffer.from(key, 'hex')));
  const account = address(findTokenAccount(signer.address, token) ?? '');
  const rpc = createSolanaRpc(rpcUrl);
  return {
    payWith: (payer) => void payer.register(caip2, new ExactSvmScheme(signer, { rpcUrl })),
    balance: async () => BigInt((await rpc.getTokenAccountBalance(account).send()).value.amount),
  };
}
