// However the bytes of an answer are cut, it is read as the same answer, and what stands behind it is nobody's.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseReader } from '../../src/http/response-reader.ts';

type Read = { readonly events: string[]; readonly body: string };

/** Reads `bytes` cut at `cuts`. `late`: events are taken only when the next piece is there. */
function readCut(bytes: Buffer, cuts: readonly number[], headRequest = false, late = false): Read {
  const events: string[] = [];
  let body = '';
  const reader = new ResponseReader(headRequest);
  const drain = (): void => {
    for (let event = reader.next(); event !== undefined; event = reader.next()) {
      if (event.kind === 'information') events.push(`information ${event.head.status}`);
      else if (event.kind === 'head') events.push(`head ${event.head.status} ${event.head.framing}`);
      else if (event.kind === 'data') body += event.chunk.toString('latin1');
      else if (event.kind === 'end') events.push(reader.unread.length > 0 ? 'end and more' : 'end');
      else events.push(event.kind);
    }
  };
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < edges.length; i++) {
    // The reader may move what it was given.
    reader.push(Buffer.from(bytes.subarray(edges[i - 1], edges[i])));
    if (!late || i % 2 === 0) drain();
  }
  drain();
  return { events, body };
}

/** Line feeds that would be bare ones in a head. */
const LINES = 'a line\n'.repeat(10_000);

const ANSWERS: readonly [string, string, readonly string[], string][] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', ['head 200 length', 'end'], 'hello'],
  [
    'chunks, extensions and trailers',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n002\r\nlo\r\n0;x\r\nX-T: y\r\nX-U: z\r\n\r\n',
    ['head 200 chunked', 'end'],
    'hello',
  ],
  ['no body', 'HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n', ['head 204 none', 'end'], ''],
  [
    'informational ones before it',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
    ['information 100', 'information 103', 'head 200 length', 'end'],
    'x',
  ],
  [
    'a body of text, larger than a head may be',
    `HTTP/1.1 200 OK\r\nContent-Length: ${LINES.length}\r\n\r\n${LINES}`,
    ['head 200 length', 'end'],
    LINES,
  ],
  ['an end that closes', 'HTTP/1.0 200 OK\r\n\r\nhello\r\n\r\n', ['head 200 close'], 'hello\r\n\r\n'],
];

describe('an answer, cut anywhere', () => {
  it.each(ANSWERS)('behaviour: an answer with %s is read the same however it is cut', (_name, text, events, body) => {
    const bytes = Buffer.from(text, 'latin1');
    for (let cut = 0; cut <= Math.min(bytes.length, 200); cut++)
      expect(readCut(bytes, [cut])).toEqual({ events, body });
    const places = fc.array(fc.nat(bytes.length), { maxLength: 12 });
    fc.assert(
      fc.property(places, fc.boolean(), (cuts, late) => {
        expect(readCut(bytes, cuts, false, late)).toEqual({ events, body });
      }),
      { numRuns: 300, seed: 1 },
    );
  });
});

describe('what is not an answer', () => {
  it.each<[string, string]>([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n'],
    ['a bare line feed', 'HTTP/1.1 200 OK\nContent-Length: 1\n\n'],
    ['a size that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n'],
    ['a size with a sign', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n'],
    ['a size with 0x', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n'],
    ['a size of thirteen digits', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000\r\n'],
    ['a space behind the size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n'],
    ['an extension with a line feed', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n'],
    ['a chunk without its line break', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n'],
    ['a folded trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n X: y\r\n\r\n'],
    ['a status of nothing', 'HTTP/1.1 000 Nothing\r\n\r\n'],
    ['informational ones without end', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(33)],
    ['a head past the limit', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(64 * 1024)}\r\n\r\n`],
  ])('refuses: %s in place of an answer, cut anywhere', (_name, text) => {
    const bytes = Buffer.from(text, 'latin1');
    const step = Math.max(1, Math.floor(bytes.length / 200));
    for (let cut = 0; cut <= bytes.length; cut += step) expect(readCut(bytes, [cut]).events.at(-1)).toBe('broken');
  });

  it('behaviour: a head at the limit is read', () => {
    const start = 'HTTP/1.1 204 N\r\nX-A: ';
    const bytes = Buffer.from(`${start}${'a'.repeat(64 * 1024 - start.length - 4)}\r\n\r\n`);
    expect(readCut(bytes, []).events).toEqual(['head 204 none', 'end']);
    expect(readCut(bytes, [1000]).events).toEqual(['head 204 none', 'end']);
  });

  it.each<[string, string, boolean]>([
    ['a second answer', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n', false],
    ['more than its length', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy', false],
    ['a body behind 204', 'HTTP/1.1 204 N\r\n\r\nx', false],
    ['a body behind an answer to HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx', true],
    ['bytes behind the last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx', false],
  ])('attack: %s is surplus to an answer', (_name, text, headRequest) => {
    expect(readCut(Buffer.from(text), [], headRequest).events.at(-1)).toBe('end and more');
  });
});

it('behaviour: a TLS alert in place of a response is named', () => {
  const reader = new ResponseReader(false);
  reader.push(Buffer.of(0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46));
  const event = reader.next();
  expect(event?.kind === 'broken' && event.detail).toContain('does the upstream speak https, not http?');
});

it('attack: ten thousand chunks of a byte are told as one piece a read, and larger ones as they come', () => {
  const pieces: string[] = [];
  const reader = new ResponseReader(false);
  const small = '1\r\nx\r\n'.repeat(10_000);
  const large = `800\r\n${'y'.repeat(2048)}\r\n`;
  const bytes = Buffer.from(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${small}${large}${large}${small}0\r\n\r\n`,
  );
  reader.push(bytes);
  for (let event = reader.next(); event !== undefined; event = reader.next())
    if (event.kind === 'data') pieces.push(event.chunk.toString('latin1'));
  expect(pieces.map(({ length }) => length)).toEqual([10_000, 2048, 2048 + 10_000]);
  expect(pieces.join('')).toBe('x'.repeat(10_000) + 'y'.repeat(4096) + 'x'.repeat(10_000));
});
