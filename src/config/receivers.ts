// The `receivers` section: where money goes. A wrong address here loses money for good, so everything that can be known
// to be wrong is refused: placeholders, the zero address, tokens whose decimals would have to be guessed.
import { z } from 'zod';
import { findNetwork, NETWORKS, type KnownAsset, type Receiver } from '../domain/receiver.ts';
import { hasWrongChecksum } from './checksum.ts';
import { choice, count, duration, headerName, identifier, oneOf, text, url, whatStands } from './fields.ts';
import { isMap, type Issue, type Path } from './problems.ts';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
/** More of them would only be asked when all before have failed. */
const MAX_NODES = 8;
const ZERO = /^0x0{40}$/;
/** Where nobody has the key, and tokens are sent to be gone. */
const DEAD = /^0x0{36}dead$/i;
/** The right checksum of a mistyped address would help nobody, so it is not shown. */
const WRONG_CHECKSUM = 'has a wrong checksum (EIP-55): a digit or the case of a letter is mistyped; compare it with';
/** The public facilitator of the x402 project. */
const TEST_FACILITATOR = /^https:\/\/(www\.)?x402\.org(\/|$)/i;
const CURRENCY = /^[A-Z][A-Z0-9]{2,9}$/;
const NETWORK_NAMES = NETWORKS.map((network) => network.v1);
const NAMES_WITH_USDC = NETWORKS.filter((network) => network.usdc).map((network) => network.v1);

const facilitator = z.preprocess(
  (value) => (typeof value === 'string' ? { url: value } : value),
  z.strictObject({
    url: url('the http or https URL of an x402 facilitator, without query'),
    headers: z
      .record(
        headerName('a header name of letters, digits and dashes'),
        text('a header value of visible ASCII characters', (value) => /^[\x20-\x7e\t]{1,4096}$/.test(value)),
      )
      .default({}),
    timeouts: z
      .strictObject({ verify: duration(1, 120_000).default(5000), settle: duration(1, 300_000).default(15_000) })
      .prefault({}),
    limits: z
      .strictObject({ calls: count(1, 10_000).default(512), waiting: count(0, 100_000).default(512) })
      .prefault({}),
  }),
);

const RPC_ADVICE = 'the http or https URL of a JSON-RPC node, a list of them, or none';

/** Becomes a list, which `none` leaves empty. */
const rpcUrls = z.unknown().transform((value, context): string[] => {
  if (value === 'none') return [];
  const complain = (message: string, path: number[] = []): void => {
    context.addIssue({ code: 'custom', message, path });
  };
  const urls: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (urls.length === 0) complain(`is empty; write ${RPC_ADVICE}`);
  if (urls.length > MAX_NODES) complain(`names more than ${MAX_NODES} nodes; keep those that answer best`);
  return urls.flatMap((url, index) => {
    const path = Array.isArray(value) ? [index] : [];
    if (typeof url !== 'string') complain(`${whatStands(url)}; write ${RPC_ADVICE}`, path);
    else if (!/^https?:\/\/[^\s\\]+$/i.test(url) || !URL.canParse(url)) complain(`is not ${RPC_ADVICE}`, path);
    else if (urls.indexOf(url) < index) complain('stands twice; keep one', path);
    else return [url];
    return [];
  });
});

export const receiverSchema = z.strictObject({
  id: identifier('a name of this receiver'),
  scheme: choice(['exact']).default('exact'),
  network: text(
    `a network: ${oneOf(NETWORK_NAMES)}, or eip155: and the chain id`,
    (value) => findNetwork(value) !== undefined,
  ),
  asset: text('the address of the token: 0x and 40 hex digits, in quotes', (value) => ADDRESS.test(value))
    .refine((value) => !ADDRESS.test(value) || !hasWrongChecksum(value), {
      error: `${WRONG_CHECKSUM} the address that the token's issuer publishes`,
    })
    .optional(),
  asset_decimals: count(0, 36).optional(),
  asset_name: text('the EIP-712 name of the token').optional(),
  asset_version: text('the EIP-712 version of the token, such as "2"').optional(),
  pay_to_address: text(
    'the address that receives the payments: 0x and 40 hex digits, in quotes',
    (value) => value.startsWith('0x.') || ADDRESS.test(value),
  )
    .refine((value) => !value.startsWith('0x.'), {
      error: 'is still the placeholder; write your own address: 0x and 40 hex digits, in quotes',
    })
    .refine((value) => !ZERO.test(value), {
      error: 'is the zero address, which nobody can spend from; write your own',
    })
    .refine((value) => !ADDRESS.test(value) || !hasWrongChecksum(value), {
      error: `${WRONG_CHECKSUM} your wallet`,
    }),
  max_timeout_seconds: count(30, 86_400).default(300),
  currencies: z
    .array(
      text('a currency code, such as USD', (value) => CURRENCY.test(value.toUpperCase())).transform((value) =>
        value.toUpperCase(),
      ),
    )
    .min(1, 'is empty; name the currencies of routes that this receiver takes, such as [USD, USDC]')
    .default(['USD', 'USDC']),
  facilitators: z
    .array(facilitator, {
      error: ({ input }) =>
        `${whatStands(input)}; write a list of those who verify and settle payments, such as [https://facilitator.example.com]`,
    })
    .min(1, 'is empty; name at least one facilitator'),
  rpc_url: rpcUrls.optional(),
  confirmations: count(1, 1000).default(1),
  settle: choice(['auto', 'before_response', 'before_forward']).default('auto'),
});
export type ReceiverInput = z.output<typeof receiverSchema>;

