// The machine that keeps routes in step, one step at a time: a state and an input give what is to be done. No time passes here,
// no registry answers and nothing is compiled.
import { describe, expect, test } from 'vitest';
import { firstState, type Effect, type Input, type SyncState } from '../../../../src/gateway/sync/machine/state.ts';
import { step } from '../../../../src/gateway/sync/machine/step.ts';
import type { FetchResult, OpenedEvents } from '../../../../src/gateway/sync/follow/route-source.ts';
import { route } from '../../../cases/routes.ts';
import { AWAY, found } from '../fakes.ts';

const MINUTE = 60_000;
const OPTIONS = { pollIntervalMs: 15_000, emptyAfterMs: 5 * MINUTE };
const EPOCH = 1_800_000_000_000;
const OK = { ok: true } as const;
const DIGEST = 'd'.repeat(64);

/** `input` at `ms`, with as little jitter as there is. */
const at = (state: SyncState, ms: number, input: Input): [SyncState, readonly Effect[]] =>
  step(state, input, { monotonicMs: ms, epochMs: EPOCH + ms, chance: 0.999_999_9 });

/** The state after `inputs`, all of the first moment. */
const after = (...inputs: readonly Input[]): SyncState =>
  inputs.reduce((state, input) => at(state, 0, input)[0], firstState(OPTIONS));

/** What is done and not only logged, counted or written to the file, each in a few words. */
function done(effects: readonly Effect[]): readonly string[] {
  return effects.flatMap((effect) => {
    switch (effect.kind) {
      case 'log':
      case 'count':
      case 'keep':
        return [];
      case 'fetch':
        return [`fetch ${effect.request.want}`];
      case 'poll_in':
      case 'open_stream_in':
        return [`${effect.kind} ${effect.ms}`];
      case 'open_stream':
        return [`open_stream after ${effect.after.revision}`];
      case 'end_stream':
      case 'compile_stored':
      case 'compile_set':
      case 'compile_change':
      case 'prove':
        return [effect.kind];
      default:
        return effect satisfies never;
    }
  });
}

const counted = (effects: readonly Effect[]): readonly string[] =>
  effects.flatMap((effect) => (effect.kind === 'count' ? [effect.result] : []));

const polled = (answer: FetchResult): Input => ({ kind: 'polled', found: answer });
const SET = found('A', 7, ['GET /a', 'GET /b']);
const compiled = (set = SET.set): Input => ({ kind: 'set_compiled', set, waited: false, taken: OK });
const STARTED: Input = { kind: 'started', stored: undefined };
const NO_CHUNKS: AsyncIterable<Uint8Array> = new ReadableStream<Uint8Array>();
const OPENED = opened({ kind: 'open', chunks: NO_CHUNKS });
const DUE: Input = { kind: 'poll_due' };
const head = (revision: number, routes = 2, id = 1): Input => ({
  kind: 'event',
  id,
  event: { kind: 'head', revision, routes, digest: DIGEST },
});
const change = (revision: number): Input => ({
  kind: 'event',
  id: 1,
  event: { kind: 'updated', revision, route: route('GET /a 0.90') },
});
const proven = (digest: string): Input => ({
  kind: 'proven',
  head: { kind: 'head', revision: 7, routes: 2, digest: DIGEST },
  proof: { revision: 7, routes: 2, digest },
});
const named = (revision: number, registryId = 'A'): Input => polled({ kind: 'named', registryId, revision });

/** No set, and the first poll on its way. */
const ASKING = after(STARTED);
/** A set of two routes at revision 7, and its stream being opened. */
const OPENING = after(STARTED, polled(SET), compiled());
/** The stream of that set is open. */
const OPEN = after(STARTED, polled(SET), compiled(), OPENED);
/** A poll of the name of that set is on its way, beside the stream. */
const NAMING = after(STARTED, polled(SET), compiled(), OPENED, DUE);
/** The stream of that set broke off once. */
const BROKEN = after(STARTED, polled(SET), compiled(), OPENED, { kind: 'stream_ended', id: 1, error: undefined });

const DENIED = polled({ kind: 'unauthorized', reason: 'x' });
/** The stream of that set broke off, and the registry did not answer the last poll; another is on its way. */
const AWAY_AND_BROKEN = [DUE, polled(AWAY), DUE].reduce((state, input) => at(state, 0, input)[0], BROKEN);
const REOPENED = ['end_stream', 'open_stream after 7'];

