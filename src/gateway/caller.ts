// Reads the caller: the customer id and the payment credential. Only if a request costs something, and from the raw
// headers: Node joins or drops repeated ones, and two credentials must never be taken for one. The customer id is a claim
// unless something in front of Tollgate vouches for it.
import type { Caller, Credential } from '../domain/decide.ts';
import { problem, type Problem } from '../domain/problem.ts';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

const CREDENTIAL_BYTES = 16 * 1024;
const CUSTOMER_ID = /^[\x21-\x7e]{1,128}$/;
const CREDENTIAL_HEADERS: ReadonlyMap<string, Credential['version']> = new Map([
  ['payment-signature', 2],
  ['x-payment', 1],
]);

/**
 * `customerHeader`: its lower-cased name. Problems: `payment_malformed` for two credentials or one over 16 KiB; its rail
 * reads what is in it. `customer_required` for a customer id that is repeated or not 1..128 visible ASCII characters.
 */
export function readCaller(rawHeaders: readonly string[], customerHeader: string): Caller | Problem {
  let customerId: string | undefined;
  let credential: Credential | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    // Only these lengths can be one of the three names.
    if (given.length !== 17 && given.length !== 9 && given.length !== customerHeader.length) continue;
    const name = given.toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    const version = CREDENTIAL_HEADERS.get(name);
    if (version !== undefined) {
      if (credential !== undefined)
        return problem('payment_malformed', 'The request carries more than one payment; send one.');
      if (value.length > CREDENTIAL_BYTES) return problem('payment_malformed', 'The payment is longer than 16 KiB.');
      credential = { version, value };
    } else if (name === customerHeader) {
      if (customerId !== undefined || !CUSTOMER_ID.test(value)) {
        return problem(
          'customer_required',
          'The customer id must be given once, as 1 to 128 visible ASCII characters.',
        );
      }
      customerId = value;
    }
  }
  return { customerId, credential };
}

// The peer of a connection, and what it may say about the request: X-Forwarded-* headers are believed from peers in
// `trusted_proxies` only, by default from none.

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
