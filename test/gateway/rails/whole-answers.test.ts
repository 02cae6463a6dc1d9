// What counts as an answer of a facilitator on the wire, however its bytes arrive, and what is none.
import { describe, expect, test } from 'vitest';
import { createLines } from '../../../src/http/response-head.ts';
import { createWholeAnswers, type Progress, type WholeAnswers } from '../../../src/gateway/rails/whole-answers.ts';

const LIMIT = 64;
const OK = 'HTTP/1.1 200 OK\r\n';

function awaitAnswer(): WholeAnswers {
  const answers = createWholeAnswers(createLines());
  answers.begin(LIMIT);
  return answers;
}

/** All of `text` at once, then byte by byte: both have to say the same. */
function readAll(text: string, ends = false): Progress {
  const pieces = [[text], text.split('')].map((chunks) => {
    const reader = awaitAnswer();
    let last: Progress = { kind: 'more' };
    for (const [index, chunk] of chunks.entries()) {
      last = reader.read(Buffer.from(chunk, 'latin1'));
      if (last.kind !== 'more' && index < chunks.length - 1) break;
    }
    return last.kind === 'more' && ends ? reader.end() : last;
  });
  const [first, second] = pieces;
  if (first === undefined || second === undefined) throw new Error('read nothing');
  expect(bodyOf(second)).toBe(bodyOf(first));
  return first;
}

function bodyOf(progress: Progress): string {
  return progress.kind === 'whole' ? `${progress.status} ${progress.body.toString('latin1')}` : progress.kind;
}

