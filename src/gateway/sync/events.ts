// Change events: a stream of Server-Sent Events that says that routes changed. An event starts a poll, which reads
// what; the event's text is not believed, so that a forged or a mixed-up one costs a request and no more. Comes back
// after every break, further apart each time, and asks to resume where it was. If no stream is offered, polling does.
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { backOffMs } from './poll-schedule.ts';
import type { RouteSource } from './source.ts';

export type ChangeEventsOptions = {
  readonly openEvents: RouteSource['openEvents'];
  /** Something changed, or may have while the stream was closed. */
  readonly onChange: () => void;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
};

export type ChangeEvents = {
  readonly start: () => void;
  /** The registry is there again: does not wait any longer. */
  readonly reconnect: () => void;
  readonly close: () => void;
};

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 60_000;
/** A registry that has no stream today may have one after its next update. */
const NOT_OFFERED_WAIT_MS = 10 * 60_000;
/** A stream that lived this long was a good one: its break counts as the first. */
const GOOD_STREAM_MS = 10_000;
/** Of a line that is not complete yet; only names of fields and ids matter, and ids are shorter. */
const KEPT_OF_LINE = 256;

export function createChangeEvents({
  openEvents,
  onChange,
  clock,
  schedule,
  random,
  log,
}: ChangeEventsOptions): ChangeEvents {
  const controller = new AbortController();
  const { signal } = controller;
  let lastEventId: string | undefined;
  let failures = 0;
  let listening = false;
  let cancel = (): void => undefined;

  const listen = async (): Promise<number> => {
    const events = await openEvents(lastEventId, signal);
    if (events.kind === 'not_offered') return NOT_OFFERED_WAIT_MS;
    if (events.kind === 'unavailable') {
      log.debug('no event stream', { reason: events.reason });
      return waitMs(++failures);
    }
    const openedAt = clock.monotonic();
    // Between the last poll and now anything may have happened.
    onChange();
    const parser = createEventParser();
    try {
      for await (const chunk of events.chunks) {
        const ended = parser.push(chunk);
        lastEventId = parser.lastEventId() ?? lastEventId;
        if (ended) onChange();
      }
    } catch {
      // It broke off or went quiet: the same as an end.
    }
    onChange();
    if (clock.monotonic() - openedAt >= GOOD_STREAM_MS) failures = 0;
    return waitMs(++failures);
  };

  const waitMs = (failed: number): number => backOffMs(failed, FIRST_WAIT_MS, LONGEST_WAIT_MS, random);

  const run = (): void => {
    cancel();
    if (listening || signal.aborted) return;
    listening = true;
    void listen().then((ms) => {
      listening = false;
      if (!signal.aborted) cancel = schedule(ms, run);
    });
  };

  return {
    start: run,
    reconnect: () => {
      if (listening || failures === 0) return;
      failures = 0;
      run();
    },
    close: () => {
      controller.abort();
      cancel();
    },
  };
}

type EventParser = {
  /** Whether an event ended in these bytes. */
  readonly push: (bytes: Uint8Array) => boolean;
  readonly lastEventId: () => string | undefined;
};

/** As the HTML standard reads a stream, but for the contents of `data`, which is not needed here. */
export function createEventParser(): EventParser {
  const decoder = new TextDecoder();
  let line = '';
  let afterReturn = false;
  let hasData = false;
  let id: string | undefined;
  let lastEventId: string | undefined;

  /** True if the line ends an event. */
  const read = (text: string): boolean => {
    if (text === '') {
      lastEventId = id;
      const ends = hasData;
      hasData = false;
      return ends;
    }
    const colon = text.indexOf(':');
    const field = colon < 0 ? text : text.slice(0, colon);
    if (field === 'data') hasData = true;
    if (field === 'id' && colon >= 0) {
      const value = text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1);
      if (/^[\x20-\x7e]{0,128}$/.test(value)) id = value === '' ? undefined : value;
    }
    return false;
  };

  return {
    push: (bytes) => {
      const decoded = decoder.decode(bytes, { stream: true });
      if (decoded === '') return false;
      const text = afterReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
      afterReturn = decoded.endsWith('\r');
      const lines = (line + text).split(/\r\n|\n|\r/);
      line = (lines.pop() ?? '').slice(0, KEPT_OF_LINE);
      let ended = false;
      for (const whole of lines) if (read(whole)) ended = true;
      return ended;
    },
    lastEventId: () => lastEventId,
  };
}
