// Addresses that are near: of this machine, or of a private network. What is sent to one in plain text stays readable only to
// those who run these. No name but localhost is resolved here.
import { BlockList, isIP, isIPv6 } from 'node:net';

export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || covers(LOOPBACK, host);
}

/** Whether `host` is a loopback or private address, so that plain http to it stays on this machine or network. */
export function isNearby(host: string): boolean {
  return isLoopback(host) || covers(PRIVATE, host);
}

const LOOPBACK = blockList(['127.0.0.0/8', '::1']);
const PRIVATE = blockList(['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']);

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', bits] = cidr.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? 128 : Number(bits), family);
  }
  return list;
}

function covers(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 6 ? 'ipv6' : 'ipv4');
}
