// Reads what a configuration says of a way to pay on a Solana network. A wrong address loses money for good, so everything
// that can be known to be wrong is refused. Tokens of Token-2022 are refused where they are known: their fees and hooks
// change what arrives.
import type { KnownNetwork, ReadWay, WayInput, WayIssue, WayReading } from '../../../domain/payment/network.ts';
import { isSvmAddress, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './addresses.ts';
import { findSvmNetwork, SVM_NETWORKS, TOKEN_2022_MINTS } from './known-networks.ts';

const DEFAULT_SYMBOL = 'USDC';
const SYSTEM_PROGRAM = '1'.repeat(32);
/** Mints of all networks: an address that is copied from the wrong list is often that of another network. */
const MINTS: ReadonlySet<string> = new Set(SVM_NETWORKS.flatMap(({ tokens }) => tokens.map(({ address }) => address)));

type IssueReporter = (field: string, message: string) => void;

/** Reads a way; undefined: it does not name a Solana network. */
export function readSvmWay(input: WayInput): WayReading | undefined {
  const network = findSvmNetwork(input.network);
  if (network === undefined) return undefined;
  const issues: WayIssue[] = [];
  const complain: IssueReporter = (field, message) => {
    issues.push({ field, message });
  };
  for (const [field, written] of Object.entries(input.own))
    if (written !== undefined) complain(field, 'is nothing that a way on Solana has; leave it out');
  const token = readToken(input, network, complain);
  const payTo = input.pay_to_address ?? '';
  const wrong = judgePayTo(payTo);
  if (wrong !== undefined) complain('pay_to_address', wrong);
  if (issues.length > 0 || token === undefined) return { kind: 'issues', issues, whole: false };
  const rpcUrls = input.rpc_url ?? network.rpcUrls;
  const rpcPublic = rpcUrls.length > 0 && rpcUrls.every((url) => network.rpcUrls.includes(url));
  const { caip2, testnet } = network;
  return {
    kind: 'way',
    way: { network: caip2, testnet, ...token, terms: {}, payTo, rpcUrls, rpcPublic },
    warnings: [],
  };
}

function readToken(
  { asset, asset_decimals: decimals }: WayInput,
  { name, tokens }: KnownNetwork,
  complain: IssueReporter,
): Pick<ReadWay, 'asset' | 'decimals'> | undefined {
  const known = tokens.find(({ symbol, address }) => address === asset || symbol === (asset ?? DEFAULT_SYMBOL));
  if (known !== undefined) {
    if (decimals !== undefined && decimals !== known.decimals)
      complain(
        'asset_decimals',
        `is not that of ${known.symbol} on ${name}, which is ${known.decimals}; write that, or leave it out`,
      );
    return { asset: known.address, decimals: known.decimals };
  }
  const listed = tokens.map(({ symbol }) => symbol).join(' or ');
  const advice = `write ${listed === '' ? '' : `${listed}, or `}the address of the mint, in quotes`;
  if (asset === undefined) complain('asset', `is missing; ${DEFAULT_SYMBOL} is not known on ${name}, so ${advice}`);
  else if (TOKEN_2022_MINTS.has(asset))
    complain(
      'asset',
      'is a token of Token-2022, whose fees and hooks are not taken in this version; write another token',
    );
  else if (!isSvmAddress(asset)) complain('asset', `is not a token that is known on ${name}; ${advice}`);
  else if (decimals === undefined)
    complain(
      'asset_decimals',
      'is missing; `tollgate networks` does not list this token, so its decimals must be written',
    );
  else return { asset, decimals };
  return undefined;
}

/** Says what is wrong with the receiving address; undefined: nothing. */
function judgePayTo(payTo: string): string | undefined {
  if (payTo === '')
    return 'is missing; write the address of the wallet that receives the payments: base58 of 32 bytes, in quotes';
  if (!isSvmAddress(payTo))
    return 'is not the address of the wallet that receives the payments: base58 of 32 bytes, in quotes';
  if (payTo === SYSTEM_PROGRAM) return 'is the system program, which nobody can spend from; write your own';
  if (payTo === TOKEN_PROGRAM || payTo === TOKEN_2022_PROGRAM)
    return 'is a token program, so every payment would be lost; write the address of your own wallet';
  if (TOKEN_2022_MINTS.has(payTo) || MINTS.has(payTo))
    return 'is the mint of a token, so every payment would be lost; write the address of your own wallet';
  return undefined;
}
