// Which set replaces the last good one: a table, and stories over time.
import { describe, expect, test } from 'vitest';
import {
  decideSet,
  describeHolding,
  type Decision,
  type HeldSet,
  type PollAnswer,
  type SetFacts,
} from '../../../../src/gateway/sync/keep/acceptance.ts';

const EMPTY_AFTER = 300_000;
const set = (registryId: string | undefined, revision: number | undefined, size: number): SetFacts => ({
  registryId,
  revision,
  size,
});
const polled = (facts: SetFacts): PollAnswer => ({ kind: 'set', facts });
const decide = (good: SetFacts | undefined, next: PollAnswer, holding?: HeldSet, nowMs = 0): Decision =>
  decideSet({ good, holding, emptyAfterMs: EMPTY_AFTER }, next, nowMs);

const GOOD = set('A', 7, 3);

describe('one poll', () => {
  test.each<[string, SetFacts | undefined, SetFacts]>([
    ['the first set', undefined, set('A', 1, 3)],
    ['the first set, though it is empty', undefined, set('A', 0, 0)],
    ['a later revision', GOOD, set('A', 8, 3)],
    ['the same revision with other bytes: a restored backup that was written to', GOOD, set('A', 7, 4)],
    ['a continuing revision without routes: somebody deleted them one by one', GOOD, set('A', 9, 0)],
    ['a bare array after a bare array', set(undefined, undefined, 3), set(undefined, undefined, 1)],
    ['an empty set after an empty one', set(undefined, undefined, 0), set(undefined, undefined, 0)],
    ['routes after an empty set', set(undefined, undefined, 0), set(undefined, undefined, 4)],
    ['a set whose revision is not told any more', GOOD, set('A', undefined, 3)],
  ])('behaviour: a poll that brings %s is taken', (_what, good, next) => {
    expect(decide(good, polled(next))).toEqual({ kind: 'accept', waited: false });
  });

  test.each<[string, SetFacts, SetFacts, HeldSet['suspicion']]>([
    ['another registry id', GOOD, set('B', 8, 3), 'another_registry'],
    ['a registry that lost its name', GOOD, set(undefined, undefined, 3), 'another_registry'],
    ['a registry that got a name', set(undefined, undefined, 3), set('B', 1, 3), 'another_registry'],
    ['another registry without routes', GOOD, set('B', 0, 0), 'another_registry'],
    ['a lower revision', GOOD, set('A', 6, 3), 'older_revision'],
    ['a lower revision without routes', GOOD, set('A', 0, 0), 'older_revision'],
    ['the same revision, emptied', GOOD, set('A', 7, 0), 'emptied'],
    ['a bare array, emptied', set(undefined, undefined, 3), set(undefined, undefined, 0), 'emptied'],
    ['a growing revision of nobody, emptied', set(undefined, 7, 3), set(undefined, 8, 0), 'emptied'],
    ['a revision that is not told, emptied', GOOD, set('A', undefined, 0), 'emptied'],
  ])('attack: a poll that brings %s is held back', (_what, good, next, suspicion) => {
    const decision = decide(good, polled(next));
    expect(decision).toMatchObject({ kind: 'hold', holding: { suspicion, held: next, agreedMs: 0 } });
    if (decision.kind === 'hold') expect(describeHolding(decision.holding, good)).toMatch(/registry/);
  });

  test('refuses: a poll that brings no valid set, and one without an answer', () => {
    expect(decide(GOOD, { kind: 'invalid' })).toEqual({ kind: 'refuse', holding: undefined });
    expect(decide(GOOD, { kind: 'nothing' })).toEqual({ kind: 'refuse', holding: undefined });
    expect(decide(undefined, { kind: 'nothing' })).toEqual({ kind: 'refuse', holding: undefined });
  });
});

/** Polls one after the other: `[seconds, what came]`; gives the last decision. */
function story(good: SetFacts, steps: readonly (readonly [number, PollAnswer])[]): Decision {
  let holding: HeldSet | undefined;
  let decision: Decision = { kind: 'keep' };
  for (const [seconds, next] of steps) {
    decision = decide(good, next, holding, seconds * 1000);
    holding = decision.kind === 'hold' || decision.kind === 'refuse' ? decision.holding : undefined;
  }
  return decision;
}

const EMPTY = polled(set('A', 7, 0));
const NOTHING: PollAnswer = { kind: 'nothing' };
const UNCHANGED: PollAnswer = { kind: 'unchanged' };

describe('polls over time, empty_after being 300 s', () => {
  test('behaviour: a set that the registry repeats for empty_after is taken, and not a moment before', () => {
    expect(
      story(GOOD, [
        [0, EMPTY],
        [150, EMPTY],
        [299.999, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold' });
    expect(
      story(GOOD, [
        [0, EMPTY],
        [150, EMPTY],
        [300, EMPTY],
      ]),
    ).toEqual({ kind: 'accept', waited: true });
  });

  test('attack: an empty registry that is restarted empty is not taken for the time in which it was away', () => {
    expect(
      story(GOOD, [
        [0, EMPTY],
        [15, NOTHING],
        [900, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 0 } });
    expect(
      story(GOOD, [
        [0, EMPTY],
        [200, EMPTY],
        [210, NOTHING],
        [900, EMPTY],
        [999, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 299_000 } });
    expect(
      story(GOOD, [
        [0, EMPTY],
        [200, EMPTY],
        [210, NOTHING],
        [900, EMPTY],
        [1000, EMPTY],
      ]),
    ).toEqual({ kind: 'accept', waited: true });
  });

  test('attack: an answer that is no set does not count for the set that is held back either', () => {
    expect(
      story(GOOD, [
        [0, EMPTY],
        [100, { kind: 'invalid' }],
        [400, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 0 } });
  });

  test('behaviour: the waiting for a held set starts anew once the last good set is back', () => {
    expect(
      story(GOOD, [
        [0, EMPTY],
        [200, UNCHANGED],
        [400, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 0 } });
  });

  test('behaviour: another registry that goes on changing its routes counts as one registry', () => {
    const steps = [
      [0, 1],
      [100, 2],
      [200, 5],
      [300, 5],
    ] as const;
    expect(
      story(
        GOOD,
        steps.map(([at, revision]) => [at, polled(set('B', revision, revision))]),
      ),
    ).toEqual({ kind: 'accept', waited: true });
  });

  test('attack: a third registry does not inherit the waiting of a second', () => {
    expect(
      story(GOOD, [
        [0, polled(set('B', 1, 1))],
        [200, polled(set('C', 1, 1))],
        [400, polled(set('C', 1, 1))],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 200_000 } });
  });

  test('attack: a revision that keeps falling never becomes old enough', () => {
    expect(
      story(GOOD, [
        [0, polled(set('A', 6, 1))],
        [200, polled(set('A', 5, 1))],
        [400, polled(set('A', 4, 1))],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 0 } });
  });

  test('behaviour: polls with an empty_after of 0 hold nothing back', () => {
    expect(decideSet({ good: GOOD, holding: undefined, emptyAfterMs: 0 }, EMPTY, 0)).toEqual({
      kind: 'accept',
      waited: true,
    });
  });

  test('behaviour: a clock that stands still or jumps back adds nothing to the waiting', () => {
    expect(
      story(GOOD, [
        [1000, EMPTY],
        [0, EMPTY],
        [0, EMPTY],
      ]),
    ).toMatchObject({ kind: 'hold', holding: { agreedMs: 0 } });
  });
});
