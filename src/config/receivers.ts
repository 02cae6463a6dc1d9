// The `receivers` section: where money goes. What a network, a token and an address may be is judged by the networks that
// are handed in; here stands the rest.
import { z } from 'zod';
import type { Networks, WayInput, WayReading } from '../domain/network.ts';
import type { Receiver, ReceiverWay } from '../domain/receiver.ts';
import { facilitatorSchema, toFacilitator } from './facilitators.ts';
import { choice, count, identifier, text, whatStands } from './fields.ts';
import { isMap, type Issue } from './problems.ts';

/** More of them would only be asked when all before have failed. */
const MAX_NODES = 8;
/** That of the x402 project. */
const TEST_ONLY = /^https:\/\/(www\.)?x402\.org(\/|$)/i;
const CURRENCY = /^[A-Z][A-Z0-9]{2,9}$/;

function isPlaceholder(value: unknown): boolean {
  return typeof value === 'string' && value.includes('...');
}

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
  network: text('a network, such as base; `tollgate networks` lists them'),
  asset: text(
    'a token that `tollgate networks` lists, such as USDC, or the address of another one, in quotes',
  ).optional(),
  asset_decimals: count(0, 36).optional(),
  asset_name: text('the EIP-712 name of the token').optional(),
  asset_version: text('the EIP-712 version of the token, such as "2"').optional(),
  pay_to_address: text('the address that receives the payments, in quotes').refine((value) => !isPlaceholder(value), {
    error: 'is still the placeholder; write your own address, in quotes',
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
    .array(facilitatorSchema, {
      error: ({ input }) =>
        `${whatStands(input)}; write a list of those who verify and settle payments, such as [https://facilitator.example.com]`,
    })
    .min(1, 'is empty; name at least one facilitator'),
  rpc_url: rpcUrls.optional(),
  confirmations: count(1, 1000).default(1),
  settle: choice(['auto', 'before_response', 'before_forward']).default('auto'),
});
export type ReceiverInput = z.output<typeof receiverSchema>;

/** What raw data says of its way to pay; what has the wrong type counts as left out, because the schema says so. */
function wayOf(raw: Readonly<Record<string, unknown>>): WayInput {
  const word = (key: string): string | undefined => (typeof raw[key] === 'string' ? raw[key] : undefined);
  const parsed = receiverSchema.shape.rpc_url.safeParse(raw['rpc_url']);
  const decimals = raw['asset_decimals'];
  return {
    network: word('network') ?? '',
    asset: word('asset'),
    asset_decimals: typeof decimals === 'number' ? decimals : undefined,
    pay_to_address: word('pay_to_address'),
    rpc_url: parsed.success ? parsed.data : [],
    own: { asset_name: word('asset_name'), asset_version: word('asset_version') },
  };
}

/** What the networks say of each receiver's way. Looks at raw data, whatever its shape. */
export function receiverIssues(raw: unknown, networks: Networks): Issue[] {
  if (!Array.isArray(raw)) return [];
  return raw.flatMap((input: unknown, index): Issue[] => {
    if (!isMap(input) || typeof input['network'] !== 'string') return [];
    const path = ['receivers', index];
    const reading = networks.readWay(wayOf(input));
    const wrong = reading.kind === 'way' ? [] : reading.issues;
    return [
      ...(networks.find(input['network'])?.testnet === false ? testFacilitatorIssues(input, index) : []),
      ...wrong.flatMap(({ field, message }): Issue[] => {
        const value = input[field];
        // What stands there has the wrong type, or is the placeholder: the schema says so.
        if (value !== undefined && message.startsWith('is missing')) return [];
        if (field === 'pay_to_address' && isPlaceholder(value)) return [];
        return [
          { path: [...path, field], message, ...(reading.kind === 'issues' && reading.whole ? { covers: path } : {}) },
        ];
      }),
    ];
  });
}

/** On a network of real money. */
function testFacilitatorIssues({ facilitators }: Readonly<Record<string, unknown>>, index: number): Issue[] {
  const list: readonly unknown[] = Array.isArray(facilitators) ? facilitators : [];
  return list.flatMap((item, at): Issue[] => {
    const url = isMap(item) ? item['url'] : item;
    if (typeof url !== 'string' || !TEST_ONLY.test(url)) return [];
    const message = 'serves test networks only, so nobody could pay here; name a facilitator that serves this network';
    return [{ path: ['receivers', index, 'facilitators', at], message }];
  });
}

/** A way that was checked, read again. */
export function readAgain({ way, networkName, rpcUrls }: ReceiverWay, networks: Networks): WayReading {
  const { asset, decimals, payTo, terms } = way;
  return networks.readWay({
    ...{ network: networkName, asset, asset_decimals: decimals, pay_to_address: payTo, rpc_url: rpcUrls },
    own: { asset_name: terms['name'], asset_version: terms['version'] },
  });
}

/** The receiver that `input` describes. Throws if `receiverIssues` found something. */
export function toReceiver(input: ReceiverInput, networks: Networks): Receiver {
  const reading = networks.readWay(wayOf(input));
  if (reading.kind !== 'way') throw new Error(`receiver ${input.id} was not checked`);
  const { testnet, rpcUrls, rpcPublic, ...read } = reading.way;
  return {
    id: input.id,
    ways: [
      {
        way: { ...read, receiverId: input.id, scheme: input.scheme, timeoutSeconds: input.max_timeout_seconds },
        networkName: input.network,
        testnet,
        facilitators: input.facilitators.map((facilitator) => toFacilitator(facilitator, input.id)),
        rpcUrls,
        rpcPublic,
        confirmations: input.confirmations,
      },
    ],
    currencies: input.currencies,
    settle: input.settle,
  };
}
