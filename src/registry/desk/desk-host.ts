// The host that a browser must have meant: that of `public_url`, or an address that no name on the internet can be made
// to lead to. A page elsewhere whose name was turned to this address (DNS rebinding) names itself in Host.
import type { IncomingMessage } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';
import { isLoopback, isNearby } from '../../host/nearby.ts';
import type { DeskSettings } from './desk-settings.ts';

type Site = Pick<DeskSettings, 'publicUrl'>;
type DeskRequest = Pick<IncomingMessage, 'url' | 'headersDistinct'> & {
  readonly socket: { readonly localPort?: number | undefined };
};

const HTTP_PORT = 80;
const AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;
/** Names of this machine in a Host header, and addresses that are none of a public network. */
const OWN_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const HOST = /^(\[[0-9a-f:.]+\]|[0-9a-z.-]+)(?::(\d{1,5}))?$/;

/** The origin that the request names; a problem if the desk is not served there. */
export function originOf(req: DeskRequest, site: Site): string | Problem {
  const host = hostOf(req);
  const refused = problem(
    'host_refused',
    site.publicUrl === undefined
      ? 'The desk is served under localhost or a private address, with the port of its listener; for any other name set registry.desk.public_url.'
      : `The desk is served under ${site.publicUrl} alone.`,
  );
  if (host === undefined) return refused;
  if (site.publicUrl !== undefined) {
    const { host: own, protocol } = new URL(site.publicUrl);
    const named = URL.canParse(`${protocol}//${host}`) ? new URL(`${protocol}//${host}`).host : undefined;
    return named === own ? site.publicUrl : refused;
  }
  const [, name = '', digits] = HOST.exec(host) ?? [];
  const port = digits === undefined ? HTTP_PORT : Number(digits);
  const literal = name.replace(/^\[|\]$/g, '');
  const isOwn = OWN_NAMES.has(name) || (isNearby(literal) && !isLoopback(literal));
  return isOwn && port === req.socket.localPort ? `http://${host}` : refused;
}

/** Whether browsers treat `origin` as one that nobody in between can change. */
export function isSecureOrigin(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** Host in lower case; undefined if there is not exactly one, or the target names another (RFC 9112 section 3.2.2). */
function hostOf({ url, headersDistinct }: DeskRequest): string | undefined {
  const [host, ...others] = headersDistinct['host'] ?? [];
  if (host === undefined || others.length > 0) return undefined;
  const authority = AUTHORITY.exec(url ?? '')?.[1];
  return authority === undefined || authority.toLowerCase() === host.toLowerCase() ? host.toLowerCase() : undefined;
}
