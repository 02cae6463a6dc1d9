import { describe, expect, it } from 'vitest';
import { readResponseHead } from '../../src/http/response-reader.ts';

const read = (lines: readonly string[], headRequest = false): ReturnType<typeof readResponseHead> =>
  readResponseHead(lines.map((line) => `${line}\r\n`).join(''), headRequest);

describe('what is read', () => {
  it('behaviour: a head is read with names as they arrived and values without the space around them', () => {
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
  ])('behaviour: a head tells the framing of %s', (_name, lines, headRequest, framing, keepAlive) => {
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
  ])('refuses: a response head with %s', (_name, lines) => {
    expect(typeof read(lines)).toBe('string');
    // To HEAD as well: who disagrees about one answer disagrees about the next.
    expect(typeof read(lines, true)).toBe('string');
  });
});
