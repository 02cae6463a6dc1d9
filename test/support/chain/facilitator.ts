// A real x402 facilitator on loopback, made of the reference packages as they are, behind a small HTTP server that can be
// told to misbehave: to answer late or never, to lose the connection before or after the money moved, to lie. For tests
// and the demo; it holds no funds but what a local chain gives it.
import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator';
import { createWalletClient, http, publicActions } from 'viem';
import { serveFacilitator, type TestFacilitator } from '../facilitator-server.ts';
import { CHAIN, NETWORK, createSender, testAccount, waitForReceipt } from './chain.ts';

export type FacilitatorOptions = {
  readonly rpcUrl: string;
  readonly port?: number;
  /** Which of anvil's accounts pays for gas. */
  readonly account?: number;
  /** How long a settlement waits for its transaction before it is `settlement_pending`. */
  readonly confirmationTimeoutMs?: number;
  /** Whose wallets it puts on the chain. */
  readonly walletFactories?: readonly string[];
};

export async function startFacilitator(options: FacilitatorOptions): Promise<TestFacilitator> {
  const account = testAccount(options.account ?? 0);
  const wallet = createWalletClient({
    account,
    chain: CHAIN,
    transport: http(options.rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions);
  const { address } = account;
  const send = createSender(() => wallet.getTransactionCount({ address, blockTag: 'pending' }));
  const signer = toFacilitatorEvmSigner(
    {
      address,
      readContract: (args) => wallet.readContract({ ...args, args: args.args ?? [] }),
      verifyTypedData: (args) => wallet.verifyTypedData(args as Parameters<typeof wallet.verifyTypedData>[0]),
      writeContract: (args) => send((nonce) => wallet.writeContract({ ...args, args: args.args ?? [], nonce })),
      sendTransaction: (args) => send((nonce) => wallet.sendTransaction({ ...args, nonce })),
      waitForTransactionReceipt: ({ hash, timeout }) => waitForReceipt(wallet, hash, timeout ?? 15_000),
      getCode: (args) => wallet.getCode(args),
    },
    { confirmationTimeoutMs: options.confirmationTimeoutMs ?? 15_000 },
  );
  const config = { eip6492AllowedFactories: [...(options.walletFactories ?? [])] };
  const build = (): x402Facilitator =>
    new x402Facilitator()
      .register(NETWORK, new ExactEvmScheme(signer, config))
      .registerV1(['base-sepolia'] as unknown as [typeof NETWORK], new ExactEvmSchemeV1(signer, config));
  return serveFacilitator(build, options.port);
}
