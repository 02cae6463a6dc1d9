import { describe, expect, it } from 'vitest';
import { createLines, readAnswerHead } from '../../src/http/response-head.ts';

// Every head of this file has been read here before, so that whatever is remembered is.
const warm = createLines();

/** Read with nothing remembered, with everything remembered that was ever read, and with itself remembered. */
const read = (lines: readonly string[], headRequest = false): ReturnType<typeof readAnswerHead> => {
  const text = lines.map((line) => `${line}\r\n`).join('');
  const cold = readAnswerHead(text, headRequest);
  expect(readAnswerHead(text, headRequest, warm)).toEqual(cold);
  for (let times = 0; times < 40; times++) {
    warm.unknown = 0;
    expect(readAnswerHead(text, headRequest, warm)).toEqual(cold);
  }
  return cold;
};

describe('what is read', () => {
  it('behaviour: names as they arrived, values without the space around them', () => {
    expect(read(['HTTP/1.1 200 OK', 'X-A:  b c \t', 'x-a:', 'Content-Length:3'])).toEqual({
      status: 200,
      headers: ['X-A', 'b c', 'x-a', '', 'Content-Length', '3'],
      framing: 'length',
      length: 3,
      keepAlive: true,
    });
  });

  it.each<[string, readonly string[], boolean, string, boolean]>([
    ['a length', ['HTTP/1.1 200 OK', 'Content-Length: 3'], false, 'length', true],
    ['a length of nothing', ['HTTP/1.1 200 OK', 'Content-Length: 0'], false, 'none', true],
    ['a coding', ['HTTP/1.1 200 OK', 'Transfer-Encoding: Chunked'], false, 'chunked', true],
    ['neither', ['HTTP/1.1 200 OK'], false, 'close', false],
    ['neither, of HTTP/1.0', ['HTTP/1.0 200 OK', 'Connection: keep-alive'], false, 'close', false],
    ['an answer to HEAD', ['HTTP/1.1 200 OK', 'Content-Length: 3'], true, 'none', true],
    ['204', ['HTTP/1.1 204 No Content', 'Content-Length: 3'], false, 'none', true],
    ['304', ['HTTP/1.1 304 Not Modified'], false, 'none', true],
    ['103', ['HTTP/1.1 103 Early Hints'], false, 'none', true],
    ['a close', ['HTTP/1.1 200 OK', 'Connection: x, Close', 'Content-Length: 3'], false, 'length', false],
    ['no reason', ['HTTP/1.1 200', 'Content-Length: 3'], false, 'length', true],
    ['an empty reason', ['HTTP/1.1 200 ', 'Content-Length: 3'], false, 'length', true],
    ['a reason in latin1', ['HTTP/1.1 200 Tr\u00e8s bien', 'Content-Length: 3'], false, 'length', true],
  ])('behaviour: framing of %s', (_name, lines, headRequest, framing, keepAlive) => {
    expect(read(lines, headRequest)).toMatchObject({ framing, keepAlive });
  });
});

