// The order in which people see the members of a charge, in every answer and file that shows one.

/** Members that are shown first, in this order; the others follow in the order of their rows. */
export const FIRST_SHOWN = [
  ...(['id', 'status', 'route_id', 'route_method', 'route_pattern', 'method', 'path', 'request_id'] as const),
  ...([
    'amount',
    'currency',
    'customer_id',
    'asker',
    'payer',
    'payer_url',
    'receiver_id',
    'network',
    'network_name',
  ] as const),
  ...([
    'asset',
    'asset_decimals',
    'amount_atomic',
    'scheme',
    'pay_to_address',
    'nonce',
    'x402_version',
    'flow',
    'settle',
  ] as const),
  ...(['transaction', 'transaction_url', 'log_index', 'asked'] as const),
];

/** A copy of `members` with these names first; the others follow as they stand. */
export function inOrder<T extends object>(members: T, names: readonly string[]): T {
  const rest = Object.keys(members).filter((name) => !names.includes(name));
  return Object.fromEntries([...names, ...rest].map((name) => [name, Reflect.get(members, name)])) as T;
}
