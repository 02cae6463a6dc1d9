// The responses that are charged if the settlement waits for the status line: those that give the payer what was asked
// for. A redirect is one if it leads to another API, because the link may be what was sold. A response that cannot be
// judged is charged. The request's own Host decides nothing: its sender chose it.

/** Authorities (`host:port`) of this API; undefined if nothing says under which names clients reach it. */
export type OwnAuthorities = ReadonlySet<string> | undefined;

type ApiNames = {
  readonly publicUrl: string | undefined;
  /** Further names, each as `URL.hostname` writes it; without a port it means 80 and 443. */
  readonly hosts: readonly { readonly host: string; readonly port: number | undefined }[];
  readonly upstream: URL;
};

export function ownAuthorities({ publicUrl, hosts, upstream }: ApiNames): OwnAuthorities {
  if (publicUrl === undefined && hosts.length === 0) return undefined;
  const own = new Set([authorityOf(upstream)]);
  if (publicUrl !== undefined) own.add(authorityOf(new URL(publicUrl)));
  for (const { host, port } of hosts)
    for (const each of port === undefined ? DEFAULT_PORTS : [port]) own.add(`${host}:${each}`);
  return own;
}

/** Whether a response is charged for. `headers` are the upstream's, flat name, value pairs. */
export function isCharged(status: number, headers: readonly string[], own: OwnAuthorities): boolean {
  if (status === 101 || status === 304 || (status >= 200 && status < 300)) return true;
  if (status < 300 || status >= 400) return false;
  const locations = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'location');
  const [location] = locations;
  return location === undefined || locations.length > 1 || leadsAway(location, own);
}

const DEFAULT_PORTS = [80, 443];
/** Clients drop controls and spaces in front, some anywhere, and take `\` for `/`: what follows such a one cannot be judged. */
const PATH = /^\/(?:[^/\\\p{Cc} ]|$)/u;
const RELATIVE = /^(?![/\\\p{Cc} ])[^/?#:]*(?:[/?#]|$)/u;
const AUTHORITY = /^(https?:)?\/\/(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?(?=[/?#]|$)/i;

/** Whether a `Location` names another authority than our own. */
function leadsAway(location: string, own: OwnAuthorities): boolean {
  if (PATH.test(location) || RELATIVE.test(location)) return false;
  const [authority, scheme, port] = AUTHORITY.exec(location) ?? [];
  if (own === undefined || authority === undefined) return true;
  const absolute = scheme === undefined ? `http:${authority}` : authority;
  if (!URL.canParse(absolute)) return true;
  const url = new URL(absolute);
  // A location without a scheme has the client's, which only the client knows: any default port counts.
  if (scheme === undefined && port === undefined)
    return !DEFAULT_PORTS.some((each) => own.has(`${url.hostname}:${each}`));
  return !own.has(authorityOf(url));
}

function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}
