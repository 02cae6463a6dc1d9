// The broadcast to open streams. It sends what is new, in order: changes to all of them, the head of the set to those that
// have that set. Text is written once for all streams that have seen the same. After a few milliseconds requests have
// their turn. Who may still listen is asked before each of them.
import { setImmediate } from 'node:timers/promises';
import { askWhoMay, TURN_MS, type EventStream, type AccessCheck } from './event-stream.ts';
import { writeChange, writeHead } from './event-text.ts';
import type { SetProof } from '../../domain/routing/set-proof.ts';
import type { RouteEvent } from '../routes/route-index.ts';

/** News for streams. `to`: the one stream that gets the head; undefined: all of them. */
type BroadcastItem =
  | { readonly kind: 'change'; readonly change: RouteEvent }
  | { readonly kind: 'head'; readonly proof: SetProof; readonly to: EventStream | undefined };

type BroadcastDeps = {
  readonly stillAllowed: AccessCheck;
  readonly send: (stream: EventStream, bytes: Buffer) => void;
  readonly drop: (stream: EventStream) => void;
};

/** Most items of one batch: writing the text of each takes some ten microseconds. */
const BATCH = 64;

export function createBroadcast(
  streams: ReadonlySet<EventStream>,
  { stillAllowed, send, drop }: BroadcastDeps,
): (item: BroadcastItem) => void {
  const waiting: BroadcastItem[] = [];
  let sending = false;

  const sendBatch = async (batch: readonly BroadcastItem[]): Promise<void> => {
    const isForAll = batch.some((item) => item.kind === 'change' || item.to === undefined);
    const listeners = isForAll ? [...streams] : batch.flatMap((item) => (item.kind === 'head' && item.to) || []);
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
    while (waiting.length > 0) await sendBatch(waiting.splice(0, BATCH));
    sending = false;
  };
  return (item) => {
    waiting.push(item);
    if (sending) return;
    sending = true;
    void work();
  };
}

type Text = { readonly bytes: Buffer; readonly seen: number };

/** Gives each stream its text of `batch`, and what it has seen with it. */
function createTexts(batch: readonly BroadcastItem[]): (stream: EventStream) => Text {
  const texts = batch.map((item) => (item.kind === 'change' ? writeChange(item.change) : writeHead(item.proof)));
  const addressed = new Set(batch.map((item) => (item.kind === 'head' ? item.to : undefined)));
  const write = (stream: EventStream): Text => {
    let { seen } = stream;
    const wanted = texts.filter((_, index) => {
      const item = batch[index];
      if (item === undefined) return false;
      if (item.kind === 'head') return (item.to ?? stream) === stream && item.proof.revision === seen;
      const { change } = item;
      if (change.kind !== 'reset' && change.revision <= seen) return false;
      seen = change.revision;
      return true;
    });
    return { bytes: Buffer.from(wanted.join('')), seen };
  };
  /** Texts by the revision that a stream has seen. */
  const shared = new Map<number, Text>();
  return (stream) => {
    if (addressed.has(stream)) return write(stream);
    const text = shared.get(stream.seen) ?? write(stream);
    shared.set(stream.seen, text);
    return text;
  };
}
