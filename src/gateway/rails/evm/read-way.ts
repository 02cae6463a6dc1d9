// Reads a way to pay on an EVM network from the configuration. A wrong address loses money for good, so whatever is
// known to be wrong is refused. That is placeholders, wrong checksums, addresses without a key, wrong facts about a
// known token, and unknown tokens whose facts are left out.
import type {
  KnownNetwork,
  KnownToken,
  ReadWay,
  WayInput,
  WayIssue,
  WayReading,
} from '../../../domain/payment/network.ts';
import { CHAIN, EVM_NETWORKS, PERMIT2_TOKENS } from './known-networks.ts';
import { keccak_256 } from '@noble/hashes/sha3';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const ZERO = /^0x0{40}$/;
/** Addresses to which tokens are sent to be destroyed. */
const DEAD = /^0x0{36}dead$/i;
const DEFAULT_SYMBOL = 'USDC';

/** The right checksum of a mistyped address does not help, so it is not shown. */
const WRONG_CHECKSUM = 'has a wrong checksum (EIP-55): a digit or the case of a letter is mistyped; compare it with';
const RPC_MISSING =
  'is missing; no public node of this network is known here, so write the http or https URL of a JSON-RPC node, a list of them, or none: with none, a payment whose settlement has no clear end waits until its payer asks again';

/** A network of this family: known by name, or any chain by its number. */
type Chain = Pick<KnownNetwork, 'caip2' | 'tokens'> & {
  readonly name: string;
  readonly testnet: boolean | undefined;
  readonly rpcUrls: readonly string[] | undefined;
};

/** Reads a way; undefined: it does not name an EVM network. */
export function readEvmWay(input: WayInput): WayReading | undefined {
  const chain = findChain(input.network);
  if (chain === undefined) return undefined;
  const issues: WayIssue[] = [];
  const complain = (field: string, message: string): void => {
    issues.push({ field, message });
  };
  const token = readToken(input, chain, complain);
  const payTo = input.pay_to_address ?? '';
  const wrong =
    payTo === ''
      ? 'is missing; write the address that receives the payments: 0x and 40 hex digits, in quotes'
      : judgePayTo(payTo, chain);
  if (wrong !== undefined) complain('pay_to_address', wrong);
  const rpcUrls = input.rpc_url ?? chain.rpcUrls;
  if (rpcUrls === undefined) complain('rpc_url', RPC_MISSING);
  if (issues.length > 0 || token === undefined || rpcUrls === undefined)
    return { kind: 'issues', issues, whole: false };
  const rpcPublic = rpcUrls.length > 0 && rpcUrls.every((url) => chain.rpcUrls?.includes(url));
  const { caip2: network, testnet } = chain;
  return {
    kind: 'way',
    way: { network, testnet, ...token, payTo, rpcUrls, rpcPublic },
    warnings: DEAD.test(payTo)
      ? [{ field: 'pay_to_address', message: 'is an address that nobody has the key of; what is paid there is lost' }]
      : [],
  };
}

function findChain(name: string): Chain | undefined {
  const known = EVM_NETWORKS.find((network) => network.name === name || network.caip2 === name);
  if (known !== undefined) return known;
  return CHAIN.test(name) ? { caip2: name, tokens: [], name, testnet: undefined, rpcUrls: undefined } : undefined;
}

type IssueReporter = (field: string, message: string) => void;
type Token = Pick<ReadWay, 'asset' | 'decimals' | 'terms'>;

