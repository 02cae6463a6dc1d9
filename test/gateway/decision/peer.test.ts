// The peers that may ask: address first, then the secret, which every other text differs from.
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createPeerCheck } from '../../../src/gateway/decision/peer.ts';
import { createTrust } from '../../../src/gateway/trust.ts';

const SECRET = 'a-secret-of-16-or-more';

function requestWith(rawHeaders: string[], remoteAddress = '127.0.0.1'): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  return Object.assign(new IncomingMessage(socket), { rawHeaders });
}

test('refuses: every text but the secret, shorter, longer, doubled, in other letters or as other bytes', () => {
  for (const secret of [SECRET, 's'.repeat(64), 's'.repeat(512)]) {
    const mayAsk = createPeerCheck({ trusts: () => true, secret, secretHeader: 'tollgate-secret' });
    const by = (...values: string[]): boolean =>
      mayAsk(requestWith(values.flatMap((value) => ['Tollgate-Secret', value])));
    expect(by(secret)).toBe(true);
    expect(mayAsk(requestWith(['TOLLGATE-SECRET', secret, 'Accept', '*/*']))).toBe(true);
    const wrong = ['', secret.slice(0, -1), `${secret}x`, `${secret} `, secret.toUpperCase(), `x${secret}`];
    const long = [secret + secret, `${secret}${'x'.repeat(4096)}`, 'x'.repeat(16_000), `${secret}\u00e9`];
    for (const text of [...wrong, ...long]) expect([text.length, by(text)]).toEqual([text.length, false]);
    expect(by(secret, secret)).toBe(false);
    expect(by()).toBe(false);
    expect(mayAsk(requestWith(['Tollgate_Secret', secret]))).toBe(false);
    // One check does not leave anything to the next.
    expect(by(secret)).toBe(true);
    expect(by('')).toBe(false);
  }
});

test('refuses: an address outside the trusted ones, also right after a trusted one', () => {
  const trusts = createTrust(['10.0.0.0/8', '::1']);
  const mayAsk = createPeerCheck({ trusts, secret: undefined, secretHeader: 'tollgate-secret' });
  for (const address of ['10.1.2.3', '::1', '10.1.2.3', '10.9.9.9'])
    expect([
      mayAsk(requestWith([], address)),
      mayAsk(requestWith([], '11.1.2.3')),
      mayAsk(requestWith([], '::2')),
      mayAsk(requestWith([], '')),
    ]).toEqual([true, false, false, false]);
});
