// The peers of a connection that are trusted: X-Forwarded-* headers are believed from peers in `trusted_proxies` only, by
// default from none.
import { BlockList, isIPv6 } from 'node:net';

/** Whether a peer's address lies in one of `cidrs`. Asked per request: cheap if the list is empty. */
export function createTrust(cidrs: readonly string[]): (address: string | undefined) => boolean {
  if (cidrs.length === 0) return () => false;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', bits] = cidr.split('/');
    const family = isIPv6(network) ? 'ipv6' : 'ipv4';
    list.addSubnet(network, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  // Requests come from few trusted peers, each after the other.
  let last: string | undefined;
  return (address) => {
    if (address === undefined) return false;
    if (address === last) return true;
    const isTrusted = list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    if (isTrusted) last = address;
    return isTrusted;
  };
}
