// Reads the bytes of one answer after the other off a connection: heads (response-head.ts), then the body as its framing
// says. It knows neither sockets nor callers, and it stops at the answer's last byte: what stands behind it is reported
// as surplus, never read as the beginning of another answer.
import { readAnswerHead, type AnswerHead, type Framing, type Lines } from './response-head.ts';
import { createChunks, type Chunks } from './chunks.ts';

export type AnswerEvents = {
  /** 1xx; `rest` is where the bytes behind it begin. */
  readonly onInformation: (head: AnswerHead, bytes: Buffer, rest: number, end: number) => void;
  /** `more`: data or the end follows at once. */
  readonly onHead: (head: AnswerHead, more: boolean) => void;
  /** A view of the bytes that were given to `read`. */
  readonly onData: (piece: Buffer) => void;
  /** `surplus`: bytes came that belong to no answer. */
  readonly onEnd: (surplus: boolean) => void;
  /** It cannot be relied on any more. */
  readonly onBroken: (detail: string) => void;
  /** Whether the body is wanted now. */
  readonly wantsMore: () => boolean;
};

export type AnswerReader = {
  /** The next bytes begin an answer to a request; `headRequest`: to HEAD, so it has no body. */
  readonly begin: (headRequest: boolean) => void;
  /** Reads what is wanted and returns where it stopped. */
  readonly read: (bytes: Buffer, from: number, end: number) => number;
  /** No answer is expected: whatever was being read is dropped. */
  readonly stop: () => void;
  /** What comes next. */
  readonly phase: () => 'head' | Framing;
  /** Whether `rest` can be all that the answer still needs, where nothing follows it but an orderly end. */
  readonly mayEndWith: (rest: Buffer) => boolean;
};

const CR = 0x0d;
const LF = 0x0a;
const HEAD_BYTES = 64 * 1024;
const END_OF_HEAD = Buffer.of(CR, LF, CR, LF);
const INFORMATIONAL = 32;

