// Ids as lists shorten them are taken back, and nothing short enough to be an accident is taken for one.
import { describe, expect, test } from 'vitest';
import { readIdPart, shortId } from '../../src/domain/payment/quote.ts';

const ID = `chg_${'AbC-_9'.repeat(18)}wxyz`;

describe('a short id', () => {
  test('behaviour: a short id shows the end, which tells charges of one route apart, and is read as such', () => {
    expect(shortId(ID)).toBe(`chg_...${ID.slice(-12)}`);
    expect(readIdPart(shortId(ID))).toEqual({ start: 'chg_', end: ID.slice(-12) });
    expect(shortId('chg_0123456789ab')).toBe('chg_0123456789ab');
  });

  test.each([
    [ID, { start: ID, end: '' }],
    [ID.slice(0, 20), { start: ID.slice(0, 20), end: '' }],
    ['chg_Ab\u2026wxyz', { start: 'chg_Ab', end: 'wxyz' }],
    ['chg_Ab..wxyz', { start: 'chg_Ab', end: 'wxyz' }],
    ['9AbC-_9wxyz', { start: 'chg_', end: '9AbC-_9wxyz' }],
  ])('behaviour: %s is read as a part of an id', (text, part) => expect(readIdPart(text)).toEqual(part));

  test.each(['', 'chg_', 'chg_12345', 'chg_...a', '%', 'chg_a/b/c/d/e', `chg_${'a'.repeat(125)}`, "chg_'; DROP--"])(
    'refuses: %j as a part of an id',
    (text) => expect(readIdPart(text)).toBeUndefined(),
  );
});
