// The reference facilitator for Solana over a chain on loopback. It pays fees from a key that only such a chain knows.
import { x402Facilitator } from '@x402/core/facilitator';
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit';
import { toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';
import { serveFacilitator, type TestFacilitator } from '../facilitator-server.ts';
import { SVM_NETWORK, type SvmChain } from './chain.ts';
import { keyOf } from './wire.ts';

export type SvmFacilitator = TestFacilitator & { readonly feePayer: string };

/** `name`: of its key. */
export async function startSvmFacilitator(
  chain: Pick<SvmChain, 'rpcUrl' | 'airdrop'>,
  name = 'facilitator',
): Promise<SvmFacilitator> {
  const key = keyOf(name);
  chain.airdrop(key.address);
  const signer = toFacilitatorSvmSigner(await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(key.seed)), {
    defaultRpcUrl: chain.rpcUrl,
  });
  const facilitator = await serveFacilitator(() =>
    new x402Facilitator().register(SVM_NETWORK, new ExactSvmScheme(signer)),
  );
  return { ...facilitator, feePayer: key.address };
}
