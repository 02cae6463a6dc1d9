// The `receivers` section: where money goes, in one way that is written flat or in the several of `accepts`. The
// networks that are handed in judge networks, tokens and addresses; here stands the rest.
import { z } from 'zod';
import type { Networks, WayInput, WayReading } from '../domain/payment/network.ts';
import type { Receiver, ReceiverWay } from '../domain/payment/offer.ts';
import { facilitatorSchema, toFacilitator } from './facilitator-keys.ts';
import { choice, count, identifier, text, whatStands } from './fields.ts';

/** Number of nodes at most: more would only be asked when all before have failed. */
const MAX_NODES = 8;
const MAX_WAYS = 8;
const CURRENCY = /^[A-Z][A-Z0-9]{2,9}$/;

export function isPlaceholder(value: unknown): boolean {
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

export const NETWORK = 'a network, such as base; `tollgate networks` lists them';
export const PAY_TO = 'the address that receives the payments, in quotes';
export const FACILITATORS = 'a list of those who verify and settle payments, such as [https://facilitator.example.com]';
/** Limit of a token's names, which clients echo. */
const isName = (bytes: number) => (value: string) => value !== '' && Buffer.byteLength(value) <= bytes;

/** Keys of one way. */
export const WAY_KEYS = {
  scheme: choice(['exact']).default('exact'),
  network: text(NETWORK),
  asset: text(
    'a token that `tollgate networks` lists, such as USDC, or the address of another one, in quotes',
  ).optional(),
  asset_decimals: count(0, 36).optional(),
  asset_name: text('the EIP-712 name of the token, of at most 128 bytes', isName(128)).optional(),
  asset_version: text('the EIP-712 version of the token, such as "2", of at most 32 bytes', isName(32)).optional(),
  pay_to_address: text(PAY_TO).refine((value) => !isPlaceholder(value), {
    error: 'is still the placeholder; write your own address, in quotes',
  }),
};

/** Keys of a receiver: those of one way, or beside `accepts` what holds for ways that do not say otherwise. */
export const SHARED_KEYS = {
  max_timeout_seconds: count(30, 86_400).optional(),
  facilitators: z
    .array(facilitatorSchema, { error: ({ input }) => `${whatStands(input)}; write ${FACILITATORS}` })
    .min(1, 'is empty; name at least one facilitator')
    .optional(),
  rpc_url: rpcUrls.optional(),
  confirmations: count(1, 1000).optional(),
};

const waySchema = z.strictObject({ ...WAY_KEYS, ...SHARED_KEYS });
const WAYS = `a list of 1 to ${MAX_WAYS} ways to pay, each with network and pay_to_address`;

/** Ways of a receiver; one that is written flat is its own way. */
export const receiverSchema = z.strictObject({
  id: identifier('a name of this receiver'),
  accepts: z
    .array(waySchema, { error: ({ input }) => `${whatStands(input)}; write ${WAYS}` })
    .min(1, `is empty; write ${WAYS}`)
    .max(MAX_WAYS, `holds more than ${MAX_WAYS} ways; keep those that people pay in`)
    .optional(),
  ...waySchema.partial().shape,
  currencies: z
    .array(
      text('a currency code, such as USD', (value) => CURRENCY.test(value.toUpperCase())).transform((value) =>
        value.toUpperCase(),
      ),
    )
    .min(1, 'is empty; name the currencies of routes that this receiver takes, such as [USD, USDC]')
    .default(['USD', 'USDC']),
  settle: choice(['auto', 'before_response', 'before_forward']).default('auto'),
});
type ReceiverInput = z.output<typeof receiverSchema>;
type WayInFile = Pick<ReceiverInput, keyof typeof WAY_KEYS | keyof typeof SHARED_KEYS>;

/** Reads what raw data says of a way; what has the wrong type counts as left out, because the schema says so. */
export function wayOf(raw: Readonly<Record<string, unknown>>): WayInput {
  const word = (key: string): string | undefined => (typeof raw[key] === 'string' ? raw[key] : undefined);
  const parsed = SHARED_KEYS.rpc_url.safeParse(raw['rpc_url']);
  const decimals = raw['asset_decimals'];
  return {
    network: word('network') ?? '',
    asset: word('asset'),
    asset_decimals: typeof decimals === 'number' ? decimals : undefined,
    pay_to_address: word('pay_to_address'),
    rpc_url: parsed.success ? parsed.data : [],
    own: {
      asset_name: word('asset_name'),
      asset_version: word('asset_version'),
      confirmations: typeof raw['confirmations'] === 'number' ? String(raw['confirmations']) : undefined,
    },
  };
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
  const { id, currencies, settle, accepts = [input] } = input;
  return { id, currencies, settle, ways: accepts.map((way) => toWay(way, input, networks)) };
}

/** Keys that it leaves out have the receiver's values. */
function toWay(way: WayInFile, receiver: ReceiverInput, networks: Networks): ReceiverWay {
  const { network: networkName = '', scheme = 'exact' } = way;
  const reading = networks.readWay(wayOf({ ...way, rpc_url: way.rpc_url ?? receiver.rpc_url }));
  if (reading.kind !== 'way') throw new Error(`receiver ${receiver.id} was not checked`);
  const { testnet, rpcUrls, rpcPublic, ...read } = reading.way;
  const timeoutSeconds = way.max_timeout_seconds ?? receiver.max_timeout_seconds ?? 300;
  const facilitators = way.facilitators ?? receiver.facilitators ?? [];
  return {
    way: { ...read, receiverId: receiver.id, scheme, timeoutSeconds },
    ...{ networkName, testnet, rpcUrls, rpcPublic },
    facilitators: facilitators.map((facilitator) => toFacilitator(facilitator, receiver.id)),
    confirmations: way.confirmations ?? receiver.confirmations ?? 1,
  };
}
