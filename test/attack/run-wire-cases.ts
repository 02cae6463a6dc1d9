// Runs wire cases against a proxy in front of a raw upstream, whole and byte by byte. After each case one more request
// goes through on a connection of its own: if anything had been left over on a pooled connection to the upstream, this
// request would get a foreign answer.
import { expect } from 'vitest';
import { headerOf, openRaw } from '../support/raw-client.ts';
import type { RawUpstream } from '../support/raw-upstream.ts';
import type { WireCase } from './wire-cases.ts';

/** Answers that a raw upstream has to give for these cases: what it was asked. */
export function echoAnswer(method: string, target: string): string {
  const body = `${method} ${target}`;
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${method === 'HEAD' ? '' : body}`;
}

export async function runWireCase(
  port: number,
  upstream: RawUpstream,
  wire: WireCase,
  how: 'whole' | 'trickled',
): Promise<void> {
  const seenBefore = upstream.requests.length;
  const client = await openRaw(port);
  if (how === 'whole') client.send(wire.send);
  else await client.trickle(wire.send);
  for (const statuses of wire.answers) {
    const answer = await client.answer(wire.send.startsWith('HEAD '));
    expect(statuses, client.received()).toContain(answer.status);
    if (answer.status >= 400 && answer.status !== 402) {
      expect(headerOf(answer, 'content-type'), client.received()).toBe('application/problem+json');
    }
  }
  if (wire.closes === true) await client.closed;
  const received = client.received();
  client.close();

  const fence = await openRaw(port);
  fence.send('GET /free/fence HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n');
  const passed = await fence.answer();
  expect(passed.body.toString(), 'the next request got its own answer').toBe('GET /free/fence');
  await fence.closed;

  expect(received.match(/HTTP\/1\.1 \d{3} /g)?.length ?? 0, received).toBe(wire.answers.length);
  const seen = upstream.requests.slice(seenBefore, -1);
  expect(upstream.requests.at(-1)?.target).toBe('/free/fence');
  expect(seen.filter(({ whole }) => whole).map(({ method, target }) => `${method} ${target}`)).toHaveLength(
    wire.upstream,
  );
  if (wire.broken !== true) expect(seen).toHaveLength(wire.upstream);
  const last = seen.at(-1);
  if (last !== undefined && wire.wrong !== undefined) expect(wire.wrong(last)).toBeUndefined();
}
