// What counts as base64: held against the expression that says it, over every way to spoil a text that is.
import { describe, expect, it } from 'vitest';
import { decodeBase64 } from '../../src/gateway/rails/x402/client-wire.ts';

const PADDED = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;
const UNPADDED = /^(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2,4}$/;
const isStandard = (text: string): boolean => PADDED.test(text) || UNPADDED.test(text);

const whole = Array.from({ length: 40 }, (_, size) =>
  Buffer.from(Array.from({ length: size + 1 }, (_, at) => (at * 89 + size * 31) % 256)),
);
const characters = 'Aa0+/=-_.,:% \t\r\n\0~\u007f\u0080\u00ff\u00bd\u0141\u2028\ud800'.split('');

describe('decodeBase64', () => {
  it.each(whole.map((bytes) => [bytes.length, bytes] as const))('base64 of %i bytes is read', (_, bytes) => {
    const padded = bytes.toString('base64');
    expect(decodeBase64(padded)).toEqual(bytes);
    expect(decodeBase64(padded.replace(/=+$/, ''))).toEqual(bytes);
  });

  it('base64 is read if the expression takes it, and only then: one character replaced, put in, or taken out', () => {
    for (const bytes of whole.slice(0, 12)) {
      const text = bytes.toString('base64');
      for (let at = 0; at <= text.length; at++) {
        const [before, from, after] = [text.slice(0, at), text.slice(at), text.slice(at + 1)];
        for (const character of characters) {
          for (const spoilt of [before + character + after, before + character + from, before + after])
            expect([spoilt, decodeBase64(spoilt) !== undefined]).toEqual([spoilt, isStandard(spoilt)]);
        }
      }
    }
  });

  it('base64 is read if the expression takes it, and only then: every text of four characters', () => {
    const few = 'Az9+=-\u00ff '.split('');
    for (const a of few)
      for (const b of few)
        for (const c of few)
          for (const d of few) {
            const text = a + b + c + d;
            expect([text, decodeBase64(text) !== undefined]).toEqual([text, isStandard(text)]);
          }
  });

  it.each(['', '=', '==', '====', 'A', 'AA=', 'AAAAA', 'A===', 'AA=A', 'AAAA=', 'AAAA====', 'AAA=AAA='])(
    'base64 of "%s" is refused',
    (text) => {
      expect(decodeBase64(text)).toBeUndefined();
    },
  );
});
