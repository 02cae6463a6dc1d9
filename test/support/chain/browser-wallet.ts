// A wallet in a browser for tests: it announces itself as wallets do (EIP-6963) or stands at window.ethereum, and signs with a
// key of the test's for the chain on this machine. What it is asked is written down, and any call can be made to fail as
// people and wallets make it fail.
import type { BrowserContext } from 'playwright-core';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { keepSecret } from '../canaries.ts';
import type { Chain } from './chain.ts';

export type BrowserWallet = {
  readonly address: string;
  readonly asked: readonly { readonly method: string; readonly params: readonly unknown[] }[];
  /** How often it signed. */
  readonly signatures: () => number;
  /** The next call of `method` is refused with `code`. */
  readonly refuse: (method: string, code: number | string, message?: string) => void;
  /** The next call of `method` waits for `until`. */
  readonly hold: (method: string, until: Promise<unknown>) => void;
  /** The networks that it knows, and the one that it is on. */
  readonly chains: Set<number>;
  chainId: number;
  /** Puts it into the pages of a context. */
  readonly install: (context: BrowserContext) => Promise<void>;
};

type Options = { readonly name?: string; readonly old?: boolean; readonly signsWith?: Hex };
type Reply = {
  readonly result?: unknown;
  readonly error?: { readonly code: number | string; readonly message: string };
};
type TypedData = {
  readonly domain: {
    readonly name: string;
    readonly version: string;
    readonly chainId: number;
    readonly verifyingContract: Hex;
  };
  readonly types: Record<string, readonly { readonly name: string; readonly type: string }[]>;
  readonly primaryType: string;
  readonly message: Record<string, string>;
};

const ICON =
  'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="%231652f0" d="M0 0h8v8H0z"/></svg>';

/** `old`: it only stands at window.ethereum. `signsWith`: another key than that of its address. */
export function createBrowserWallet(
  chain: Chain,
  { name = 'Test Wallet', old = false, signsWith }: Options = {},
): BrowserWallet {
  const key = generatePrivateKey();
  keepSecret('a private key', key.slice(2));
  const account = privateKeyToAccount(key);
  const signer = signsWith === undefined ? account : privateKeyToAccount(signsWith);
  const asked: { method: string; params: readonly unknown[] }[] = [];
  const refusals = new Map<string, NonNullable<Reply['error']>>();
  const holds = new Map<string, Promise<unknown>>();
  let signatures = 0;

  const sign = async (text: string): Promise<string> => {
    const { domain, types, primaryType, message } = JSON.parse(text) as TypedData;
    signatures++;
    const { EIP712Domain: _domain, ...rest } = types;
    const values = Object.entries(message).map(([field, value]) => [
      field,
      /^\d+$/.test(value) ? BigInt(value) : value,
    ]);
    return signer.signTypedData({
      domain,
      types: rest,
      primaryType,
      message: Object.fromEntries(values) as Record<string, unknown>,
    });
  };

  const wallet: BrowserWallet = {
    ...{ address: account.address, asked, chains: new Set([84_532]), chainId: 84_532 },
    signatures: () => signatures,
    refuse: (method, code, message = 'refused by the test') => void refusals.set(method, { code, message }),
    hold: (method, until) => void holds.set(method, until),
    install: async (context) => {
      const ask = `ask${name.replaceAll(' ', '')}`;
      await context.exposeFunction(ask, answer);
      await context.addInitScript({ content: announcement(ask, name, old) });
    },
  };

  async function answer(method: string, params: readonly unknown[] = []): Promise<Reply> {
    asked.push({ method, params });
    const held = holds.get(method);
    holds.delete(method);
    await held;
    const error = refusals.get(method);
    refusals.delete(method);
    if (error !== undefined) return { error };
    const [first, second] = params;
    switch (method) {
      case 'eth_requestAccounts':
      case 'eth_accounts':
        return { result: [account.address] };
      case 'eth_chainId':
        return { result: `0x${wallet.chainId.toString(16)}` };
      case 'wallet_switchEthereumChain':
      case 'wallet_addEthereumChain': {
        const chainId = Number((first as { readonly chainId: string }).chainId);
        if (method === 'wallet_addEthereumChain') wallet.chains.add(chainId);
        if (!wallet.chains.has(chainId)) return { error: { code: 4902, message: 'Unrecognized chain ID' } };
        wallet.chainId = chainId;
        return { result: null };
      }
      case 'eth_call':
        return { result: await chain.rpc(method, params) };
      case 'eth_signTypedData_v4':
        return { result: await sign(String(second)) };
      case 'wallet_requestPermissions':
        return { result: [] };
      default:
        return { error: { code: 4200, message: `${method} is not supported` } };
    }
  }
  return wallet;
}

/** What runs in the page. `ask`: the name of the function that asks the test. */
function announcement(ask: string, name: string, old: boolean): string {
  return `{
  const listeners = {};
  const provider = {
    request: async ({ method, params }) => {
      const { error, result } = await ${ask}(method, params);
      if (error) throw Object.assign(new Error(error.message), { code: error.code });
      return result;
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
  };
  globalThis.walletChanged = (event) => listeners[event]?.forEach((listener) => listener());
  if (${old}) globalThis.ethereum = provider;
  else {
    const info = ${JSON.stringify({ uuid: ask, name, icon: ICON, rdns: 'test.wallet' })};
    const say = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: { info, provider } }));
    addEventListener('eip6963:requestProvider', say);
    say();
  }
}`;
}
