import { expect, test } from 'vitest';
import { createGenerations } from '../../src/domain/generations.ts';

function counted(size: number) {
  const made: string[] = [];
  const get = createGenerations<string, { readonly key: string }>(size, (key) => {
    made.push(key);
    return { key };
  });
  return { get, made };
}

test('behaviour: what was asked for lately is made once', () => {
  const { get, made } = counted(2);
  for (const key of ['a', 'b', 'a', 'b', 'a']) expect(get(key).key).toBe(key);
  expect(made).toEqual(['a', 'b']);
});

test('behaviour: as many as its size are remembered for certain, and never twice as many and one', () => {
  const keys = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));
  const { get, made } = counted(3);
  for (const key of [...keys(3), ...keys(3)]) get(key);
  expect(made).toHaveLength(3);
  const full = counted(3);
  for (const key of [...keys(7), ...keys(7)]) full.get(key);
  expect(full.made.length).toBeGreaterThanOrEqual(7 + 1);
});

test('behaviour: a key that is asked for again and again outlives all others', () => {
  const { get, made } = counted(2);
  for (let i = 0; i < 50; i++) {
    get('a');
    get(`other ${i}`);
  }
  expect(made.filter((key) => key === 'a')).toHaveLength(1);
});
