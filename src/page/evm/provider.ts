// The wallets of a browser that speak EIP-1193: those that announce themselves (EIP-6963), else the one at window.ethereum.
// Sources: EIP-1193, EIP-6963, EIP-3085, EIP-3326.
import { WalletFault, type FaultKind } from '../wallet.ts';

export type Provider = {
  readonly request: (call: { readonly method: string; readonly params?: readonly unknown[] }) => Promise<unknown>;
  readonly on?: (event: string, listener: () => void) => void;
};

export type FoundWallet = {
  readonly id: string;
  readonly name: string;
  readonly icon: string | undefined;
  readonly provider: Provider;
};

type Announcement = {
  readonly info?: { readonly uuid?: unknown; readonly name?: unknown; readonly icon?: unknown };
  readonly provider?: unknown;
};

/** Calls `found` with all wallets that are known, each time one more is. */
export function findProviders(found: (wallets: readonly FoundWallet[]) => void): void {
  const wallets: FoundWallet[] = [];
  const add = (wallet: FoundWallet): void => {
    if (wallets.some(({ id, provider }) => id === wallet.id || provider === wallet.provider)) return;
    wallets.push(wallet);
    found(wallets);
  };
  addEventListener('eip6963:announceProvider', (event) => {
    const { info, provider } = ((event as CustomEvent).detail ?? {}) as Announcement;
    const { uuid, name, icon } = info ?? {};
    if (typeof uuid !== 'string' || typeof name !== 'string' || !isProvider(provider)) return;
    const shown = typeof icon === 'string' && icon.startsWith('data:image/') ? icon : undefined;
    add({ id: uuid, name: name.slice(0, 64), icon: shown, provider });
  });
  dispatchEvent(new Event('eip6963:requestProvider'));
  const addOld = (): void => {
    const old: unknown = Reflect.get(globalThis, 'ethereum');
    if (wallets.length === 0 && isProvider(old))
      add({ id: 'window', name: 'Browser wallet', icon: undefined, provider: old });
  };
  addEventListener('ethereum#initialized', addOld, { once: true });
  setTimeout(addOld, ANNOUNCE_MS);
}

/** Milliseconds for wallets to announce themselves before an older one is asked. */
const ANNOUNCE_MS = 200;

function isProvider(value: unknown): value is Provider {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, 'request') === 'function';
}

/** Rejects with a WalletFault alone. */
export async function call(provider: Provider, method: string, params?: readonly unknown[]): Promise<unknown> {
  try {
    return await provider.request(params === undefined ? { method } : { method, params });
  } catch (error) {
    throw new WalletFault(kindOf(error), walletMessageOf(error));
  }
}

const KINDS: ReadonlyMap<unknown, FaultKind> = new Map<unknown, FaultKind>([
  [4001, 'refused'],
  ['ACTION_REJECTED', 'refused'],
  [4100, 'refused'],
  [-32_002, 'prompt_open'],
  [4902, 'unknown_network'],
  [4900, 'disconnected'],
  [4901, 'disconnected'],
]);

type ProviderError = {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly data?: { readonly originalError?: { readonly code?: unknown } };
};

function kindOf(error: unknown): FaultKind {
  const { code, data } = (typeof error === 'object' && error !== null ? error : {}) as ProviderError;
  // Some wallets wrap their error in another one.
  return KINDS.get(data?.originalError?.code) ?? KINDS.get(code) ?? 'other';
}

function walletMessageOf(error: unknown): string {
  const { message } = (typeof error === 'object' && error !== null ? error : {}) as ProviderError;
  return typeof message === 'string' ? message.slice(0, 200) : 'no reason was given';
}