/** The asset of a receiver, completed from what is known; undefined where that is not enough. */
function assetOf(
  input: Partial<Pick<ReceiverInput, 'network' | 'asset' | 'asset_decimals' | 'asset_name' | 'asset_version'>>,
): KnownAsset | undefined {
  const known = knownAssetOf(input);
  const address = input.asset ?? known?.address;
  const decimals = input.asset_decimals ?? known?.decimals;
  const name = input.asset_name ?? known?.name;
  const version = input.asset_version ?? known?.version;
  if (address === undefined || decimals === undefined || name === undefined || version === undefined) return undefined;
  return { address, decimals, name, version };
}

/** USDC of the receiver's network, where that is the asset meant: none is named, or this one. */
export function knownAssetOf(input: { readonly network?: unknown; readonly asset?: unknown }): KnownAsset | undefined {
  const usdc = typeof input.network === 'string' ? findNetwork(input.network)?.known?.usdc : undefined;
  const asset = typeof input.asset === 'string' ? input.asset.toLowerCase() : input.asset;
  return asset === undefined || asset === usdc?.address.toLowerCase() ? usdc : undefined;
}

/** Whether nobody can spend what is paid there. */
export function isDead(address: string): boolean {
  return DEAD.test(address);
}

/** What would be fine on a test network. */
function mainNetworkIssues(input: Record<string, unknown>, index: number): Issue[] {
  const { network, pay_to_address: payTo, facilitators } = input;
  if (typeof network !== 'string' || findNetwork(network)?.known?.testnet !== false) {
    const other = typeof network === 'string' && findNetwork(network)?.known === undefined;
    return other ? deadIssues(payTo, index) : [];
  }
  const list: readonly unknown[] = Array.isArray(facilitators) ? facilitators : [];
  return [
    ...deadIssues(payTo, index),
    ...list.flatMap((item, at): Issue[] => {
      const url = isMap(item) ? item['url'] : item;
      if (typeof url !== 'string' || !TEST_FACILITATOR.test(url)) return [];
      return [
        {
          path: ['receivers', index, 'facilitators', at],
          message: 'serves test networks only, so nobody could pay here; name a facilitator that serves this network',
        },
      ];
    }),
  ];
}

function deadIssues(payTo: unknown, index: number): Issue[] {
  if (typeof payTo !== 'string' || !isDead(payTo)) return [];
  const message = 'is an address that nobody has the key of, so every payment would be lost; write your own';
  return [{ path: ['receivers', index, 'pay_to_address'], message }];
}

/** What a receiver's network needs to be told. */
function rpcIssues(input: Record<string, unknown>, index: number): Issue[] {
  const { network, rpc_url: url } = input;
  const found = typeof network === 'string' ? findNetwork(network) : undefined;
  if (url !== undefined || found === undefined || found.known?.publicRpc !== undefined) return [];
  return [
    {
      path: ['receivers', index, 'rpc_url'],
      message: `is missing; no public node of this network is known here, so write ${RPC_ADVICE}: with none, a payment whose settlement has no clear end waits until its payer asks again`,
    },
  ];
}

/** Fields that must be written because nothing is known about the token or the network. Looks at raw data, whatever its shape. */
export function receiverIssues(raw: unknown): Issue[] {
  if (!Array.isArray(raw)) return [];
  return raw.flatMap((input: unknown, index): Issue[] => {
    if (!isMap(input) || typeof input['network'] !== 'string' || findNetwork(input['network']) === undefined) return [];
    const main = mainNetworkIssues(input, index);
    if (knownAssetOf(input)) return [...main, ...rpcIssues(input, index)];
    const fields = ['asset', 'asset_decimals', 'asset_name', 'asset_version'];
    const token = fields
      .filter((field) => input[field] === undefined)
      .map((field) => ({
        path: ['receivers', index, field] satisfies Path,
        message: `is missing; only USDC on ${oneOf(NAMES_WITH_USDC)} is known here, so every asset_ field of another token must be written`,
      }));
    return [...main, ...token, ...rpcIssues(input, index)];
  });
}

/** The receiver that `input` describes. Throws where `receiverIssues` found something. */
export function toReceiver(input: ReceiverInput): Receiver {
  const network = findNetwork(input.network);
  const asset = assetOf(input);
  if (network === undefined || asset === undefined) throw new Error(`receiver ${input.id} was not checked`);
  const rpcUrls = input.rpc_url ?? network.known?.publicRpc ?? [];
  return {
    id: input.id,
    scheme: input.scheme,
    network: input.network,
    caip2: network.caip2,
    v1Network: network.v1,
    asset: asset.address,
    assetDecimals: asset.decimals,
    assetName: asset.name,
    assetVersion: asset.version,
    payTo: input.pay_to_address,
    maxTimeoutSeconds: input.max_timeout_seconds,
    currencies: input.currencies,
    facilitators: input.facilitators.map(({ url, headers, timeouts, limits }) => ({
      url,
      headers,
      timeouts: { verifyMs: timeouts.verify, settleMs: timeouts.settle },
      limits,
    })),
    rpcUrls,
    rpcPublic: rpcUrls.length > 0 && rpcUrls.every((url) => network.known?.publicRpc?.includes(url)),
    confirmations: input.confirmations,
    settle: input.settle,
  };
}
