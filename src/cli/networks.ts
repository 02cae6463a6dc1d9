// `tollgate networks [NAME]`: lists the networks and tokens that a receiver can name. It needs no configuration.
import type { KnownNetwork, KnownToken } from '../domain/payment/network.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { tableOf } from './table.ts';

export const networks: Command = {
  name: 'networks',
  summary: 'list the networks and tokens that are known by name',
  usage: [
    'tollgate networks [NAME] [--json]',
    '',
    'One row for each network and token. A receiver with one of these tokens needs network, asset and pay_to_address.',
    'NAME is a name, or a CAIP-2 name such as eip155:8453: everything about that network, as --json says of all.',
    'Exit code 1 if no such network is known.',
  ],
  examples: ['tollgate networks', 'tollgate networks base'],
  flags: { json: { help: 'print a list of objects' } },
  words: { min: 0, max: 1 },
  run: runNetworks,
};

const HEADER = ['NAME', 'KIND', 'TOKEN', 'ADDRESS', 'DECIMALS'];

async function runNetworks(args: Args, io: Io): Promise<ExitCode> {
  const [name] = args.words;
  const found = name === undefined ? NETWORKS.known : [NETWORKS.find(name) ?? []].flat();
  if (name !== undefined && found.length === 0) {
    const meant = NETWORKS.suggest(name);
    const advice = meant === undefined ? '`tollgate networks` lists those that are' : `did you mean ${meant}?`;
    io.err(`NAME: is not a network that is known here; ${advice}`);
    return EXIT.no;
  }
  const rows = found.flatMap((network) =>
    (network.tokens.length === 0 ? [undefined] : network.tokens).map((token) => ({ network, token })),
  );
  if (args.has('json')) io.out(JSON.stringify(rows.map(toJson)));
  else if (name === undefined) for (const line of tableOf(HEADER, rows.map(toCells))) io.out(line);
  else for (const row of rows) for (const line of describe(row)) io.out(line);
  return EXIT.fine;
}

type Row = { readonly network: KnownNetwork; readonly token: KnownToken | undefined };

function toJson({ network, token }: Row): Record<string, unknown> {
  const { name, v1, caip2, testnet, nativeCurrency, rpcUrls, explorer } = network;
  return {
    name,
    v1: v1 ?? null,
    caip2,
    testnet,
    symbol: token?.symbol ?? null,
    address: token?.address ?? null,
    decimals: token?.decimals ?? null,
    eip712: token === undefined || Object.keys(token.terms).length === 0 ? null : token.terms,
    native_currency: nativeCurrency,
    rpc_urls: rpcUrls,
    explorer,
  };
}

function toCells({ network: { name, testnet }, token }: Row): string[] {
  return [
    name,
    testnet ? 'test' : 'main',
    token?.symbol ?? '-',
    token?.address ?? '-',
    token?.decimals.toString() ?? '-',
  ];
}

/** Everything about one token, or about a network of which none is known. */
function describe({ network, token }: Row): string[] {
  const { name, v1, caip2, testnet, nativeCurrency, rpcUrls, explorer } = network;
  const domain = Object.values(token?.terms ?? {}).join(' / ');
  const facts: [string, string | undefined][] = [
    ['kind', testnet ? 'test' : 'main'],
    ['CAIP-2', caip2],
    ['x402 v1', v1 ?? 'no name'],
    ['address', token?.address],
    ['decimals', token?.decimals.toString()],
    ['EIP-712', domain === '' ? undefined : domain],
    ['native', nativeCurrency.symbol],
    ...rpcUrls.map((url): [string, string] => ['rpc', url]),
    ['explorer', explorer],
  ];
  return [
    `${name} ${token?.symbol ?? '(no token is known here)'}`,
    ...facts.flatMap(([fact, value]) => (value === undefined ? [] : [`  ${fact}: ${value}`])),
  ];
}
