// Bytes that are almost a response: valid ones with bytes changed, dropped, repeated and swapped. However they are cut they
// are read as the same thing, nothing is thrown, and nothing is told that was not there.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ResponseReader } from '../../src/http/response-reader.ts';

const SEEDS = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nX-T: y\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nto the end',
  'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 3\r\n\r\n',
];
/** Bytes that mean something to some reader of HTTP, and some that do not. */
const BYTES = [...Buffer.from('\r\n\0 \t:;,=-+0123456789aAfFxX/.HTP\x7f\x80\xff', 'latin1')];

type Read = { readonly events: string[]; readonly body: string };

/** As it is read when it comes in these pieces; after the end or a fault nothing is read. */
function read(pieces: readonly Buffer[], headRequest: boolean): Read {
  const reader = new ResponseReader(headRequest);
  const events: string[] = [];
  let body = '';
  for (const piece of pieces) {
    reader.push(Buffer.from(piece));
    for (let event = reader.next(); event !== undefined; event = reader.next()) {
      if (event.kind === 'data') body += event.chunk.toString('latin1');
      else if ('head' in event) events.push(JSON.stringify(event));
      else events.push(event.kind);
    }
  }
  return { events, body };
}

const mutation = fc.record({
  kind: fc.constantFrom('change', 'insert', 'drop', 'repeat', 'swap'),
  at: fc.nat(),
  byte: fc.constantFrom(...BYTES),
  size: fc.integer({ min: 1, max: 8 }),
});

function mutate(
  bytes: Buffer,
  { kind, at, byte, size }: { kind: string; at: number; byte: number; size: number },
): Buffer {
  const from = at % (bytes.length + 1);
  const before = bytes.subarray(0, from);
  const some = bytes.subarray(from, from + size);
  const after = bytes.subarray(from + size);
  switch (kind) {
    case 'change':
      return Buffer.concat([before, Buffer.of(byte), bytes.subarray(from + 1)]);
    case 'insert':
      return Buffer.concat([before, Buffer.of(byte), some, after]);
    case 'drop':
      return Buffer.concat([before, after]);
    case 'repeat':
      return Buffer.concat([before, some, some, after]);
    default:
      return Buffer.concat([before, after.subarray(0, size), some, after.subarray(size)]);
  }
}

it('attack: bytes that are almost a response are read as the same thing however they are cut', () => {
  let whole = 0;
  let broken = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...SEEDS),
      fc.array(mutation, { maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      fc.boolean(),
      (seed, mutations, places, headRequest) => {
        const bytes = mutations.reduce(mutate, Buffer.from(seed, 'latin1'));
        const edges = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
        const cut = edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
        const expected = read([bytes], headRequest);
        expect(read(cut, headRequest)).toEqual(expected);
        expect(
          read(
            [...bytes].map((byte) => Buffer.of(byte)),
            headRequest,
          ),
        ).toEqual(expected);
        const ends = expected.events.filter((event) => event === 'end' || event === 'broken');
        expect(ends.length).toBeLessThanOrEqual(1);
        expect(expected.body.length).toBeLessThanOrEqual(bytes.length);
        if (ends[0] === 'end') whole++;
        if (ends[0] === 'broken') broken++;
      },
    ),
    { numRuns: 5000, seed: 1 },
  );
  // Both happen often, or the bytes are not almost responses.
  expect(Math.min(whole, broken)).toBeGreaterThan(500);
});
