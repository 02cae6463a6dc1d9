// Follows the event stream of a registry from the set in force on. It opens the stream and hands its events on, one
// after the other. After a break it comes back, later each time, and asks for what it missed. The caller says what an
// event means for the set, and whether the whole set is needed. Then nothing is followed until there is a set again.
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { readEvents, type RegistryEvent } from './follow/event-reader.ts';
import { backOffMs } from './follow/poll-schedule.ts';
import type { FollowedName, FoundSet, RouteSource } from './follow/route-source.ts';

/**
 * What becomes of the stream after an event. `again`: opened anew at once, for what is missing; `stop`: the set is taken whole
 * first; `useless`: for now there is none.
 */
export type AfterEvent = 'on' | 'again' | 'stop' | 'useless';

type FollowOptions = {
  readonly openEvents: RouteSource['openEvents'];
  /** The set in force. */
  readonly known: () => FoundSet | undefined;
  readonly onEvent: (event: RegistryEvent) => Promise<AfterEvent>;
  /** The stream is of another registry. */
  readonly onStranger: () => void;
  readonly onOpen: () => void;
  /** There is no stream for now. */
  readonly onNone: () => void;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
};

type Follower = {
  /** From the set in force on, if it can be followed and nothing is under way. */
  readonly start: () => void;
  /** The registry is there again: does not wait any longer. */
  readonly reconnect: () => void;
  /** Until `start`. */
  readonly stop: () => void;
  /** Changes come by the stream, or will once it is open again. */
  readonly isExpected: () => boolean;
  readonly close: () => void;
};

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 60_000;
/** A registry that has no stream today may have one after its next update. */
const NOT_OFFERED_WAIT_MS = 10 * 60_000;
/** A stream that lived this long was a good one: its break counts as the first. */
const GOOD_STREAM_MS = 2_000;

type State =
  | { readonly at: 'stopped' }
  | { readonly at: 'waiting'; readonly expected: boolean; readonly cancel: () => void }
  | { readonly at: 'opening' | 'open'; readonly controller: AbortController }
  | { readonly at: 'closed' };

export function createFollower(options: FollowOptions): Follower {
  const { openEvents, known, onEvent, onStranger, onOpen, onNone, clock, schedule, random, log } = options;
  let state: State = { at: 'stopped' };
  let failures = 0;
  /** The registry has a stream: what it answers instead is passing trouble. */
  let hasFollowed = false;

  /** What comes after this stream; undefined: nothing until `start`. */
  const listen = async (set: FollowedName, controller: AbortController): Promise<Next | undefined> => {
    const opened = await openEvents(set, controller.signal);
    switch (opened.kind) {
      case 'open':
        hasFollowed = true;
        if (isOf(state, controller)) state = { at: 'open', controller };
        onOpen();
        return read(opened.chunks, controller.signal);
      case 'stranger':
        onStranger();
        return undefined;
      case 'not_offered':
        return none(NOT_OFFERED_WAIT_MS);
      case 'refused':
        log.debug('no event stream', { reason: opened.reason });
        return none(Math.max(opened.retryAfterMs ?? 0, backOff()));
      case 'unavailable':
        log.debug('no event stream', { reason: opened.reason });
        // Trouble of a registry that has no stream at all looks the same.
        return { waitMs: backOff(), expected: hasFollowed || !opened.isThere };
      default:
        return opened satisfies never;
    }
  };

  const read = async (chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Next | undefined> => {
    const openedAt = clock.monotonic();
    let after: AfterEvent = 'on';
    try {
      for await (const event of readEvents(chunks)) {
        if (signal.aborted) return undefined;
        after = await onEvent(event);
        if (after !== 'on') break;
      }
    } catch (error) {
      // It broke off or went quiet: the same as an end.
      log.debug('the event stream broke off', { error });
    }
    if (signal.aborted) return undefined;
    switch (after) {
      case 'again':
        return { waitMs: 0, expected: true };
      case 'stop':
        return undefined;
      case 'useless':
        return none(NOT_OFFERED_WAIT_MS);
      case 'on':
        if (clock.monotonic() - openedAt >= GOOD_STREAM_MS) failures = 0;
        return { waitMs: backOff(), expected: true };
      default:
        return after satisfies never;
    }
  };

  const backOff = (): number => backOffMs(++failures, FIRST_WAIT_MS, LONGEST_WAIT_MS, random);
  const none = (waitMs: number): Next => ({ waitMs, expected: false });

  const run = (): void => {
    const set = known();
    if (set?.registryId === undefined || set.revision === undefined) {
      state = { at: 'stopped' };
      return;
    }
    const controller = new AbortController();
    state = { at: 'opening', controller };
    void listen({ registryId: set.registryId, revision: set.revision }, controller).then((next) => {
      if (!isOf(state, controller)) return;
      if (next === undefined) state = { at: 'stopped' };
      else {
        state = { at: 'waiting', expected: next.expected, cancel: schedule(next.waitMs, run) };
        if (!next.expected) onNone();
      }
    });
  };
  const leave = (next: State): void => {
    if (state.at === 'closed') return;
    if (state.at === 'waiting') state.cancel();
    if (state.at === 'opening' || state.at === 'open') state.controller.abort();
    state = next;
  };

  return {
    start: () => {
      if (state.at === 'stopped') run();
    },
    reconnect: () => {
      if (state.at !== 'waiting' || failures === 0) return;
      failures = 0;
      leave({ at: 'stopped' });
      run();
    },
    stop: () => leave({ at: 'stopped' }),
    isExpected: () => (state.at === 'waiting' ? state.expected : state.at === 'opening' || state.at === 'open'),
    close: () => leave({ at: 'closed' }),
  };
}

type Next = { readonly waitMs: number; readonly expected: boolean };

function isOf(state: State, controller: AbortController): boolean {
  return (state.at === 'opening' || state.at === 'open') && state.controller === controller;
}
