// Reads one answer of a service from the bytes of a connection, as strictly as an upstream's (gateway/client), and no more
// of it than its caller allows: nothing encoded, nothing left over. What is not exactly that is wrong, and the connection
// it came on carries no other call. Sources: RFC 9112 (framing), RFC 9110.
import { readAnswerHead, type AnswerHead, type Framing, type Lines } from '../client/answer-head.ts';
import { createChunks, type Chunks } from '../client/chunks.ts';

export type Progress =
  /** There is more to come. */
  | { readonly kind: 'more' }
  /** `reuseMs`: how long the connection may be idle and carry another call; 0 where it may not. */
  | { readonly kind: 'whole'; readonly status: number; readonly body: Buffer; readonly reuseMs: number }
  /** `why`: a phrase without any of the answer's content. */
  | { readonly kind: 'wrong'; readonly why: string };

export type AnswerReader = {
  /** The next bytes, in memory that may be used again afterwards. Not to be called again once the answer is whole or wrong. */
  readonly read: (chunk: Buffer) => Progress;
  /** The connection ended in order: the answer is whole where that is how its end is told. */
  readonly end: () => Progress;
};

const MORE: Progress = { kind: 'more' };
const EMPTY = Buffer.alloc(0);
const HEAD_BYTES = 16 * 1024;
/** 1xx before the answer. */
const INTERIM_ANSWERS = 8;
// Below the 5 s after which Node and uvicorn close an idle connection unannounced: one that we leave first is never found dead.
const REUSE_MS = 4000;
/** A service that names its time closes a little earlier than we think. */
const REUSE_MARGIN_MS = 1000;

/** `maxBytes`: of the body. `lines`: of the answers of one service, shared by its connections. */
export function createAnswerReader(maxBytes: number, lines: Lines): AnswerReader {
  let reading: 'head' | Framing = 'head';
  let rest: Buffer = EMPTY;
  let interim = 0;
  let status = 0;
  let reuseMs = 0;
  let left = 0;
  let length = 0;
  let chunks: Chunks | undefined;
  const pieces: Buffer[] = [];

  const wrong = (what: string): Progress => ({ kind: 'wrong', why: status === 0 ? what : `status ${status} ${what}` });
  const whole = (remaining: number): Progress => {
    const [only = EMPTY] = pieces;
    const body = pieces.length <= 1 ? only : Buffer.concat(pieces, length);
    // Bytes after an answer belong to no call of ours.
    return { kind: 'whole', status, body, reuseMs: remaining > 0 ? 0 : reuseMs };
  };
  /** False where that is more than may come. */
  const keep = (piece: Buffer): boolean => {
    length += piece.length;
    pieces.push(Buffer.from(piece));
    return length <= maxBytes;
  };
  const tooLong = (): Progress => wrong(`with more than ${maxBytes} bytes`);

  const read = (chunk: Buffer): Progress => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    rest = EMPTY;
    while (reading === 'head') {
      const stop = bytes.indexOf('\r\n\r\n', at, 'latin1');
      if ((stop < 0 ? bytes.length : stop) - at > HEAD_BYTES) return wrong('the head of the answer is too large');
      if (stop < 0) {
        rest = Buffer.from(bytes.subarray(at));
        return MORE;
      }
      const head = readAnswerHead(bytes.toString('latin1', at, stop + 2), false, lines);
      at = stop + 4;
      if (typeof head === 'string') return wrong(head);
      if (head.status < 200) {
        if (head.status < 100 || head.status === 101 || ++interim > INTERIM_ANSWERS) return wrong('without an answer');
        continue;
      }
      if (isEncoded(head)) return wrong(`status ${head.status} in an encoding that was not asked for`);
      ({ status, length: left } = head);
      if (left > maxBytes) return tooLong();
      reading = head.framing;
      reuseMs = readReuse(head);
    }
    switch (reading) {
      case 'none':
        return whole(bytes.length - at);
      case 'length': {
        const piece = bytes.subarray(at, at + left);
        left -= piece.length;
        keep(piece);
        return left > 0 ? MORE : whole(bytes.length - at - piece.length);
      }
      case 'chunked': {
        chunks ??= createChunks();
        const stopped = chunks.read(bytes, at, bytes.length, keep);
        if (length > maxBytes) return tooLong();
        const state = chunks.state();
        if (state === 'broken') return wrong('with a chunked coding that is broken');
        return state === 'more' ? MORE : whole(bytes.length - stopped);
      }
      case 'close':
        return keep(bytes.subarray(at)) ? MORE : tooLong();
      default:
        return reading satisfies never;
    }
  };

  return { read, end: () => (reading === 'close' ? whole(0) : wrong('that broke off')) };
}

function isEncoded({ headers }: AnswerHead): boolean {
  const encoding = valueOf(headers, 'content-encoding');
  return encoding !== undefined && encoding.toLowerCase() !== 'identity';
}

function readReuse({ keepAlive, headers }: AnswerHead): number {
  if (!keepAlive) return 0;
  const [, seconds] = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})/i.exec(valueOf(headers, 'keep-alive') ?? '') ?? [];
  return seconds === undefined ? REUSE_MS : Math.max(0, Math.min(REUSE_MS, Number(seconds) * 1000 - REUSE_MARGIN_MS));
}

function valueOf(headers: readonly string[], wanted: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (name?.length === wanted.length && name.toLowerCase() === wanted) return headers[i + 1];
  }
  return undefined;
}
