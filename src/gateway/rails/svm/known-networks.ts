// The Solana networks, and those of their tokens that belong to the SPL Token program. Tokens of Token-2022 are left out, because their fees and hooks change what arrives.
import type { KnownNetwork, KnownToken } from '../../../domain/payment/network.ts';

const token = (symbol: string, address: string): KnownToken => ({ symbol, address, decimals: 6, terms: {} });

const network = (name: string, genesis: string, tokens: readonly KnownToken[], cluster?: string): KnownNetwork => ({
  name,
  ...(name === 'solana' ? { aliases: ['solana-mainnet'] } : {}),
  v1: name === 'solana-testnet' ? undefined : name,
  caip2: `solana:${genesis}`,
  testnet: cluster !== undefined,
  nativeCurrency: { name: 'SOL', symbol: 'SOL', decimals: 9 },
  rpcUrls: [`https://api.${cluster ?? 'mainnet-beta'}.solana.com`],
  explorer: `https://explorer.solana.com${cluster === undefined ? '' : `/?cluster=${cluster}`}`,
  tokens,
});

export const SVM_NETWORKS: readonly KnownNetwork[] = [
  network('solana', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', [
    token('USDC', 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'),
    token('USDT', 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB'),
  ]),
  network(
    'solana-devnet',
    'EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    [token('USDC', '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU')],
    'devnet',
  ),
  network('solana-testnet', '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z', [], 'testnet'),
];

/** Tokens of Token-2022, by symbol and by mint. */
export const TOKEN_2022_MINTS: ReadonlySet<string> = new Set([
  ...['USDG', '2u1tszSeqZ3qBWF3uNGPFc8TzMk2tdiwknnRMWGWjGWH', '4F6PM96JJxngmHnZLBh9n58RH4aTVNWvDs2nuwrT5BP7'],
  ...['PYUSD', '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo', 'CXk2AMBfi3TwaEL2468s6zP8xq9NxTXjp9gjMgzeUynM'],
  ...['CASH', 'CASHx9KJUStyftLFWGvEVf59SGeG9sh5FfcnZMVPCASH'],
]);

export function findSvmNetwork(name: string): KnownNetwork | undefined {
  return SVM_NETWORKS.find(
    (network) => network.name === name || network.caip2 === name || network.aliases?.includes(name) === true,
  );
}

/** The network whose first block has this hash, which a CAIP-2 name holds the beginning of. */
export function caip2OfGenesis(hash: string): string {
  return `solana:${hash.slice(0, 32)}`;
}