test.each<[string, SyncState, Input, readonly string[]]>([
  ['the start without a file asks for the set', firstState(OPTIONS), STARTED, ['fetch changed']],
  [
    'the start with a file compiles it first',
    firstState(OPTIONS),
    { kind: 'started', stored: { set: SET.set, savedAt: EPOCH } },
    ['compile_stored'],
  ],
  [
    'a file that was compiled is followed, and the registry asked for a name',
    firstState(OPTIONS),
    { kind: 'stored_compiled', stored: { set: SET.set, savedAt: EPOCH }, taken: OK },
    ['open_stream after 7', 'fetch name'],
  ],
  [
    'a file that was refused is as none',
    firstState(OPTIONS),
    { kind: 'stored_compiled', stored: { set: SET.set, savedAt: EPOCH }, taken: { ok: false, reason: 'x' } },
    ['fetch changed'],
  ],
  ['a set is compiled, and the next poll waits for that', ASKING, polled(SET), ['compile_set']],
  ['a set that was compiled is followed', ASKING, compiled(), ['open_stream after 7', 'poll_in 15000']],
  ['before the first set a registry that is away is asked after a second', ASKING, polled(AWAY), ['poll_in 1000']],
  [
    'a registry that asks to be left alone is',
    ASKING,
    polled({ kind: 'unavailable', reason: 'x', retryAfterMs: 42_000 }),
    ['poll_in 42000'],
  ],
  ['a set whose registry has no name is polled', ASKING, compiled(found(undefined, 1, []).set), ['poll_in 15000']],
  ['a nudge during a poll does nothing yet', ASKING, { kind: 'nudged' }, []],
  ['a poll that is due during a poll is not sent', ASKING, DUE, []],
  ['a defect of a poll is followed by another', ASKING, { kind: 'poll_failed', error: 'x' }, ['poll_in 1000']],
  ['a nudge asks in a moment', OPENING, { kind: 'nudged' }, ['poll_in 20']],
  ['beside a stream polls ask for the name', OPEN, DUE, ['fetch name']],
  ['a stream that is not offered is asked for much later', OPENING, opened({ kind: 'not_offered' }), later(600_000)],
  [
    'a stream of a stranger is left for the whole set',
    OPENING,
    opened({ kind: 'stranger' }),
    ['end_stream', 'poll_in 20'],
  ],
  [
    'a stream that is refused waits as long as it is asked to',
    OPENING,
    opened({ kind: 'refused', reason: 'full', retryAfterMs: 90_000 }),
    later(90_000),
  ],
  [
    'a stream that cannot be reached is tried again soon',
    OPENING,
    opened({ kind: 'unavailable', reason: 'gone', isThere: false }),
    later(500),
  ],
  ['a stream that broke off is opened again soon', OPEN, { kind: 'stream_ended', id: 1, error: 'x' }, later(500)],
  ['a stream that is due is opened', BROKEN, { kind: 'stream_due' }, ['open_stream after 7']],
  ['a stream that is open is not opened again', OPEN, { kind: 'stream_due' }, []],
  ['the next change is compiled', OPEN, change(8), ['compile_change']],
  ['a change that is known is not', OPEN, change(7), []],
  ['a change after one that is missing has the stream opened anew', OPEN, change(9), later(0)],
  ['a change of a stream that was left is not heard', BROKEN, change(8), []],
  ['a change that was refused has the whole set taken', OPEN, refused(8), ['end_stream', 'poll_in 20']],
  ['a head of this revision has the set proven', OPEN, head(7), ['prove']],
  ['a head of more than was told has the stream opened anew', OPEN, head(8), later(0)],
  ['a head of fewer changes has the whole set taken', OPEN, head(6), ['end_stream', 'poll_in 20']],
  [
    'a head of another number of routes has it taken, and proves nothing',
    OPEN,
    head(7, 3),
    ['end_stream', 'poll_in 20'],
  ],
  ['a digest that is the same changes nothing', OPEN, proven(DIGEST), []],
  ['a digest that is another has the whole set taken', OPEN, proven('e'.repeat(64)), ['end_stream', 'poll_in 20']],
  [
    'a reset has the whole set taken',
    OPEN,
    { kind: 'event', id: 1, event: { kind: 'reset' } },
    ['end_stream', 'poll_in 20'],
  ],
  ['the name of the set in force is all that is needed', NAMING, named(7), ['poll_in 15000']],
  ['a name that is ahead is left to the stream that is open', NAMING, named(8), ['poll_in 15000']],
  ['a name of fewer changes has the whole set taken', NAMING, named(6), ['end_stream', 'poll_in 20']],
  ['a name of another registry has the whole set taken', NAMING, named(7, 'B'), ['end_stream', 'poll_in 20']],
  ['a set that is the same array is taken without compiling it', NAMING, sameRoutes(8), ['poll_in 15000']],
  ['a registry that does not let us in is asked again later', NAMING, DENIED, ['poll_in 15000']],
  ['a poll that is answered while a stream waits opens it', AWAY_AND_BROKEN, named(7), [...REOPENED, 'poll_in 15000']],
])('behaviour: %s', (_what, state, input, expected) => {
  expect(done(at(state, 0, input)[1])).toEqual(expected);
});

