// Reads an answer as it comes. This tab holds at most 5 MiB of it: what is more goes to the browser's store of blobs, from
// where it can be saved, and of events, which have no end, the rest is counted and shown only.
import { kindOf, type AnswerKind } from './kinds.ts';
import type { AnswerStream } from './send.ts';

export const HELD_BYTES = 5 * 1024 * 1024;

export type ReceivedBody = {
  readonly end: 'whole' | 'stopped' | 'broken';
  /** Number of bytes that came. */
  readonly size: number;
  /** Bytes that came; of a stream of events the first 5 MiB. */
  readonly blob: Blob;
};

type BodyDownload = {
  readonly done: Promise<ReceivedBody>;
  readonly stop: () => void;
};

/** Downloads a body. `came` hears of each piece, and of the bytes so far. */
export function receive(
  { head: { type }, body }: AnswerStream,
  came: (piece: Uint8Array<ArrayBuffer>, size: number) => void,
): BodyDownload {
  const reader = body?.getReader();
  const holder = createHolder(kindOf(type), type);
  let isStopped = false;
  const read = async (): Promise<ReceivedBody> => {
    let size = 0;
    try {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done || value === undefined) return { end: isStopped ? 'stopped' : 'whole', size, blob: holder.blob() };
        const piece = value as Uint8Array<ArrayBuffer>;
        holder.add(piece);
        came(piece, (size += piece.length));
      }
    } catch {
      return { end: isStopped ? 'stopped' : 'broken', size, blob: holder.blob() };
    }
  };
  return {
    done: read(),
    stop: () => {
      isStopped = true;
      void reader?.cancel().catch(() => undefined);
    },
  };
}

function createHolder(
  kind: AnswerKind,
  type: string,
): { readonly add: (piece: Uint8Array<ArrayBuffer>) => void; readonly blob: () => Blob } {
  let parts: BlobPart[] = [];
  let held = 0;
  let isFull = false;
  return {
    add: (piece) => {
      if (isFull) return;
      if (held + piece.length > HELD_BYTES) {
        isFull = kind === 'events';
        if (isFull) {
          parts.push(piece.slice(0, HELD_BYTES - held));
          return;
        }
        parts = [new Blob(parts)];
        held = 0;
      }
      parts.push(piece);
      held += piece.length;
    },
    // A body without a type is not shown as a web page.
    blob: () => new Blob(parts, { type: type === '' ? 'application/octet-stream' : type }),
  };
}
