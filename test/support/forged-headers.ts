// Headers that a client forges. Each goes through a proxy with a free request of its own; what the API gets of it is found, be it
// the header under any name or the path that it names.
import { openRaw } from './raw-client.ts';
import type { Upstream } from './upstream.ts';

/** A header that nobody minds, so that a proxy which passes nothing on is not taken for one that forges nothing. */
const HARMLESS = 'X-Of-The-Client';

/** Finds the names of those that arrive at the API in any way. Throws if a harmless one does not. */
export async function forgedThatArrive(port: number, upstream: Upstream, names: readonly string[]): Promise<string[]> {
  const arrived: string[] = [];
  for (const name of [HARMLESS, ...names]) {
    const before = upstream.seen.length;
    const client = await openRaw(port);
    client.send(`GET /free/a HTTP/1.1\r\nHost: a\r\n${name}: /free/forged\r\nConnection: close\r\n\r\n`);
    await client.closed;
    const seen = upstream.seen.slice(before);
    if (seen.some(({ headers, url }) => url !== '/free/a' || JSON.stringify(headers).includes('forged')))
      arrived.push(name);
  }
  const [first, ...rest] = arrived;
  if (first !== HARMLESS) throw new Error(`a free request did not arrive with its ${HARMLESS}`);
  return rest;
}
