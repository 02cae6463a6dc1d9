// The peer of a connection, and what it may say about the request: X-Forwarded-* headers are believed from peers in
// `trusted_proxies` only, by default from none.
import type { IncomingMessage } from 'node:http';
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
  return (address) => address !== undefined && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

const HOST = /^[A-Za-z0-9.\-_~[\]:]{1,255}$/;

/** Scheme and authority under which the client reached us: the configured one, a trusted peer's word, or our own view. */
export function publicOrigin(req: IncomingMessage, configured: string | undefined, trusted: boolean): string {
  if (configured !== undefined) return configured;
  const proto = trusted ? last(req.headers['x-forwarded-proto']) : undefined;
  const forwarded = trusted ? last(req.headers['x-forwarded-host']) : undefined;
  const host = forwarded !== undefined && HOST.test(forwarded) ? forwarded : (req.headers.host ?? 'localhost');
  return `${proto === 'https' ? 'https' : 'http'}://${host}`;
}

/** The value that the nearest peer added: the last of a comma-separated list. */
function last(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value.at(-1) : value;
  return text?.slice(text.lastIndexOf(',') + 1).trim();
}
