// Reads one whole answer of a service after the other from the bytes of a connection: with the reader that reads an
// upstream's (http), and no more of it than the caller allows, nothing encoded, nothing left over. What is not
// exactly that is wrong, and the connection it came on carries no other call. Sources: RFC 9112 (framing), RFC 9110.
import type { AnswerHead, Lines } from '../../http/response-head.ts';
import { createAnswerReader } from '../../http/response-reader.ts';
import { POOL_IDLE_MS } from '../../http/connection.ts';

export type Progress =
  /** There is more to come. */
  | { readonly kind: 'more' }
  /** `reuseMs`: how long the connection may be idle and carry another call; 0 where it may not. */
  | { readonly kind: 'whole'; readonly status: number; readonly body: Buffer; readonly reuseMs: number }
  /** `why`: a phrase without any of the answer's content. */
  | { readonly kind: 'wrong'; readonly why: string };

export type WholeAnswers = {
  /** The next bytes are of the answer to another call. `maxBytes`: of its body. */
  readonly begin: (maxBytes: number) => void;
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
/** A service that names its time closes a little earlier than we think. */
const REUSE_MARGIN_MS = 1000;

/** Those of one connection. `lines`: of the answers of one service, shared by its connections. */
export function createWholeAnswers(lines: Lines): WholeAnswers {
  let progress = MORE;
  let maxBytes = 0;
  let interim = 0;
  let head: AnswerHead | undefined;
  let length = 0;
  let pieces: Buffer[] = [];

  const reader = createAnswerReader(
    {
      onInformation: ({ status }) => {
        if (status === 101 || ++interim > INTERIM_ANSWERS) refuse('no answer but interim ones');
      },
      onHead: (it) => {
        head = it;
        if (isEncoded(it)) refuse('in an encoding that was not asked for');
        else if (it.length > maxBytes) refuse(tooLong());
      },
      onData: (piece) => {
        length += piece.length;
        if (length > maxBytes) refuse(tooLong());
        else pieces.push(Buffer.from(piece));
      },
      // Bytes after an answer belong to no call of ours.
      onEnd: (surplus) => finish(surplus || head === undefined ? 0 : readReuse(head)),
      onBroken: refuse,
      wantsMore: () => progress === MORE,
    },
    lines,
    HEAD_BYTES,
  );

  function finish(reuseMs: number): void {
    const [only = EMPTY] = pieces;
    const body = pieces.length <= 1 ? only : Buffer.concat(pieces, length);
    progress = { kind: 'whole', status: head?.status ?? 0, body, reuseMs };
  }

  function refuse(what: string): void {
    reader.stop();
    progress = { kind: 'wrong', why: head === undefined ? what : `status ${head.status}: ${what}` };
  }

  function tooLong(): string {
    return `more than ${maxBytes} bytes`;
  }

  return {
    begin: (bytes) => {
      reader.begin(false);
      progress = MORE;
      maxBytes = bytes;
      interim = 0;
      head = undefined;
      length = 0;
      pieces = [];
    },
    read: (chunk) => {
      reader.read(chunk, 0, chunk.length);
      return progress;
    },
    end: () => {
      if (reader.phase() === 'close') finish(0);
      else refuse('it broke off');
      return progress;
    },
  };
}

function isEncoded({ headers }: AnswerHead): boolean {
  const encoding = valueOf(headers, 'content-encoding');
  return encoding !== undefined && encoding.toLowerCase() !== 'identity';
}

function readReuse({ keepAlive, headers }: AnswerHead): number {
  if (!keepAlive) return 0;
  const [, seconds] = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})/i.exec(valueOf(headers, 'keep-alive') ?? '') ?? [];
  return seconds === undefined
    ? POOL_IDLE_MS
    : Math.max(0, Math.min(POOL_IDLE_MS, Number(seconds) * 1000 - REUSE_MARGIN_MS));
}

function valueOf(headers: readonly string[], wanted: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (name?.length === wanted.length && name.toLowerCase() === wanted) return headers[i + 1];
  }
  return undefined;
}
