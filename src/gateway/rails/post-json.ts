// What a payment waits for: JSON posted to a facilitator over connections of our own, because a general client takes
// longer than everything else that is done for the payment. The same rules as for every call to such a service (http-json.ts):
// made once, no redirect, a bounded answer, one time limit, and a failure says whether a byte may have left.
import { http } from '../../host/node-http.ts';
import type { JsonLimits } from './bounded-json.ts';
import { createConnections, type ConnectionsDeps } from './connections.ts';
import type { Deadline } from './deadline.ts';
import { readReply, type JsonReply } from './http-json.ts';

export type JsonPost = {
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  readonly maxBytes: number;
  readonly limits: JsonLimits;
  readonly deadline: Deadline;
};

/** Posts to `path` below the service's URL. Never rejects. */
export type JsonPosts = (path: string, post: JsonPost) => Promise<JsonReply>;

/** Said by us, whatever is configured: they frame the call. */
const FRAMING = /^(?:host|connection|content-length|content-type|transfer-encoding|accept-encoding|expect|upgrade)$/i;

/** `url`: an http or https URL; its path is kept, its query and fragment are not. */
export function createJsonPosts(url: string, deps: ConnectionsDeps): JsonPosts {
  const service = new URL(url);
  const connections = createConnections(service, deps);
  const base = service.pathname.replace(/\/+$/, '');
  // Headers are configuration: their text is made once for each set of them.
  const heads = new WeakMap<JsonPost['headers'], Map<string, string>>();

  const headOf = (path: string, headers: JsonPost['headers']): string => {
    let known = heads.get(headers);
    if (known === undefined) heads.set(headers, (known = new Map()));
    let head = known.get(path);
    if (head === undefined) known.set(path, (head = writeHead(`${base}/${path}`, service.host, headers)));
    return head;
  };

  return async (path, { headers, body, maxBytes, limits, deadline }) => {
    const length = Buffer.byteLength(body);
    const text = `${headOf(path, headers)}Content-Length: ${length}\r\n\r\n${body}`;
    // ASCII goes out as it is; anything else has to be encoded.
    const encoding = length === body.length ? 'latin1' : 'utf8';
    const end = await connections.call({ text, encoding }, maxBytes, deadline);
    return end.kind === 'answer' ? readReply(end.status, end.body, limits) : end;
  };
}

/** All of a request's head but its length. Throws where a configured header cannot be written. */
function writeHead(target: string, host: string, headers: JsonPost['headers']): string {
  const fields = [
    ['Host', host],
    ['Content-Type', 'application/json'],
    ['Accept', 'application/json'],
    // An encoded answer could grow past its limit while it is decoded.
    ['Accept-Encoding', 'identity'],
    ['User-Agent', 'tollgate'],
  ];
  for (const [name, value] of Object.entries(headers)) {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    if (FRAMING.test(name)) continue;
    const own = fields.findIndex(([known = '']) => known.toLowerCase() === name.toLowerCase());
    if (own >= 0) fields.splice(own, 1);
    fields.push([name, value]);
  }
  return `POST ${target} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
}