/** Takes `inputs`, each at its milliseconds; gives what the last one came to. */
function story(
  state: SyncState,
  inputs: readonly (readonly [ms: number, input: Input])[],
): [SyncState, readonly Effect[]] {
  return inputs.reduce<[SyncState, readonly Effect[]]>(([before], [ms, input]) => at(before, ms, input), [state, []]);
}

describe('steps one after the other', () => {
  const EMPTIED = polled(found('A', 7, []));

  test('attack: an emptied registry is held back until it has said so for empty_after, then compiled', () => {
    const [held, effects] = story(OPENING, [
      [0, DUE],
      [0, EMPTIED],
    ]);
    expect([held.set.holding?.suspicion, counted(effects), held.set.good?.size]).toEqual(['emptied', ['held'], 2]);
    const [, early] = story(held, [
      [5 * MINUTE - 1, DUE],
      [5 * MINUTE - 1, EMPTIED],
    ]);
    expect(done(early)).toEqual(['poll_in 15000']);
    const [, late] = story(held, [
      [5 * MINUTE, DUE],
      [5 * MINUTE, EMPTIED],
    ]);
    expect(late.find(({ kind }) => kind === 'compile_set')).toMatchObject({ waited: true });
  });

  test('behaviour: a worker, whose empty_after is nothing, compiles at once whatever the registry says', () => {
    const state = { ...OPENING, options: { ...OPTIONS, emptyAfterMs: 0 } };
    for (const answer of [EMPTIED, polled(found('B', 1, [])), polled(found('A', 3, ['GET /c']))])
      expect(
        done(
          story(state, [
            [0, DUE],
            [0, answer],
          ])[1],
        ),
      ).toEqual(['compile_set']);
  });

  test('attack: a digest that is another is asked about once; after the whole set was taken it is polled', () => {
    const [other, effects] = story(OPEN, [
      [0, proven('e'.repeat(64))],
      [20, DUE],
    ]);
    expect(done(effects)).toEqual(['fetch anew']);
    const [again, polling] = story(other, [
      [20, polled(SET)],
      [20, opened({ kind: 'open', chunks: NO_CHUNKS }, 2)],
      [20, proven('e'.repeat(64))],
    ]);
    expect(done(polling)).toEqual(later(600_000));
    expect(done(at(again, MINUTE, DUE)[1])).toEqual(['fetch changed']);
  });

  test('behaviour: a change that is missing is asked of the stream once, then of the registry as a whole', () => {
    const [state] = story(OPEN, [
      [0, head(9)],
      [0, { kind: 'stream_due' }],
      [0, opened({ kind: 'open', chunks: NO_CHUNKS }, 2)],
    ]);
    expect(done(at(state, 0, head(9, 2, 2))[1])).toEqual(['end_stream', 'poll_in 20']);
  });

  test('behaviour: a stream that tells nothing for 10 s of what polls see is left for the whole set', () => {
    const [waiting, early] = story(NAMING, [
      [0, named(8)],
      [9_999, DUE],
      [9_999, named(8)],
    ]);
    expect(done(early)).toEqual(['poll_in 15000']);
    const [, late] = story(waiting, [
      [10_000, DUE],
      [10_000, named(8)],
    ]);
    expect(done(late)).toEqual(['end_stream', 'poll_in 20']);
  });

  test('behaviour: a stream that breaks off again and again is opened later each time; one that lived is opened soon', () => {
    const waits: string[] = [];
    let state = OPEN;
    for (let id = 1; id <= 10; id++) {
      const [broken, effects] = at(state, 0, { kind: 'stream_ended', id, error: undefined });
      waits.push(...done(effects).slice(1));
      [state] = story(broken, [
        [0, { kind: 'stream_due' }],
        [0, opened({ kind: 'open', chunks: NO_CHUNKS }, id + 1)],
      ]);
    }
    expect(waits.map((wait) => Number(wait.split(' ')[1]))).toEqual([
      500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000,
    ]);
    expect(done(at(state, 2_000, { kind: 'stream_ended', id: 11, error: undefined })[1])).toEqual(later(500));
  });

  test('behaviour: a step changes no state that it was given', () => {
    const before = structuredClone({ ...OPEN, set: { ...OPEN.set, good: undefined } });
    for (const input of [DUE, head(9), change(8), { kind: 'nudged' } as const]) at(OPEN, MINUTE, input);
    expect({ ...OPEN, set: { ...OPEN.set, good: undefined } }).toEqual(before);
  });
});

function sameRoutes(revision: number): Input {
  return polled({ kind: 'set', set: { ...SET.set, revision } });
}

function opened(answer: OpenedEvents, id = 1): Input {
  return { kind: 'stream_opened', id, opened: answer };
}

function later(ms: number): readonly string[] {
  return ['end_stream', `open_stream_in ${ms}`];
}

function refused(revision: number): Input {
  return { kind: 'change_compiled', revision, taken: { ok: false, reason: 'a price that is none' } };
}
