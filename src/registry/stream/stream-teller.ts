// Tells open streams what is new, in order: changes to all of them, the head of the set to those that have that set. Text
// is written once for all streams that have seen the same. After a few milliseconds requests have their turn. Who may
// still listen is asked before each of them.
import { setImmediate } from 'node:timers/promises';
import { askWhoMay, TURN_MS, type EventStream, type StillAllowed } from './event-stream.ts';
import { writeChange, writeHead } from './event-text.ts';
import type { SetProof } from '../../domain/routing/set-proof.ts';
import type { RouteEvent } from '../routes/route-index.ts';

/** `to`: the one stream that is told the head; undefined: all. */
export type StreamNews =
  | { readonly kind: 'change'; readonly change: RouteEvent }
  | { readonly kind: 'head'; readonly proof: SetProof; readonly to: EventStream | undefined };

type TellerDeps = {
  readonly stillAllowed: StillAllowed;
  readonly send: (stream: EventStream, bytes: Buffer) => void;
  readonly drop: (stream: EventStream) => void;
};

/** Writing the text of one takes some ten microseconds. */
const TOLD_AT_ONCE = 64;

export function createTeller(
  streams: ReadonlySet<EventStream>,
  { stillAllowed, send, drop }: TellerDeps,
): (told: StreamNews) => void {
  const waiting: StreamNews[] = [];
  let telling = false;

  const tellBatch = async (batch: readonly StreamNews[]): Promise<void> => {
    const isForAll = batch.some((told) => told.kind === 'change' || told.to === undefined);
    const listeners = isForAll ? [...streams] : batch.flatMap((told) => (told.kind === 'head' && told.to) || []);
    if (listeners.length === 0) return;
    const textFor = createTexts(batch);
    for (let next = 0; next < listeners.length;) {
      // A store that cannot say so ends the stream.
      const allowed = await askWhoMay(listeners.slice(next), stillAllowed, false);
      const until = performance.now() + TURN_MS;
      for (; next < listeners.length && performance.now() < until; next++) {
        const stream = listeners[next];
        if (stream === undefined || !streams.has(stream)) continue;
        if (allowed.get(stream.key) === false) drop(stream);
        else if (stream.state === 'live') {
          const { bytes, seen } = textFor(stream);
          stream.seen = seen;
          if (bytes.length > 0) send(stream, bytes);
        }
      }
      await setImmediate();
    }
  };
  const work = async (): Promise<void> => {
    while (waiting.length > 0) await tellBatch(waiting.splice(0, TOLD_AT_ONCE));
    telling = false;
  };
  return (told) => {
    waiting.push(told);
    if (telling) return;
    telling = true;
    void work();
  };
}

type Text = { readonly bytes: Buffer; readonly seen: number };

/** Gives each stream its text of `batch`, and what it has seen with it. */
function createTexts(batch: readonly StreamNews[]): (stream: EventStream) => Text {
  const texts = batch.map((told) => (told.kind === 'change' ? writeChange(told.change) : writeHead(told.proof)));
  const addressed = new Set(batch.map((told) => (told.kind === 'head' ? told.to : undefined)));
  const write = (stream: EventStream): Text => {
    let { seen } = stream;
    const wanted = texts.filter((_, index) => {
      const told = batch[index];
      if (told === undefined) return false;
      if (told.kind === 'head') return (told.to ?? stream) === stream && told.proof.revision === seen;
      const { change } = told;
      if (change.kind !== 'reset' && change.revision <= seen) return false;
      seen = change.revision;
      return true;
    });
    return { bytes: Buffer.from(wanted.join('')), seen };
  };
  /** By the revision that a stream has seen. */
  const shared = new Map<number, Text>();
  return (stream) => {
    if (addressed.has(stream)) return write(stream);
    const text = shared.get(stream.seen) ?? write(stream);
    shared.set(stream.seen, text);
    return text;
  };
}
