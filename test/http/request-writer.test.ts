// However the body of a request comes in pieces, what is written is its head and that body in the framing it announced.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestWriter, writeHead } from '../../src/http/request-writer.ts';
import type { UpstreamRequest } from '../../src/http/transport.ts';
import { readChunks } from '../support/raw-client.ts';

const HEAD = 'POST /a HTTP/1.1\r\nHost: h\r\n\r\n';
const bytesOf = (out: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(out.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)));
const pieces = fc.array(fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.constant(new Uint8Array(20_000).fill(0xe9))), {
  maxLength: 8,
});

describe('a body in pieces', () => {
  it('behaviour: a body with a length goes out as it is, behind the head, wherever it is taken', () => {
    fc.assert(
      fc.property(pieces, fc.boolean(), (given, takesEach) => {
        const body = Buffer.concat(given);
        const writer = new RequestWriter(HEAD, body.length);
        const out: Buffer[] = [];
        for (const piece of given) {
          expect(writer.write(Buffer.from(piece))).toBe(true);
          if (takesEach) out.push(bytesOf(writer.take()));
        }
        expect(writer.isWhole).toBe(true);
        expect(writer.end()).toBe(true);
        out.push(bytesOf(writer.take()));
        expect(Buffer.concat(out).equals(Buffer.concat([Buffer.from(HEAD), body]))).toBe(true);
      }),
      { seed: 1 },
    );
  });

  it('behaviour: a chunked body is read back as the same body, and is whole only at its end', () => {
    fc.assert(
      fc.property(pieces, (given) => {
        const writer = new RequestWriter(HEAD, 'chunked');
        for (const piece of given) expect(writer.write(Buffer.from(piece))).toBe(true);
        expect(writer.isWhole).toBe(false);
        expect(writer.end()).toBe(true);
        const out = bytesOf(writer.take());
        expect(out.subarray(0, HEAD.length).toString()).toBe(HEAD);
        const read = readChunks(out.subarray(HEAD.length));
        expect(read?.body.equals(Buffer.concat(given))).toBe(true);
      }),
      { seed: 1 },
    );
  });

  it('refuses: a byte more or a byte less of a body than was announced', () => {
    const long = new RequestWriter(HEAD, 3);
    expect([long.write(Buffer.from('ab')), long.write(Buffer.from('cd'))]).toEqual([true, false]);
    const short = new RequestWriter(HEAD, 3);
    expect([short.write(Buffer.from('ab')), short.isWhole, short.end()]).toEqual([true, false, false]);
  });
});

describe('a head', () => {
  const GET: UpstreamRequest = { method: 'GET', target: '/a', headers: ['Host', 'h'], body: undefined, upgrade: false };

  it('behaviour: a head is written to the letter', () => {
    const headers = ['Host', 'h', 'x-A', ' b\té ', 'X-a', ''];
    expect(writeHead({ ...GET, target: '/%2F?a=b', headers })).toBe(
      'GET /%2F?a=b HTTP/1.1\r\nHost: h\r\nx-A:  b\té \r\nX-a: \r\n\r\n',
    );
  });

  it.each<[string, Partial<UpstreamRequest>]>([
    ['a target with a space', { target: '/a b' }],
    ['a target with a line break', { target: '/a\r\nX: y' }],
    ['an empty target', { target: '' }],
    ['a target beyond ASCII', { target: '/é' }],
    ['a value with a line break', { headers: ['X-A', 'b\r\nX-B: c'] }],
    ['a value with a bare line feed', { headers: ['X-A', 'b\nc'] }],
    ['a value with NUL', { headers: ['X-A', '\0'] }],
    ['a value of more than a byte a character', { headers: ['X-A', '\u0100'] }],
    ['a name with a space', { headers: ['X A', 'b'] }],
    ['a name with a colon', { headers: ['X-A:', 'b'] }],
    ['no name', { headers: ['', 'b'] }],
    ['a method in lower case', { method: 'get' }],
    ['a method with a space', { method: 'GET /b' }],
  ])('refuses: a request head with %s', (_name, wrong) => {
    expect(writeHead({ ...GET, ...wrong })).toBeUndefined();
  });
});
