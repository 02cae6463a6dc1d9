// The peers that may ask: address first, then the secret, which every other text differs from.
import { expect, test } from 'vitest';
import { createHeaderReader } from '../../../src/gateway/decision/asked-headers.ts';
import { rulesOf } from '../../../src/gateway/decision/dialect-rules.ts';
import { createPeerCheck } from '../../../src/gateway/decision/peer.ts';
import { createTrust } from '../../../src/gateway/trust.ts';

const SECRET = 'a-secret-of-16-or-more';

const HEADER = 'tollgate-secret';
const NOTHING: ReadonlySet<string> = new Set();
const read = createHeaderReader(rulesOf('nginx'), HEADER, { ownPrefix: undefined, ours: NOTHING, allowed: NOTHING });

test('refuses: every text but the secret, shorter, longer, doubled, in other letters or as other bytes', () => {
  for (const secret of [SECRET, 's'.repeat(64), 's'.repeat(512)]) {
    const mayAsk = createPeerCheck({ trusts: () => true, secret });
    const sending = (rawHeaders: string[]): boolean => mayAsk('127.0.0.1', read(rawHeaders).values.secret);
    const by = (...values: string[]): boolean => sending(values.flatMap((value) => ['Tollgate-Secret', value]));
    expect(by(secret)).toBe(true);
    expect(sending(['TOLLGATE-SECRET', secret, 'Accept', '*/*'])).toBe(true);
    const wrong = ['', secret.slice(0, -1), `${secret}x`, `${secret} `, secret.toUpperCase(), `x${secret}`];
    const long = [secret + secret, `${secret}${'x'.repeat(4096)}`, 'x'.repeat(16_000), `${secret}\u00e9`];
    for (const text of [...wrong, ...long]) expect([text.length, by(text)]).toEqual([text.length, false]);
    expect(by(secret, secret)).toBe(false);
    expect(by()).toBe(false);
    expect(sending(['Tollgate_Secret', secret])).toBe(false);
    // One check does not leave anything to the next.
    expect(by(secret)).toBe(true);
    expect(by('')).toBe(false);
  }
});

test('refuses: an address outside the trusted ones, also right after a trusted one', () => {
  const trusts = createTrust(['10.0.0.0/8', '::1']);
  const mayAsk = createPeerCheck({ trusts, secret: undefined });
  for (const address of ['10.1.2.3', '::1', '10.1.2.3', '10.9.9.9'])
    expect([address, '11.1.2.3', '::2', '', undefined].map((each) => mayAsk(each, undefined))).toEqual([
      ...[true, false, false, false, false],
    ]);
});
