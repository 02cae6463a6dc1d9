// Addresses as configuration names them: where a listener binds, which networks are trusted, which hosts count as near
// enough for plain http. Nothing here resolves a name or opens a socket.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { isLoopback, isNearby } from '../host/nearby.ts';

export { isLoopback, isNearby };

/** Address to listen on: `host` without brackets; port 0 lets the operating system choose. */
export type Listen = { readonly host: string; readonly port: number };

export const LISTEN_ADVICE = 'an address and a port, such as 127.0.0.1:8402, 0.0.0.0:8402 or [::1]:8402';

const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/;

/** Reads `host:port` or `[IPv6]:port`; undefined if `text` is neither. */
export function parseListen(text: string): Listen | undefined {
  const [, bracketed, bare, digits] = /^(?:\[([^\]]+)\]|([^[\]:]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits ?? Number.NaN);
  if (!(port <= 65_535)) return undefined;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined;
  if (bare === undefined || (/^[\d.]+$/.test(bare) ? !isIPv4(bare) : !HOST_NAME.test(bare))) return undefined;
  return { host: bare, port };
}

/** A host under which clients reach this API; `port` undefined: the default ports of http and https. */
export type HostPort = { readonly host: string; readonly port: number | undefined };

export const HOST_ADVICE = 'a host name or address, maybe with a port, such as www.example.com or localhost:8402';

/**
 * Reads `name`, `name:port`, `[IPv6]` or `[IPv6]:port`, the host as `URL.hostname` writes it; undefined if `text` is
 * none.
 */
export function parseHost(text: string): HostPort | undefined {
  const [, written, digits] = /^(\[[^\]]+\]|[^\s[\]:/?#@\\%]+)(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  if (written === undefined || !URL.canParse(`http://${written}`)) return undefined;
  const host = new URL(`http://${written}`).hostname;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && port > 65_535) return undefined;
  return host.startsWith('[') || HOST_NAME.test(host) ? { host, port } : undefined;
}

export function formatListen({ host, port }: Listen): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Whether both cannot be bound at once: the same port, and one address that covers the other. Port 0 never clashes. */
export function listensClash(a: Listen, b: Listen): boolean {
  if (a.port === 0 || a.port !== b.port) return false;
  if (isWildcard(a.host) || isWildcard(b.host)) return true;
  const [left, right] = [a.host.toLowerCase(), b.host.toLowerCase()];
  return left === right || (left === 'localhost' && isLoopback(right)) || (right === 'localhost' && isLoopback(left));
}

/** Whether `host` binds every address. Node binds `::` for both families, so either wildcard stands for all. */
export function isWildcard(host: string): boolean {
  return /^[0.]+$/.test(host) || /^[0:]+$/.test(host);
}

/** `10.0.0.0/8`, `fd00::/8`, or one address; undefined if `text` is none of them. */
export function parseCidr(text: string): { readonly address: string; readonly bits: number } | undefined {
  const [, address, digits] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const width = { 0: undefined, 4: 32, 6: 128 }[address === undefined ? 0 : isIP(address)];
  if (address === undefined || width === undefined) return undefined;
  const bits = digits === undefined ? width : Number(digits);
  return bits <= width ? { address, bits } : undefined;
}