/** `lines`: of the answers of one upstream, shared by its connections. `headBytes`: of a head, at most. */
export function createAnswerReader(events: AnswerEvents, lines: Lines, headBytes = HEAD_BYTES): AnswerReader {
  let reading: 'head' | Framing = 'head';
  /** Counts up whenever the answer being read is another one, or none. */
  let generation = 0;
  let headRequest = false;
  let informational = 0;
  let bytesLeft = 0;
  let chunks: Chunks | undefined;
  let partial: Buffer | undefined;
  let partialBytes = 0;

  const onPiece = (piece: Buffer): boolean => {
    const mine = generation;
    events.onData(piece);
    return mine === generation && events.wantsMore();
  };

  function begin(isHead: boolean): void {
    stop();
    headRequest = isHead;
    informational = 0;
  }

  function stop(): void {
    generation++;
    reading = 'head';
    chunks = undefined;
    partial = undefined;
    partialBytes = 0;
  }

  function end(surplus: boolean): void {
    stop();
    events.onEnd(surplus);
  }

  function broken(detail: string): void {
    stop();
    events.onBroken(detail);
  }

  /** The same answer is being read, and what comes next of it is wanted. */
  function goesOn(mine: number): boolean {
    return mine === generation && (reading === 'head' || events.wantsMore());
  }

  function read(bytes: Buffer, from: number, to: number): number {
    const mine = generation;
    let at = from;
    while (at < to && goesOn(mine)) {
      switch (reading) {
        case 'head':
          at = readHead(bytes, at, to);
          break;
        case 'length': {
          const upTo = Math.min(to, at + bytesLeft);
          bytesLeft -= upTo - at;
          events.onData(bytes.subarray(at, upTo));
          at = upTo;
          if (bytesLeft === 0 && mine === generation) end(at < to);
          break;
        }
        case 'chunked': {
          const decoder = (chunks ??= createChunks());
          at = decoder.read(bytes, at, to, onPiece);
          if (mine !== generation) break;
          const state = decoder.state();
          if (state === 'broken') broken('the chunked coding of the answer is broken');
          if (state === 'whole') end(at < to);
          break;
        }
        case 'close':
          events.onData(bytes.subarray(at, to));
          at = to;
          break;
        case 'none':
          end(true);
          break;
        default:
          return reading satisfies never;
      }
    }
    return at;
  }

  function readHead(bytes: Buffer, at: number, to: number): number {
    let text: string;
    let rest: number;
    if (partial === undefined) {
      const stop = bytes.indexOf(END_OF_HEAD, at);
      if (stop < 0 || stop + 4 > to) {
        gather(bytes, at, to);
        return to;
      }
      text = bytes.toString('latin1', at, stop + 2);
      rest = stop + 4;
    } else {
      // What stands behind the head is body, and no business of the checks on a head.
      const end = endOfHead(partial.subarray(Math.max(0, partialBytes - 3), partialBytes), bytes, at, to);
      const gathered = gather(bytes, at, end ?? to);
      if (gathered === undefined || end === undefined) return to;
      text = gathered.toString('latin1', 0, partialBytes - 2);
      rest = end;
      partial = undefined;
      partialBytes = 0;
    }
    const head = text.length > headBytes ? TOO_LARGE : readAnswerHead(text, headRequest, lines);
    if (typeof head === 'string') broken(head);
    else if (head.status < 200) inform(head, bytes, rest, to);
    else take(head, rest < to);
    return rest;
  }

  function inform(head: AnswerHead, bytes: Buffer, rest: number, to: number): void {
    if (head.status >= 100 && ++informational <= INFORMATIONAL) events.onInformation(head, bytes, rest, to);
    else broken(`an answer with the status ${head.status}`);
  }

  function take(head: AnswerHead, more: boolean): void {
    const mine = generation;
    reading = head.framing;
    bytesLeft = head.length;
    events.onHead(head, more || head.framing === 'none');
    if (head.framing === 'none' && mine === generation) end(more);
  }

  /** Keeps the beginning of a head until the rest is there; undefined where it cannot become one. */
  function gather(bytes: Buffer, at: number, to: number): Buffer | undefined {
    const size = partialBytes + to - at;
    // The empty line behind a head does not count.
    if (size > headBytes + 2) {
      broken(TOO_LARGE);
      return undefined;
    }
    if (partial === undefined || partial.length < size) {
      const larger = Buffer.alloc(Math.max(1024, 2 * size));
      partial?.copy(larger, 0, 0, partialBytes);
      partial = larger;
    }
    bytes.copy(partial, partialBytes, at, to);
    // Something else than HTTP is told at once, not after a time-out.
    const known = Math.min(size, 7);
    const isHttp = partial.toString('latin1', 0, known) === 'HTTP/1.'.slice(0, known);
    if (!isHttp || hasBareLineFeed(partial, partialBytes, size)) {
      broken(isHttp ? 'the head of the answer holds a bare line feed' : 'the answer is not HTTP/1.0 or 1.1');
      return undefined;
    }
    partialBytes = size;
    return partial;
  }

  return {
    begin,
    read,
    stop,
    phase: () => reading,
    mayEndWith: (rest) => {
      if (reading === 'length') return rest.length >= bytesLeft;
      return reading === 'chunked' ? rest.subarray(-4).equals(END_OF_HEAD) : reading === 'close';
    },
  };
}

/** Where in `bytes` the head ends that began with `before`, its last three bytes so far; undefined: not before `to`. */
function endOfHead(before: Buffer, bytes: Buffer, at: number, to: number): number | undefined {
  const seam = Buffer.concat([before, bytes.subarray(at, Math.min(to, at + 3))]);
  const across = seam.indexOf(END_OF_HEAD);
  if (across >= 0) return at + across + 4 - before.length;
  const within = bytes.indexOf(END_OF_HEAD, at);
  return within < 0 || within + 4 > to ? undefined : within + 4;
}

const TOO_LARGE = 'the head of the answer is too large';

function hasBareLineFeed(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (bytes[i] === LF && (i === 0 || bytes[i - 1] !== CR)) return true;
  return false;
}