function readToken(input: WayInput, chain: Chain, complain: IssueReporter): Token | undefined {
  const { asset } = input;
  const permit2 = PERMIT2_TOKENS[chain.caip2];
  if (permit2 !== undefined && (asset === permit2.symbol || asset?.toLowerCase() === permit2.address.toLowerCase())) {
    complain(
      'asset',
      `is ${permit2.symbol}, which can be paid by Permit2 only; that is not taken, so write another token`,
    );
    return undefined;
  }
  if (asset !== undefined && ADDRESS.test(asset)) {
    const known = chain.tokens.find(({ address }) => address.toLowerCase() === asset.toLowerCase());
    if (hasWrongChecksum(asset)) complain('asset', `${WRONG_CHECKSUM} the address that the token's issuer publishes`);
    return known === undefined ? readOther(input, asset, complain) : readKnown(input, asset, known, chain, complain);
  }
  const known = chain.tokens.find(({ symbol }) => symbol === (asset ?? DEFAULT_SYMBOL));
  if (known !== undefined) return readKnown(input, known.address, known, chain, complain);
  if (asset?.startsWith('0x')) {
    complain('asset', 'is not the address of the token: 0x and 40 hex digits, in quotes');
    return undefined;
  }
  const [first] = chain.tokens;
  const what =
    asset === undefined
      ? `is missing; ${DEFAULT_SYMBOL} is not known on ${chain.name}`
      : `is not a token that is known on ${chain.name}`;
  const listed = chain.tokens.map(({ symbol }) => symbol).join(' or ');
  complain(
    'asset',
    first === undefined
      ? `${what}${asset === undefined ? ', so' : ';'} write the address of the token and every asset_ field of it`
      : `${what}${asset === undefined ? ', so' : ';'} write ${listed}, or the address of another token`,
  );
  return undefined;
}

/** Facts that are written about a known token have to be its own. */
function readKnown(
  input: WayInput,
  asset: string,
  { symbol, decimals, terms }: KnownToken,
  { name }: Chain,
  complain: IssueReporter,
): Token {
  const facts = [
    ['asset_decimals', input.asset_decimals, decimals],
    ['asset_name', input.own['asset_name'], terms['name']],
    ['asset_version', input.own['asset_version'], terms['version']],
  ] as const;
  for (const [field, written, right] of facts) {
    if (written === undefined || written === right) continue;
    complain(
      field,
      `is not that of ${symbol} on ${name}, which is ${JSON.stringify(right)}; write that, or leave it out`,
    );
  }
  return { asset, decimals, terms };
}

function readOther(input: WayInput, asset: string, complain: IssueReporter): Token | undefined {
  const { asset_decimals: decimals, own } = input;
  const { asset_name: name, asset_version: version } = own;
  const facts = { asset_decimals: decimals, asset_name: name, asset_version: version };
  for (const [field, written] of Object.entries(facts)) {
    if (written !== undefined) continue;
    complain(
      field,
      'is missing; `tollgate networks` does not list this token, so every asset_ field of it must be written',
    );
  }
  if (decimals === undefined || name === undefined || version === undefined) return undefined;
  return { asset, decimals, terms: { name, version } };
}

/** Says what is wrong with the receiving address; undefined: nothing. */
function judgePayTo(payTo: string, { testnet, tokens }: Chain): string | undefined {
  if (!ADDRESS.test(payTo)) return 'is not the address that receives the payments: 0x and 40 hex digits, in quotes';
  if (ZERO.test(payTo)) return 'is the zero address, which nobody can spend from; write your own';
  if (DEAD.test(payTo) && testnet !== true)
    return 'is an address that nobody has the key of, so every payment would be lost; write your own';
  if (hasWrongChecksum(payTo)) return `${WRONG_CHECKSUM} your wallet`;
  if (tokens.some(({ address }) => address.toLowerCase() === payTo.toLowerCase()))
    return 'is the contract of the token, so every payment would be lost; write your own address';
  return undefined;
}

/** Whether `address` (0x and 40 hex digits) has letters of both cases, but not those of its checksum (EIP-55). */
export function hasWrongChecksum(address: string): boolean {
  const digits = address.slice(2);
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return false;
  const hash = Buffer.from(keccak_256(digits.toLowerCase())).toString('hex');
  return Array.from(digits).some((digit, index) => {
    const upper = Number.parseInt(hash.charAt(index), 16) >= 8;
    return digit !== (upper ? digit.toUpperCase() : digit.toLowerCase());
  });
}
