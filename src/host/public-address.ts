// Addresses of the public internet. An address inside another one counts as well: IPv4 in IPv6 (mapped, NAT64, 6to4, ISATAP) is
// as public as the IPv4 address, and what cannot be judged is not public.
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Whether `address`, an IP address, is one that anybody can reach; false for any other text. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !NOT_PUBLIC_IPV4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  const groups = groupsOf(address);
  const inside = embeddedIpv4(groups);
  if (inside !== undefined) return isPublicAddress(inside);
  // Global unicast is 2000::/3; of it some blocks are for documentation, tunnels and measurements.
  return ((groups[0] ?? 0) & 0xe000) === 0x2000 && !NOT_PUBLIC_IPV6.check(address, 'ipv6');
}

const NOT_PUBLIC_IPV4 = listOf('ipv4', [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]);
/** Protocol assignments (Teredo, benchmarks, ORCHID among them), and documentation. */
const NOT_PUBLIC_IPV6 = listOf('ipv6', ['2001::/23', '2001:db8::/32', '3fff::/20']);

function listOf(family: 'ipv4' | 'ipv6', networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text =
    dotted === null ? address : `${dotted[1] ?? ''}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}`;
  const [before = '', after] = text.split('::');
  const read = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16)));
  const [head, tail] = [read(before), after === undefined ? [] : read(after)];
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
}

function hex(high: string | undefined, low: string | undefined): string {
  return (Number(high) * 256 + Number(low)).toString(16);
}

/** The IPv4 address that an IPv6 address stands for or leads to. */
function embeddedIpv4(groups: readonly number[]): string | undefined {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups;
  const starts = (...wanted: readonly number[]): boolean => wanted.every((value, index) => groups[index] === value);
  if (starts(0, 0, 0, 0, 0, 0xffff) || starts(0, 0, 0, 0, 0xffff, 0) || starts(0x64, 0xff9b, 0, 0, 0, 0))
    return dotted(g, h);
  if (a === 0x2002) return dotted(b, c);
  // ISATAP: whatever the network, the interface is an IPv4 address.
  if ((e & 0xfdff) === 0 && f === 0x5efe && (a !== 0 || d !== 0)) return dotted(g, h);
  return undefined;
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
