// The EVM networks that are known by name, and those of their tokens that move by EIP-3009. A wrong address loses money and
// a wrong EIP-712 name refuses every payment, so both stand here and not in people's configurations. The tests compare
// every row with the lists of x402 and of viem. Sources: x402 2.x and 1.x (tokens, v1 names), viem (nodes, explorers).
import type { KnownNetwork, KnownToken } from '../../../domain/payment/network.ts';

/** Name of any EVM chain, by its number. */
export const CHAIN = /^eip155:[1-9]\d{0,17}$/;

type NativeCurrency = KnownNetwork['nativeCurrency'];

const native = (symbol: string, name = symbol): NativeCurrency => ({ name, symbol, decimals: 18 });
const ETHER = native('ETH', 'Ether');

const token = (symbol: string, address: string, name: string, version: string): KnownToken => ({
  symbol,
  address,
  decimals: 6,
  terms: { name, version },
});
/** EIP-712 names of USDC, which follow no rule. */
const usdc = (address: string, name: string): KnownToken => token('USDC', address, name, '2');

type Row = Omit<KnownNetwork, 'name' | 'v1' | 'caip2' | 'testnet'>;
/** A network that x402 1.x knows by the same name. */
const old = (name: string, kind: 'main' | 'test', chainId: number, row: Row): KnownNetwork => ({
  ...recent(name, kind, chainId, row),
  v1: name,
});
const recent = (name: string, kind: 'main' | 'test', chainId: number, row: Row): KnownNetwork => ({
  name,
  v1: undefined,
  caip2: `eip155:${chainId}`,
  testnet: kind === 'test',
  ...row,
});

