// Somebody whose wallet is a contract: its key signs, and the contract says whether that counts (ERC-1271). While it is not on
// the chain yet, a signature says how to put it there (ERC-6492). The public x402 clients pay with it as they are.
import {
  concat,
  decodeFunctionResult,
  encodeAbiParameters,
  encodeFunctionData,
  parseAbiParameters,
  type Address,
  type Hex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { keepSecret } from '../canaries.ts';
import { testAccount, WALLET_FACTORY, WALLET_FACTORY_ABI, type Chain } from './chain.ts';
import { payerOf, type Payer, type Signer } from './payer.ts';

export type SmartWallet = Payer & {
  readonly deploy: () => Promise<void>;
  readonly isDeployed: () => Promise<boolean>;
  /** Signs as `change` makes it of the factory, its call and what the contract is shown. */
  readonly signing: (change: (parts: WrapperParts) => Hex) => Payer;
};

export type WrapperParts = { readonly factory: Address; readonly call: Hex; readonly signature: Hex };

/** 32 bytes that say: the signature of a contract that may not be there yet. */
const ERC6492_MAGIC: Hex = `0x${'6492'.repeat(16)}`;
/** One sender at a time: nobody else uses this account. */
const DEPLOYER = 4;

/** `funds` of the test token are at its address from the start, whether the contract is there or not. */
export async function createSmartWallet(chain: Chain, funds = 100_000_000n): Promise<SmartWallet> {
  const key = generatePrivateKey();
  keepSecret('a private key', key.slice(2));
  const owner = privateKeyToAccount(key);
  const abi = WALLET_FACTORY_ABI;
  const call = encodeFunctionData({ abi, functionName: 'deploy', args: [owner.address] });
  const asked = encodeFunctionData({ abi, functionName: 'addressOf', args: [owner.address] });
  const said = (await chain.rpc('eth_call', [{ to: WALLET_FACTORY, data: asked }, 'latest'])) as Hex;
  const address = decodeFunctionResult({ abi, functionName: 'addressOf', data: said }) as Address;
  await chain.mint(address, funds);

  const isDeployed = async (): Promise<boolean> => (await chain.rpc('eth_getCode', [address, 'latest'])) !== '0x';
  const signing = (change: (parts: WrapperParts) => Hex): Payer => {
    const signTypedData: Signer['signTypedData'] = async (data) => {
      const signature = encodeAbiParameters(parseAbiParameters('uint256, bytes'), [
        0n,
        await owner.signTypedData(data),
      ]);
      return change({ factory: WALLET_FACTORY, call, signature });
    };
    return payerOf(chain, { address, signTypedData });
  };

  // A wallet that is there signs plainly; one that is not says how to put it there.
  let deployed = false;
  return {
    ...signing((parts) => (deployed ? parts.signature : wrap(parts))),
    signing,
    isDeployed,
    deploy: async () => {
      await chain.rpc('eth_sendTransaction', [{ from: testAccount(DEPLOYER).address, to: WALLET_FACTORY, data: call }]);
      while (!(await isDeployed()));
      deployed = true;
    },
  };
}

export function wrap({ factory, call, signature }: WrapperParts): Hex {
  return concat([
    encodeAbiParameters(parseAbiParameters('address, bytes, bytes'), [factory, call, signature]),
    ERC6492_MAGIC,
  ]);
}