describe('answers', () => {
  test.each<[string, string, string, boolean?]>([
    ['by length', `${OK}Content-Length: 2\r\n\r\nok`, '200 ok'],
    ['without a reason', 'HTTP/1.1 200\r\ncontent-length:2\r\n\r\nok', '200 ok'],
    ['empty', `${OK}Content-Length: 0\r\n\r\n`, '200 '],
    ['in chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n`, '200 ok'],
    ['in chunks, with a trailer', `${OK}Transfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n`, '200 ok'],
    ['to the end of the connection', `${OK}Connection: close\r\n\r\nok`, '200 ok', true],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nok', '200 ok', true],
    [
      'after a 100 and a 103',
      `HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: a\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
      '200 ok',
    ],
    ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n', '204 '],
    ['as long as it may be', `${OK}Content-Length: ${LIMIT}\r\n\r\n${'x'.repeat(LIMIT)}`, `200 ${'x'.repeat(LIMIT)}`],
    ['in identity', `${OK}Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nok`, '200 ok'],
  ])('behaviour: %s', (_, text, expected, ends) => {
    expect(bodyOf(readAll(text, ends))).toBe(expected);
  });

  test.each<[string, string]>([
    ['another protocol', 'SSH-2.0-x\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['a switch of protocols', 'HTTP/1.1 101 S\r\n\r\n'],
    ['nine interim answers', 'HTTP/1.1 100 C\r\n\r\n'.repeat(9)],
    ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`],
    ['a length and chunks', `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
    ['a length with a sign', `${OK}Content-Length: +2\r\n\r\nok`],
    ['a length that is a list', `${OK}Content-Length: 2, 2\r\n\r\nok`],
    ['one byte more than it may be', `${OK}Content-Length: ${LIMIT + 1}\r\n\r\n`],
    ['one byte more in chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n40\r\n${'x'.repeat(LIMIT)}\r\n1\r\nx`],
    ['one byte more to the end', `${OK}\r\n${'x'.repeat(LIMIT + 1)}`],
    ['an encoding nobody asked for', `${OK}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok`],
    ['another transfer encoding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`],
    ['chunked twice', `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['a folded header', `${OK}A: b\r\n c\r\nContent-Length: 2\r\n\r\nok`],
    ['a space before the colon', `${OK}Content-Length : 2\r\n\r\nok`],
    ['a bare line feed', `${OK}A: b\nContent-Length: 2\r\n\r\nok`],
    ['a bare carriage return', `${OK}A: b\rContent-Length: 9\r\nContent-Length: 2\r\n\r\nok`],
    ['a zero byte', `${OK}A: b\0\r\nContent-Length: 2\r\n\r\nok`],
    ['a chunk without a size', `${OK}Transfer-Encoding: chunked\r\n\r\n\r\n`],
    ['a chunk size of thirteen digits', `${OK}Transfer-Encoding: chunked\r\n\r\n0000000000002\r\n`],
    ['a chunk that is longer than it says', `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\nokk\r\n`],
    ['a trailer that is none', `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n none\r\n`],
    ['a head without an end', `${OK}A: ${'x'.repeat(17 * 1024)}`],
    ['a chunk size without an end', `${OK}Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(17 * 1024)}`],
  ])('attack: %s is no answer', (_, text) => {
    expect(readAll(text).kind).toBe('wrong');
  });

  test.each<[string, string]>([
    ['in the head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['in the body', `${OK}Content-Length: 3\r\n\r\nok`],
    ['between chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`],
  ])('refuses: an answer that broke off %s', (_, text) => {
    expect(readAll(text).kind).toBe('more');
    expect(readAll(text, true).kind).toBe('wrong');
  });
});

test.each<[string, string]>([
  ['by length', `Content-Length: 42\r\n\r\n${'a line\n'.repeat(5)}the\nend`],
  ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${`7\r\na line\n\r\n`.repeat(5)}0\r\n\r\n`],
])('behaviour: a body of text behind a head that is cut anywhere, %s', (_, rest) => {
  // What is read may be written over.
  const bytes = (from: number, to?: number): Buffer => Buffer.from(`${OK}${rest}`.slice(from, to));
  const whole = bodyOf(awaitAnswer().read(bytes(0)));
  expect(whole).toMatch(/^200 a line\n/);
  for (let cut = 1; cut < OK.length + rest.length; cut++) {
    const reader = awaitAnswer();
    expect(reader.read(bytes(0, cut)).kind, `cut at ${cut}`).toBe('more');
    expect(bodyOf(reader.read(bytes(cut))), `cut at ${cut}`).toBe(whole);
  }
});

test('behaviour: what was read of one answer is not part of the next', () => {
  const answers = awaitAnswer();
  expect(bodyOf(answers.read(Buffer.from(`HTTP/1.1 100 C\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`)))).toBe('200 ok');
  answers.begin(1);
  expect(bodyOf(answers.read(Buffer.from('HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno')))).toBe('wrong');
  answers.begin(2);
  expect(bodyOf(answers.read(Buffer.from('HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno')))).toBe('400 no');
  answers.begin(LIMIT);
  expect(bodyOf(answers.read(Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')))).toBe('204 ');
});

describe('whether the connection may carry another call', () => {
  const reuse = (text: string): number => {
    const progress = awaitAnswer().read(Buffer.from(text));
    return progress.kind === 'whole' ? progress.reuseMs : Number.NaN;
  };
  const answer = (...lines: string[]): string => [...lines, 'Content-Length: 2', '', 'ok'].join('\r\n');

  test('behaviour: for four seconds, or a second less than the service names', () => {
    expect(reuse(answer('HTTP/1.1 200 OK'))).toBe(4000);
    expect(reuse(answer('HTTP/1.1 200 OK', 'Connection: keep-alive', 'Keep-Alive: timeout=5'))).toBe(4000);
    expect(reuse(answer('HTTP/1.1 200 OK', 'Keep-Alive: max=9, timeout=3'))).toBe(2000);
    expect(reuse(answer('HTTP/1.1 200 OK', 'Keep-Alive: timeout=1'))).toBe(0);
  });

  test('refuses: where it closes, is of HTTP/1.0, or says more than its answer', () => {
    expect(reuse(answer('HTTP/1.1 200 OK', 'Connection: close'))).toBe(0);
    expect(reuse(answer('HTTP/1.0 200 OK', 'Connection: keep-alive'))).toBe(0);
    expect(reuse(`${answer('HTTP/1.1 200 OK')}H`)).toBe(0);
  });
});