export const EVM_NETWORKS: readonly KnownNetwork[] = [
  old('base', 'main', 8453, {
    nativeCurrency: ETHER,
    rpcUrls: ['https://mainnet.base.org', 'https://base-rpc.publicnode.com'],
    explorer: 'https://basescan.org',
    tokens: [usdc('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin')],
  }),
  old('base-sepolia', 'test', 84_532, {
    nativeCurrency: native('ETH', 'Sepolia Ether'),
    rpcUrls: ['https://sepolia.base.org', 'https://base-sepolia-rpc.publicnode.com'],
    explorer: 'https://sepolia.basescan.org',
    tokens: [usdc('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC')],
  }),
  recent('ethereum', 'main', 1, {
    nativeCurrency: ETHER,
    rpcUrls: ['https://ethereum.reth.rs/rpc'],
    explorer: 'https://etherscan.io',
    tokens: [usdc('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 'USD Coin')],
  }),
  recent('sepolia', 'test', 11_155_111, {
    nativeCurrency: native('ETH', 'Sepolia Ether'),
    rpcUrls: ['https://11155111.rpc.thirdweb.com'],
    explorer: 'https://sepolia.etherscan.io',
    tokens: [],
  }),
  old('polygon', 'main', 137, {
    nativeCurrency: native('POL'),
    rpcUrls: ['https://polygon.drpc.org', 'https://polygon-bor-rpc.publicnode.com'],
    explorer: 'https://polygonscan.com',
    tokens: [usdc('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin')],
  }),
  old('polygon-amoy', 'test', 80_002, {
    nativeCurrency: native('POL'),
    rpcUrls: ['https://polygon-amoy.drpc.org'],
    explorer: 'https://amoy.polygonscan.com',
    tokens: [usdc('0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', 'USDC')],
  }),
  recent('arbitrum', 'main', 42_161, {
    nativeCurrency: ETHER,
    rpcUrls: ['https://arb1.arbitrum.io/rpc'],
    explorer: 'https://arbiscan.io',
    tokens: [usdc('0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin')],
  }),
  recent('arbitrum-sepolia', 'test', 421_614, {
    nativeCurrency: native('ETH', 'Arbitrum Sepolia Ether'),
    rpcUrls: ['https://sepolia-rollup.arbitrum.io/rpc'],
    explorer: 'https://sepolia.arbiscan.io',
    tokens: [usdc('0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', 'USD Coin')],
  }),
  old('avalanche', 'main', 43_114, {
    nativeCurrency: native('AVAX', 'Avalanche'),
    rpcUrls: ['https://api.avax.network/ext/bc/C/rpc'],
    explorer: 'https://snowtrace.io',
    tokens: [usdc('0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 'USD Coin')],
  }),
  old('avalanche-fuji', 'test', 43_113, {
    nativeCurrency: native('AVAX', 'Avalanche Fuji'),
    rpcUrls: ['https://api.avax-test.network/ext/bc/C/rpc'],
    explorer: 'https://testnet.snowtrace.io',
    tokens: [usdc('0x5425890298aed601595a70AB815c96711a31Bc65', 'USD Coin')],
  }),
  old('sei', 'main', 1329, {
    nativeCurrency: native('SEI', 'Sei'),
    rpcUrls: ['https://evm-rpc.sei-apis.com/'],
    explorer: 'https://seiscan.io',
    tokens: [usdc('0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392', 'USDC')],
  }),
  old('sei-testnet', 'test', 1328, {
    nativeCurrency: native('SEI', 'Sei'),
    rpcUrls: ['https://evm-rpc-testnet.sei-apis.com'],
    explorer: 'https://testnet.seiscan.io',
    tokens: [usdc('0x4fCF1784B31630811181f670Aea7A7bEF803eaED', 'USDC')],
  }),
  recent('monad', 'main', 143, {
    nativeCurrency: native('MON', 'Monad'),
    rpcUrls: ['https://rpc.monad.xyz'],
    explorer: 'https://monadscan.com',
    tokens: [usdc('0x754704Bc059F8C67012fEd69BC8A327a5aafb603', 'USDC')],
  }),
  recent('celo', 'main', 42_220, {
    nativeCurrency: native('CELO'),
    rpcUrls: ['https://forno.celo.org'],
    explorer: 'https://celoscan.io',
    tokens: [
      usdc('0xcebA9300f2b948710d2653dD7B07f33A8B32118C', 'USDC'),
      token('USDT', '0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e', 'Tether USD', '1'),
      token('USAT', '0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771', 'Tether America USD', '1'),
    ],
  }),
  recent('celo-sepolia', 'test', 11_142_220, {
    nativeCurrency: native('S-CELO', 'CELO'),
    rpcUrls: ['https://forno.celo-sepolia.celo-testnet.org'],
    explorer: 'https://celo-sepolia.blockscout.com',
    tokens: [usdc('0x01C5C0122039549AD1493B8220cABEdD739BC44E', 'USDC')],
  }),
  recent('xdc', 'main', 50, {
    nativeCurrency: native('XDC'),
    rpcUrls: ['https://rpc.xdcrpc.com'],
    explorer: 'https://xdcscan.com',
    tokens: [usdc('0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1', 'USDC')],
  }),
  recent('xdc-apothem', 'test', 51, {
    nativeCurrency: native('TXDC'),
    rpcUrls: ['https://erpc.apothem.network'],
    explorer: 'https://testnet.xdcscan.com',
    tokens: [usdc('0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4', 'USDC')],
  }),
  recent('stable', 'main', 988, {
    nativeCurrency: native('USDT0'),
    rpcUrls: ['https://rpc.stable.xyz'],
    explorer: 'https://stablescan.xyz',
    tokens: [token('USDT0', '0x779Ded0c9e1022225f8E0630b35a9b54bE713736', 'USDT0', '1')],
  }),
  recent('stable-testnet', 'test', 2201, {
    nativeCurrency: native('USDT0'),
    rpcUrls: ['https://rpc.testnet.stable.xyz'],
    explorer: 'https://testnet.stablescan.xyz',
    tokens: [token('USDT0', '0x78Cf24370174180738C5B8E352B6D14c83a6c9A9', 'USDT0', '1')],
  }),
  recent('flare', 'main', 14, {
    nativeCurrency: native('FLR', 'Flare'),
    rpcUrls: ['https://flare-api.flare.network/ext/C/rpc'],
    explorer: 'https://flare-explorer.flare.network',
    tokens: [token('USDT0', '0xe7cd86e13AC4309349F30B3435a9d337750fC82D', 'USD\u20AE0', '1')],
  }),
  recent('adi', 'main', 36_900, {
    nativeCurrency: native('ADI'),
    rpcUrls: ['https://rpc.adifoundation.ai'],
    explorer: 'https://explorer.adifoundation.ai',
    tokens: [token('USDC.e', '0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2', 'USDC.e', '2')],
  }),
  recent('hpp', 'main', 190_415, {
    nativeCurrency: ETHER,
    rpcUrls: ['https://mainnet.hpp.io'],
    explorer: 'https://explorer.hpp.io',
    tokens: [token('USDC.e', '0x401eCb1D350407f13ba348573E5630B83638E30D', 'Bridged USDC', '2')],
  }),
  recent('hpp-sepolia', 'test', 181_228, {
    nativeCurrency: ETHER,
    rpcUrls: ['https://testnet.hpp.io'],
    explorer: 'https://sepolia-explorer.hpp.io',
    tokens: [token('USDC.e', '0x401eCb1D350407f13ba348573E5630B83638E30D', 'Bridged USDC', '2')],
  }),
  old('iotex', 'main', 4689, {
    nativeCurrency: native('IOTX', 'IoTeX'),
    rpcUrls: ['https://babel-api.mainnet.iotex.io'],
    explorer: 'https://iotexscan.io',
    tokens: [usdc('0xcDf79194C6C285077A58da47641D4dBe51F63542', 'Bridged USDC')],
  }),
  old('peaq', 'main', 3338, {
    nativeCurrency: native('PEAQ', 'peaq'),
    rpcUrls: ['https://quicknode1.peaq.xyz'],
    explorer: 'https://peaq.subscan.io',
    tokens: [usdc('0xbbA60da06c2c5424f03f7434542280FCAd453d10', 'USDC')],
  }),
  old('abstract', 'main', 2741, {
    nativeCurrency: native('ETH'),
    rpcUrls: ['https://api.mainnet.abs.xyz'],
    explorer: 'https://abscan.org',
    tokens: [usdc('0x84A71ccD554Cc1b02749b35d22F684CC8ec987e1', 'Bridged USDC')],
  }),
  old('abstract-testnet', 'test', 11_124, {
    nativeCurrency: native('ETH'),
    rpcUrls: ['https://api.testnet.abs.xyz'],
    explorer: 'https://sepolia.abscan.org',
    tokens: [usdc('0xe4C7fBB0a626ed208021ccabA6Be1566905E2dFc', 'Bridged USDC')],
  }),
  old('story', 'main', 1514, {
    nativeCurrency: native('DATA'),
    rpcUrls: ['https://mainnet.datarpc.io'],
    explorer: 'https://datanetscan.io',
    tokens: [usdc('0xF1815bd50389c46847f0Bda824eC8da914045D14', 'Bridged USDC')],
  }),
  old('educhain', 'main', 41_923, {
    nativeCurrency: native('EDU'),
    rpcUrls: ['https://rpc.educhain.xyz'],
    explorer: 'https://explorer.educhain.xyz',
    tokens: [usdc('0x12a272A581feE5577A5dFa371afEB4b2F3a8C2F8', 'Bridged USDC (Stargate)')],
  }),
  old('skale-base-sepolia', 'test', 324_705_682, {
    nativeCurrency: native('CREDIT', 'Credits'),
    rpcUrls: ['https://base-sepolia-testnet.skalenodes.com/v1/base-testnet'],
    explorer: 'https://base-sepolia-testnet-explorer.skalenodes.com',
    tokens: [usdc('0x2e08028E3C4c2356572E096d8EF835cD5C6030bD', 'Bridged USDC (SKALE Bridge)')],
  }),
];

/**
 * Tokens of x402's own list that have no EIP-3009: they move by Permit2 alone, which is not taken. By chain id.
 */
export const PERMIT2_TOKENS: Readonly<Record<string, { readonly symbol: string; readonly address: string }>> = {
  'eip155:4326': { symbol: 'MegaUSD', address: '0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7' },
  'eip155:31612': { symbol: 'mUSD', address: '0xdD468A1DDc392dcdbEf6db6e34E89AA338F9F186' },
  'eip155:31611': { symbol: 'mUSD', address: '0x118917a40FAF1CD7a13dB0Ef56C86De7973Ac503' },
  'eip155:723487': { symbol: 'SBC', address: '0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb' },
  'eip155:72344': { symbol: 'SBC', address: '0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb' },
  'eip155:38833': { symbol: 'USDC', address: '0xA5b8BF902b2844dA17d4506cc827F7F1681735E7' },
};
