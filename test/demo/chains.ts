// The chains that the demo brings along, each with a facilitator and a purse of test money: one for each network that it
// offers. All of it is on this machine and ends with the demo.
import { randomBytes } from 'node:crypto';
import { generatePrivateKey } from 'viem/accounts';
import { PAY_TO, type DemoWay } from '../../src/cli/demo-config.ts';
import type { DemoPurse } from '../../src/cli/demo-directory.ts';
import { startChain, testAccount } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { createPayer } from '../support/chain/payer.ts';
import type { Wallet } from './wallet.ts';

export type DemoChain = {
  readonly way: DemoWay;
  readonly purse: DemoPurse;
  readonly stop: () => Promise<void>;
};

/** Of a token with six decimals. */
const FUNDS = 5_000_000n;
/** Of those that the chain holds the keys of, one that nobody else uses. */
const WALLET = testAccount(3).address;

/** `wallet`: for the page. */
export async function startBaseSepolia(): Promise<DemoChain & { readonly wallet: Wallet }> {
  const network = 'base-sepolia';
  const chain = await startChain();
  const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  const key = generatePrivateKey();
  await createPayer(chain, FUNDS, key);
  await chain.mint(WALLET, FUNDS);
  const { rpcUrl } = chain;
  return {
    wallet: { address: WALLET, rpcUrl },
    way: { network, payTo: PAY_TO, facilitator: facilitator.url, rpcUrl },
    purse: { network, facilitator: facilitator.url, rpc_url: rpcUrl, key: key.slice(2) },
    stop: async () => {
      await facilitator.close();
      await chain.stop();
    },
  };
}

/** Undefined where its virtual machine does not run. */
export async function startSolanaDevnet(): Promise<DemoChain | undefined> {
  const network = 'solana-devnet';
  // A program of its platform, and there is not one for each.
  const svm = await import('../support/svm/chain.ts').catch(() => undefined);
  if (svm === undefined) return undefined;
  const { startSvmFacilitator } = await import('../support/svm/facilitator.ts');
  const { keyFrom } = await import('../support/svm/wire.ts');
  const chain = await svm.startSvm();
  const facilitator = await startSvmFacilitator(chain);
  const [payer, receiver] = [keyFrom(randomBytes(32)), keyFrom(randomBytes(32))];
  chain.mint(payer.address, FUNDS);
  // What is paid needs an account there.
  chain.mint(receiver.address, 0n);
  const { rpcUrl } = chain;
  return {
    way: { network, payTo: receiver.address, facilitator: facilitator.url, rpcUrl },
    purse: { network, facilitator: facilitator.url, rpc_url: rpcUrl, key: payer.seed.toString('hex') },
    stop: async () => {
      await facilitator.close();
      await chain.stop();
    },
  };
}
