// When the page sends a payment again by itself.
import { expect, test } from 'vitest';
import type { ToldProblem } from '../../src/page/told-problem.ts';
import { secondsUntilAsked } from '../../src/page/wait.ts';

const told = (charged: ToldProblem['charged'], seconds?: number): ToldProblem => ({
  ...{ status: 502, code: 'upstream_unreachable', detail: '', charged, seconds },
});
const pauses = (problem: ToldProblem): readonly (number | undefined)[] =>
  Array.from({ length: 12 }, (_, index) => secondsUntilAsked(problem, index + 1));

test('behaviour: a charged answer is asked for when the server says, however long that is, and never given up', () => {
  expect(pauses(told(true, 1800))).toEqual(Array.from({ length: 12 }, () => 1800));
});

test('behaviour: a charged answer without a word of the server is asked for at the pauses of a server', () => {
  expect(pauses(told(true)).slice(0, 6)).toEqual([2, 10, 60, 300, 1800, 1800]);
});

test('behaviour: a request that took nothing is asked again ever more seldom, never before the server says, and eight times', () => {
  const none = undefined;
  expect(pauses(told(false, 2))).toEqual([2, 4, 8, 16, 30, 30, 30, 30, none, none, none, none]);
  expect(pauses(told(false, 20)).slice(0, 5)).toEqual([20, 20, 20, 20, 30]);
});

test('behaviour: an unknown end is asked for as the server says until it is known', () => {
  expect(pauses(told('unknown', 4))).toEqual(Array.from({ length: 12 }, () => 4));
});

test('behaviour: a request whose answer says nothing of the money is asked again ten times', () => {
  expect(pauses(told(undefined, 3)).filter((seconds) => seconds === 3)).toHaveLength(10);
});
