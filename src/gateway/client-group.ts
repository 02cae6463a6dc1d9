// The client that a request counts for in limits per client: an IPv4 address, or an IPv6 network of 64 bits. One
// subscriber has such a network, and could draw a new address from it for every request. Behind trusted proxies it is
// the last address of X-Forwarded-For that is not a trusted proxy itself. Addresses before that one are only the
// client's word.
import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** A request with what says where it comes from. */
export type AddressedRequest = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** The client of a request. `trusts`: whether an address is that of a trusted proxy. */
export function clientGroup(request: AddressedRequest, trusts: (address: string | undefined) => boolean): string {
  return groupOf(clientAddress(request, trusts));
}

/** The address of a client, as it was written. */
export function clientAddress(
  { socket, headers }: AddressedRequest,
  trusts: (address: string | undefined) => boolean,
): string {
  let address = socket.remoteAddress ?? '';
  const forwarded = headers['x-forwarded-for'];
  let rest = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  while (rest !== '' && trusts(address)) {
    const comma = rest.lastIndexOf(',');
    const named = readAddress(rest.slice(comma + 1).trim());
    // An unreadable entry counts for the proxy that passed it on.
    if (named === undefined) break;
    address = named;
    rest = comma < 0 ? '' : rest.slice(0, comma);
  }
  return address;
}

/** An address as proxies write it: bare, in brackets, or with a port. */
function readAddress(text: string): string | undefined {
  if (isIPv4(text) || isIPv6(text)) return text;
  const inside = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1];
  return inside !== undefined && (isIPv4(inside) || isIPv6(inside)) ? inside : undefined;
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS = 8;
const NETWORK_GROUPS = 4;

function groupOf(address: string): string {
  const [bare = ''] = address.split('%');
  if (!isIPv6(bare)) return bare;
  const mapped = MAPPED.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = bare.split('::');
  const before = split(head);
  const after = split(tail ?? '');
  const zeros = tail === undefined ? 0 : GROUPS - before.length - after.length;
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, NETWORK_GROUPS);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}

/** An IPv4 address at the end stands for two groups; which ones does not matter, they are past the network. */
function split(part: string): string[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]));
}
