// The keys of `receivers[]` and `routes[]` in words, for the table in config/README.md. What a key is called, and whether it is
// needed, comes from the schema; a key of the schema without words here, or the reverse, is an error.
import { z } from 'zod';
import { takesOf } from '../../src/config/fields.ts';
import { writtenSchema } from '../../src/config/keys.ts';
import { receiverSchema } from '../../src/config/receivers.ts';
import { configRouteSchema } from '../../src/config/route-keys.ts';

type Words = {
  readonly is: string;
  /** If the schema does not say it. */
  readonly takes?: string;
  /** What holds where the key is left out, if the schema does not say it. */
  readonly default?: string;
};

const NUMBERS = 'a number, as a string';
const WORDS: Readonly<Record<string, Words>> = {
  'receivers[].id': {
    is: 'The name of this receiver, which routes name in `receiver_config_id`. `default`: for routes that name none.',
  },
  'receivers[].accepts': {
    is: 'Up to 8 ways to pay, in order of preference, each with the keys of a way. Left out: the one way that the receiver itself says.',
    takes: 'a list of ways',
  },
  'receivers[].scheme': { is: 'Of a way: how it is paid.', default: '`exact`' },
  'receivers[].network': {
    is: 'Of a way: the network, by a name of `tollgate networks` or as CAIP-2 (`eip155:8453`).',
    default: 'needed',
  },
  'receivers[].asset': {
    is: 'Of a way: the token, by its symbol or address. A token that is not listed needs the three keys below.',
    default: '`USDC`',
  },
  'receivers[].asset_decimals': { is: 'Of a way: decimals of the token. Left out: those of the known token.' },
  'receivers[].asset_name': { is: 'Of a way: the EIP-712 name of the token. Left out: that of the known token.' },
  'receivers[].asset_version': { is: 'Of a way: the EIP-712 version of the token. Left out: that of the known token.' },
  'receivers[].pay_to_address': {
    is: 'Of a way: who is paid. On Solana the wallet, not its token account.',
    default: 'needed',
  },
  'receivers[].max_timeout_seconds': {
    is: 'How long a payer may let a signed payment hold. A way may have its own.',
    default: '`300`',
  },
  'receivers[].facilitators': {
    is: 'Who verifies and settles, asked in this order. A way may have its own. An entry may be a URL alone.',
    takes: 'a list of URLs, x402.org, cdp, payai, or sections with the keys below',
    default: 'needed',
  },
  'receivers[].facilitators[].url': { is: 'Where it is asked. Left out for `auth` of kind cdp and payai: theirs.' },
  'receivers[].facilitators[].headers': { is: 'Headers that are sent with every call.', takes: 'names and values' },
  'receivers[].facilitators[].timeouts.verify': { is: 'Time for it to verify a payment.', default: '`5s`' },
  'receivers[].facilitators[].timeouts.settle': { is: 'Time for it to settle a payment.', default: '`15s`' },
  'receivers[].facilitators[].limits.calls': { is: 'Most calls of one kind at a time.' },
  'receivers[].facilitators[].limits.waiting': { is: 'Most payments that wait to be verified.' },
  'receivers[].facilitators[].auth.kind': {
    is: 'How calls are signed: with a token of `bearer`, or with a key of Coinbase (`cdp`) or PayAI (`payai`). `auth` left out: not at all.',
  },
  'receivers[].facilitators[].auth.token': { is: 'Of `bearer`: the token. Or `token_file`, a file with it.' },
  'receivers[].facilitators[].auth.key_id': { is: 'Of `cdp` and `payai`: the id of the key.' },
  'receivers[].facilitators[].auth.key_secret': {
    is: 'Of `cdp` and `payai`: the secret of the key. Or `key_secret_file`, a file with it.',
  },
  'receivers[].facilitators[].insecure': {
    is: 'True: `auth` is sent over plain http to a name or a public address too.',
    default: '`false`',
  },
  'receivers[].rpc_url': {
    is: 'Nodes that are asked about settlements of unknown end, in this order. A way may have its own. Left out: public ones.',
    takes: 'a URL, a list of up to 8, or none',
  },
  'receivers[].confirmations': {
    is: 'How deep a settlement must be where a node is asked; EVM networks. A way may have its own.',
    default: '`1`',
  },
  'receivers[].currencies': { is: 'Currencies of routes that this receiver takes, at par with its tokens.' },
  'receivers[].settle': {
    is: 'When the money moves. `before_response`: the API answers first, so an error (4xx, 5xx) costs nothing. `before_forward`: the API is asked when the money has moved, so it never works unpaid, and every answer below 500 is charged. `auto`: the first for GET and HEAD, the second for methods with an effect.',
  },
  'routes[].route_pattern': {
    is: 'What costs: `/reports/q3`, `/users/:id`, `/reports/*` for everything below.',
    takes: 'a path that starts with a slash',
  },
  'routes[].method': { is: 'Which requests cost. `*`: any.', takes: 'an HTTP method or *' },
  'routes[].amount': { is: 'The price of one request.', takes: `${NUMBERS}, such as "0.10"` },
  'routes[].currency': { is: 'The currency of the price, one that the receiver takes.', takes: 'a code such as USD' },
  'routes[].name': {
    is: 'A name for dashboards, and for payers if there is no description.',
    takes: 'up to 200 characters',
  },
  'routes[].description': { is: 'What payers are told that they pay for.', takes: 'up to 1000 characters' },
  'routes[].status': { is: '`paused`: the route costs nothing for now.', takes: 'active or paused' },
  'routes[].allow_anonymous': {
    is: 'False: a request without a customer id is refused with 400.',
    takes: 'true or false',
  },
  'routes[].receiver_config_id': {
    is: 'The `id` of the receiver that is paid. Left out: `default`.',
    takes: 'an id of `receivers`',
  },
  'routes[].plan_id': {
    is: 'The `id` of the plan that the route is sold by. Left out: `default`, if there is one.',
    takes: 'an id of `selling.plans`',
  },
};

export type ListRow = {
  readonly path: string;
  readonly schema: z.ZodType;
  readonly takes: string;
  readonly sentence: string;
  readonly default: string | undefined;
};

export function listRows(section: 'receivers' | 'routes'): readonly ListRow[] {
  const schema = section === 'receivers' ? receiverSchema : configRouteSchema;
  const rows = leavesOf(`${section}[]`, schema).map(([path, leaf]): ListRow => {
    const words = WORDS[path];
    if (words === undefined) throw new Error(`${path} has no words in test/support/config-lists.ts`);
    return { path, schema: leaf, takes: words.takes ?? takesOf(leaf), sentence: words.is, default: words.default };
  });
  const known = new Set(rows.map(({ path }) => path));
  for (const path of Object.keys(WORDS))
    if (path.startsWith(section) && !known.has(path)) throw new Error(`${path} is no key of the configuration`);
  return rows;
}

/** Each key that holds a value. The keys of a way stand once: they are those of a receiver of one way. */
function leavesOf(path: string, schema: z.ZodType): [string, z.ZodType][] {
  const written = writtenSchema(schema);
  if (written instanceof z.ZodObject)
    return Object.entries<z.ZodType>(written.shape).flatMap(([name, inner]) => leavesOf(`${path}.${name}`, inner));
  if (path === 'receivers[].accepts' || !(written instanceof z.ZodArray)) return [[path, schema]];
  const element: unknown = written.element;
  const isSection = element instanceof z.ZodType && writtenSchema(element) instanceof z.ZodObject;
  return isSection ? [[path, schema], ...leavesOf(`${path}[]`, element)] : [[path, schema]];
}
