// Every network that is known by name, whichever chain family it is of, and how a way to pay on one is read.
import type { KnownNetwork, Networks, WayInput, WayIssue, WayReading } from '../../domain/network.ts';
import { suggest } from '../../domain/suggest.ts';
import { EVM_NETWORKS } from './evm/networks.ts';
import { readEvmWay } from './evm/read-way.ts';
import { isSvmAddress } from './svm/addresses.ts';
import { isSvmNetwork, SVM_NETWORKS } from './svm/networks.ts';

const KNOWN: readonly KnownNetwork[] = [...EVM_NETWORKS, ...SVM_NETWORKS];

/** Spellings of other programs. */
const ALIASES: Readonly<Record<string, string>> = { 'solana-mainnet': 'solana' };

export const NETWORKS: Networks = {
  known: KNOWN,
  find: (name) => {
    const meant = ALIASES[name] ?? name;
    return KNOWN.find((network) => network.name === meant || network.caip2 === meant);
  },
  suggest: (name) =>
    suggest(
      name,
      KNOWN.map((network) => network.name),
    ),
  readWay: (input) => {
    if (isSvmNetwork(ALIASES[input.network] ?? input.network)) return SOLANA;
    const reading = readEvmWay(input) ?? unknownNetwork(input.network);
    return reading.kind === 'way'
      ? reading
      : { ...reading, issues: reading.issues.map((issue) => nameFamily(issue, input)) };
  },
};

const SOLANA: WayReading = {
  kind: 'issues',
  issues: [
    { field: 'network', message: 'is Solana, which is not taken in this version; write an EVM network such as base' },
  ],
  whole: true,
};

function unknownNetwork(name: string): WayReading {
  const meant = NETWORKS.suggest(name);
  const advice =
    meant === undefined
      ? '`tollgate networks` lists those that are, and any other EVM chain is eip155: and its chain id'
      : `did you mean ${meant}?`;
  return {
    kind: 'issues',
    issues: [{ field: 'network', message: `is not a network that is known here; ${advice}` }],
    whole: false,
  };
}

/** An address of another chain family is the likeliest mistake: it is named. */
function nameFamily(issue: WayIssue, input: WayInput): WayIssue {
  const { field } = issue;
  const written = input[field];
  if ((field !== 'pay_to_address' && field !== 'asset') || typeof written !== 'string' || !isSvmAddress(written))
    return issue;
  return { field, message: 'is an address of Solana; write one of this network: 0x and 40 hex digits, in quotes' };
}
