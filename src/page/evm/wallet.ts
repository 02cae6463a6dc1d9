// Wallets of EVM chains as the page asks them.
// Sources: EIP-1193, EIP-2255, EIP-3085, EIP-3326, EIP-712.
import type { PricedWay } from '../required.ts';
import { faultOf, WalletFault, type Wallet } from '../wallet.ts';
import { authorize, credential, typedData } from './authorization.ts';
import { call, findProviders, type FoundWallet, type Provider } from './provider.ts';

/** Calls `found` with all wallets that are known, each time one more is. */
export function findWallets(found: (wallets: readonly Wallet[]) => void): void {
  findProviders((announced) => found(announced.map(walletOf)));
}

function walletOf({ id, name, icon, provider }: FoundWallet): Wallet {
  return {
    ...{ id, name, icon },
    connect: async (anew) => {
      if (anew) await chooseAccount(provider);
      const accounts = await call(provider, 'eth_requestAccounts');
      const [account]: readonly unknown[] = Array.isArray(accounts) ? accounts : [];
      if (typeof account !== 'string') throw new WalletFault('refused', 'no account was chosen');
      return account;
    },
    isOn: async ({ way }) => Number(await call(provider, 'eth_chainId')) === chainIdOf(way.network),
    switchTo: (choice) => switchTo(provider, choice),
    balance: async ({ way }, account) => {
      const data = `0x70a08231${account.slice(2).padStart(64, '0')}`;
      const answer = await call(provider, 'eth_call', [{ to: way.asset, data }, 'latest']).catch(() => undefined);
      return typeof answer === 'string' && /^0x[0-9a-f]{1,64}$/i.test(answer) ? BigInt(answer) : undefined;
    },
    sign: async ({ way, accept }, account, nowMs) => {
      const signed = authorize(accept, account, nowMs, crypto.getRandomValues(new Uint8Array(32)));
      const data = typedData(accept, chainIdOf(way.network), signed);
      const signature = await call(provider, 'eth_signTypedData_v4', [account, data]);
      if (typeof signature !== 'string') throw new WalletFault('other', 'the wallet gave no signature');
      return { header: credential(accept, signed, signature) };
    },
    watch: (changed) => {
      for (const event of ['accountsChanged', 'chainChanged', 'disconnect']) provider.on?.(event, changed);
    },
  };
}

/** A wallet that cannot offer its accounts anew gives the one it has. */
async function chooseAccount(provider: Provider): Promise<void> {
  try {
    await call(provider, 'wallet_requestPermissions', [{ eth_accounts: {} }]);
  } catch (error) {
    const fault = faultOf(error);
    if (fault.kind !== 'other') throw fault;
  }
}

async function switchTo(provider: Provider, { way }: PricedWay): Promise<void> {
  const chainId = `0x${chainIdOf(way.network).toString(16)}`;
  try {
    await call(provider, 'wallet_switchEthereumChain', [{ chainId }]);
  } catch (error) {
    const fault = faultOf(error);
    const { chain, explorer, chainName } = way;
    if (fault.kind !== 'unknown_network' || chain === undefined) throw fault;
    const { nativeCurrency, rpcUrls } = chain;
    const blockExplorerUrls = explorer === undefined ? [] : [explorer];
    await call(provider, 'wallet_addEthereumChain', [
      { chainId, chainName, nativeCurrency, rpcUrls, blockExplorerUrls },
    ]);
  }
}

/** Number of an EVM chain; every way that this page can pay is on one. */
function chainIdOf(network: string): number {
  return Number(network.replace('eip155:', ''));
}