describe('what is refused', () => {
  it.each<[string, readonly string[]]>([
    ['HTTP/2', ['HTTP/2.0 200 OK']],
    ['HTTP/1.2', ['HTTP/1.2 200 OK']],
    ['lower case', ['http/1.1 200 OK']],
    ['something else', ['SSH-2.0-OpenSSH_9.9']],
    ['two digits', ['HTTP/1.1 20 OK']],
    ['four digits', ['HTTP/1.1 2000 OK']],
    ['a sign', ['HTTP/1.1 +20 OK']],
    ['two spaces', ['HTTP/1.1  200 OK']],
    ['no space', ['HTTP/1.1200 OK']],
    ['a bare CR in the reason', ['HTTP/1.1 200 O\rK']],
    ['a folded line', ['HTTP/1.1 200 OK', 'X-A: b', ' c']],
    ['a line that is no header', ['HTTP/1.1 200 OK', 'X-A']],
    ['a space before the colon', ['HTTP/1.1 200 OK', 'Content-Length : 3']],
    ['an empty name', ['HTTP/1.1 200 OK', ': 3']],
    ['a name with a space', ['HTTP/1.1 200 OK', 'X A: 3']],
    ['a NUL', ['HTTP/1.1 200 OK', 'X-A: b\0c']],
    ['a bare CR', ['HTTP/1.1 200 OK', 'X-A: b\rX-B: c']],
    ['a bare LF', ['HTTP/1.1 200 OK', 'X-A: b\nX-B: c']],
    ['a DEL', ['HTTP/1.1 200 OK', 'X-A: \x7f']],
    ['a 101 of HTTP/1.0', ['HTTP/1.0 101 Switching Protocols']],
    ['two lengths', ['HTTP/1.1 200 OK', 'Content-Length: 3', 'content-length: 3']],
    ['a list of lengths', ['HTTP/1.1 200 OK', 'Content-Length: 3, 3']],
    ['a signed length', ['HTTP/1.1 200 OK', 'Content-Length: +3']],
    ['a hexadecimal length', ['HTTP/1.1 200 OK', 'Content-Length: 0x3']],
    ['an empty length', ['HTTP/1.1 200 OK', 'Content-Length:']],
    ['a length past what a number holds', ['HTTP/1.1 200 OK', 'Content-Length: 9999999999999999']],
    ['length and coding', ['HTTP/1.1 200 OK', 'Content-Length: 3', 'Transfer-Encoding: chunked']],
    ['two codings', ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['another coding', ['HTTP/1.1 200 OK', 'Transfer-Encoding: gzip, chunked']],
    ['an unknown coding', ['HTTP/1.1 200 OK', 'Transfer-Encoding: xchunked']],
    ['a coding of HTTP/1.0', ['HTTP/1.0 200 OK', 'Transfer-Encoding: chunked']],
  ])('refuses: %s', (_name, lines) => {
    expect(typeof read(lines)).toBe('string');
    // To HEAD as well: who disagrees about one answer disagrees about the next.
    expect(typeof read(lines, true)).toBe('string');
  });
});

describe('what is remembered', () => {
  const text = (...lines: string[]): string => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n`;
  const times = (count: number, head: string, lines = createLines()): ReturnType<typeof createLines> => {
    // Not the same twice in a row, or the whole of it is remembered and its lines are not read again.
    for (let i = 0; i < count; i++) readAnswerHead(head, i % 2 === 0, lines);
    return lines;
  };

  it('behaviour: a line that comes again is the same string, and what follows it is read as ever', () => {
    const lines = createLines();
    const head = text('Server: one', 'Content-Length: 3');
    times(40, head, lines);
    const first = readAnswerHead(head, false, lines);
    const second = readAnswerHead(text('Server: one', 'Content-Length: 4'), false, lines);
    expect(lines.byPlace.map((line) => line?.text)).toEqual(['Server: one\r\n', 'Content-Length: 3\r\n']);
    expect(first).toMatchObject({ length: 3 });
    expect(second).toMatchObject({ headers: ['Server', 'one', 'Content-Length', '4'], length: 4 });
  });

  it('behaviour: a head that comes again is read as it was, and none of it belongs to who had it before', () => {
    const lines = createLines();
    const head = text('Server: one', 'Content-Length: 3');
    for (let i = 0; i < 4; i++) {
      const read = readAnswerHead(head, false, lines);
      expect(read).toEqual(readAnswerHead(head, false));
      if (typeof read !== 'string') read.headers[1] = `written over ${i}`;
    }
  });

  it('attack: an answer to HEAD does not frame one to GET, nor the other way about', () => {
    const lines = createLines();
    const head = text('Content-Length: 3');
    for (const headRequest of [true, true, true, false, false, false, true]) {
      expect(readAnswerHead(head, headRequest, lines)).toMatchObject({ framing: headRequest ? 'none' : 'length' });
    }
  });

  it('refuses: what was refused, however often it comes', () => {
    const lines = createLines();
    for (let i = 0; i < 4; i++) expect(readAnswerHead(text('Content-Length: x'), false, lines)).toBeTypeOf('string');
  });

  it.each([
    ['a longer value', 'Server: one1'],
    ['a folded line', 'Server: one\r\n two'],
    ['a bare CR', 'Server: one\rX: y'],
    ['another name', 'Servers: one'],
  ])('attack: %s behind a remembered line is not taken for it', (_name, line) => {
    const lines = times(40, text('Server: one', 'Content-Length: 3'));
    const head = text(line, 'Content-Length: 3');
    expect(readAnswerHead(head, false, lines)).toEqual(readAnswerHead(head, false));
  });

  it('behaviour: no more than 32 lines, and none of a head above 4 KiB', () => {
    const many = Array.from({ length: 33 }, (_, i) => `X-${i}: 1`);
    expect(times(2000, text(...many)).byPlace).toHaveLength(32);
    const bytes = 4096 - text('X: ').length;
    expect(times(40, text(`X: ${'a'.repeat(bytes)}`)).byPlace).toHaveLength(1);
    expect(times(40, text(`X: ${'a'.repeat(bytes + 1)}`)).byPlace).toHaveLength(0);
  });
});
