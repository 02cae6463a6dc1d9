// Where a request ends, and every way to let two readers disagree about it: lengths, codings, chunks, trailers.
import {
  brokenChunks,
  carries,
  CHUNKED,
  FREE,
  HIDDEN,
  HIDDEN_CHUNK,
  HOST,
  keeps,
  lacks,
  PAID,
  POST,
  wire,
} from './wire-case.ts';
import type { WireCase } from './wire-case.ts';

const hello = carries('POST', 'hello');

const refusedLength = (name: string, line: string): WireCase =>
  wire(`a length that is ${name}`, `${POST}Content-Length:${line}\r\n\r\nhello`, '400!');

const takenLength = (name: string, line: string): WireCase =>
  wire(`a length ${name}`, `${POST}${line}\r\n\r\nhello`, '200', { wrong: hello });

const LENGTHS: readonly WireCase[] = [
  refusedLength('signed', ' +5'),
  refusedLength('negative', ' -5'),
  refusedLength('hexadecimal', ' 0x5'),
  refusedLength('empty', ''),
  refusedLength('white space', '  \t'),
  refusedLength('a list', ' 5, 5'),
  refusedLength('a list without spaces', ' 5,5'),
  refusedLength('a list of two that differ', ' 5, 0'),
  refusedLength('two numbers', ' 5 5'),
  refusedLength('followed by a semicolon', ' 5;'),
  refusedLength('a fraction', ' 5.0'),
  refusedLength('in exponents', ' 5e0'),
  refusedLength('quoted', ' "5"'),
  refusedLength('followed by letters', ' 5a'),
  refusedLength('a word', ' five'),
  refusedLength('with an underscore', ' 0_5'),
  refusedLength('in other digits', ' \xd9\xa5'),
  refusedLength('followed by a vertical tab', ' 5\x0b'),
  refusedLength('followed by a form feed', ' 5\x0c'),
  refusedLength('followed by a NUL', ' 5\0'),
  refusedLength('preceded by a no-break space', ' \xa05'),
  refusedLength('more than a number holds', ' 18446744073709551621'),
  refusedLength('twenty nines', ' 99999999999999999999'),
  refusedLength('folded', '\r\n 5'),
  wire('a length with a leading zero', `${POST}Content-Length: 05\r\n\r\nhello`, '400'),
  wire('two lengths that differ', `${POST}Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello`, '400!'),
  wire('two lengths that are equal', `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, '400!'),
  wire('two lengths in different case', `${POST}content-length: 5\r\nCONTENT-LENGTH: 6\r\n\r\nhello`, '400!'),
  wire('a space before the colon of a length', `${POST}Content-Length : 5\r\n\r\nhello`, '400!'),
  wire('a tab before the colon of a length', `${POST}Content-Length\t: 5\r\n\r\nhello`, '400!'),
  wire('a length without a colon', `${POST}Content-Length 5\r\n\r\nhello`, '400!'),
  takenLength('without a space', 'Content-Length:5'),
  takenLength('in white space', 'Content-Length: \t 5 \t'),
  takenLength('in lower case', 'content-length: 5'),
  takenLength('of HTTP/1.1 beside one with an underscore', 'Content_Length: 9\r\nContent-Length: 5'),
  wire('a length with an underscore alone', `${POST}Content_Length: 5\r\n\r\n`, '200', {
    wrong: (seen) => carries('POST', '')(seen) ?? lacks('content_length', 'content-length')(seen),
  }),
  wire('bytes behind a length of 0', `${POST}Content-Length: 0\r\n\r\nhello`, '200 400|501!'),
  wire('a request behind a length of 0', `${POST}Content-Length: 0\r\n\r\n${HIDDEN}`, '200 402'),
  wire('a request behind a length', `${POST}Content-Length: 5\r\n\r\nhello${HIDDEN}`, '200 402', { wrong: hello }),
  wire('a body longer than its length', `${POST}Content-Length: 3\r\n\r\nhello`, '200 400|501!', {
    wrong: carries('POST', 'hel'),
  }),
  wire('a body shorter than its length', `${POST}Content-Length: 9\r\n\r\nhello`, '', { open: true, broken: true }),
  wire('a length on HTTP/1.0', `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Content-Length: 5\r\n\r\nhello`, '200!', {
    wrong: hello,
  }),
  wire(
    'a length on HTTP/1.0 that stays',
    `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhello`,
    '200',
    { wrong: hello },
  ),
  wire(
    'a request behind HTTP/1.0',
    `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Content-Length: 0\r\n\r\n${HIDDEN}`,
    '200!',
    { behindEnd: true },
  ),
  ...(['GET', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'POST'] as const).flatMap((method) => [
    wire(
      `a ${method} whose body is a request`,
      `${method} /free/@@@@@@@@ HTTP/1.1\r\n${HOST}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
      '200',
      { wrong: carries(method, HIDDEN) },
    ),
    wire(
      `a chunked ${method} that holds a request`,
      `${method} /free/@@@@@@@@ HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
      '200',
      { wrong: carries(method, HIDDEN) },
    ),
    wire(
      `an unpaid ${method} whose body is a free request`,
      `${method} /v1/export HTTP/1.1\r\n${HOST}Content-Length: ${FREE.length + 2}\r\n\r\n${FREE}\r\n`,
      '402',
    ),
  ]),
  wire(
    'an unpaid chunked POST that holds a free request',
    `POST /v1/export HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${(FREE.length + 2).toString(16)}\r\n${FREE}\r\n\r\n0\r\n\r\n`,
    '402?',
  ),
];

const refusedCoding = (name: string, line: string, expected = '400|501!'): WireCase =>
  wire(`a coding that is ${name}`, `${POST}Transfer-Encoding:${line}\r\n\r\n${HIDDEN_CHUNK}`, expected);

const takenCoding = (name: string, line: string): WireCase =>
  wire(`a coding ${name}`, `${POST}${line}\r\n\r\n5\r\nhello\r\n0\r\n\r\n`, '200', { wrong: hello });

const CODINGS: readonly WireCase[] = [
  wire(
    'a length, then a coding',
    `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  wire(
    'a coding, then a length',
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  wire(
    'a length of 0, then a coding',
    `${POST}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  wire(
    'a length, then a coding that is none',
    `${POST}Content-Length: 5\r\nTransfer-Encoding: cow\r\n\r\nhello`,
    '400!',
  ),
  wire(
    'a coding that is none, then a length',
    `${POST}Transfer-Encoding: cow\r\nContent-Length: 5\r\n\r\nhello`,
    '400!',
  ),
  wire(
    'a coding and a length on a GET',
    `${FREE}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  refusedCoding('unknown', ' xchunked'),
  refusedCoding('identity', ' identity'),
  refusedCoding('gzip alone', ' gzip'),
  refusedCoding('not chunked at the end', ' chunked, gzip'),
  refusedCoding('identity at the end', ' chunked, identity'),
  refusedCoding('a list of two chunked', ' chunked, chunked'),
  refusedCoding('chunked on two lines', ' chunked\r\nTransfer-Encoding: chunked'),
  refusedCoding('chunked and identity on two lines', ' chunked\r\nTransfer-Encoding: identity'),
  refusedCoding('a vertical tab before chunked', ' \x0bchunked'),
  refusedCoding('a no-break space before chunked', ' \xa0chunked'),
  refusedCoding('followed by a vertical tab', ' chunked\x0b'),
  refusedCoding('followed by a NUL', ' chunked\0'),
  refusedCoding('followed by a comma', ' chunked,'),
  refusedCoding('followed by a parameter', ' chunked;q=1'),
  refusedCoding('quoted', ' "chunked"'),
  refusedCoding('in two words', ' chun ked'),
  refusedCoding('empty', ''),
  refusedCoding('on the next line', '\r\n chunked'),
  refusedCoding('folded', ' chunked\r\n\t, identity'),
  refusedCoding('gzip before chunked', ' gzip, chunked', '501?'),
  refusedCoding('identity before chunked', ' identity, chunked', '501?'),
  refusedCoding('x before chunked, on two lines', ' x\r\nTransfer-Encoding: chunked', '501?'),
  refusedCoding('a comma before chunked', ' ,chunked', '501?'),
  wire('a space before the colon of a coding', `${POST}Transfer-Encoding : chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire('a coding in a folded header', `${POST}X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire('a coding behind a bare LF', `${POST}X-A: b\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire('a coding behind a bare CR', `${POST}X-A: b\rTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire('a coding with a space in its name', `${POST}Transfer Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire('a coding with a NUL in its name', `${POST}Transfer\0-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, '400!'),
  wire(
    'a coding on HTTP/1.0',
    `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  wire(
    'a coding on HTTP/1.0 that stays',
    `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '400?',
  ),
  wire(
    'Transfer_Encoding with an underscore',
    `${POST}Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello`,
    '200',
    {
      wrong: (seen) => keeps('Transfer_Encoding', undefined)(seen) ?? hello(seen),
    },
  ),
  takenCoding('in capitals', 'TRANSFER-ENCODING: CHUNKED'),
  takenCoding('without a space', 'Transfer-Encoding:chunked'),
  takenCoding('behind white space', 'Transfer-Encoding: \t chunked'),
  // Read as chunked at first, and then not.
  wire('a coding that is followed by a tab', `${POST}Transfer-Encoding: chunked \t\r\n\r\n${HIDDEN_CHUNK}`, '400!', {
    broken: true,
  }),
];

const takenChunks = (name: string, body: string, text = 'hello'): WireCase =>
  wire(name, CHUNKED + body, '200', { wrong: carries('POST', text) });

const CHUNKS: readonly WireCase[] = [
  takenChunks('a chunk size with zeros in front', '0005\r\nhello\r\n0\r\n\r\n'),
  takenChunks('a chunk size in capitals', 'A\r\nhellohello\r\n0\r\n\r\n', 'hellohello'),
  takenChunks('a last chunk of many zeros', '5\r\nhello\r\n000\r\n\r\n'),
  takenChunks(
    'chunks of one byte',
    'h e l l o'
      .split(' ')
      .map((byte) => `1\r\n${byte}\r\n`)
      .join('') + '0\r\n\r\n',
  ),
  takenChunks('no chunk', '0\r\n\r\n', ''),
  takenChunks('a chunk extension', '5;x=y\r\nhello\r\n0\r\n\r\n'),
  takenChunks('many long extensions', `${`1;${'a'.repeat(2000)}\r\nx\r\n`.repeat(20)}0\r\n\r\n`, 'x'.repeat(20)),
  takenChunks('an extension of the last chunk', '5\r\nhello\r\n0;x\r\n\r\n'),
  takenChunks('a quoted extension that looks like a chunk', '5;x="y;z"\r\nhello\r\n0\r\n\r\n'),
  wire('a request behind the last chunk', `${CHUNKED}5\r\nhello\r\n0\r\n\r\n${HIDDEN}`, '200 402', { wrong: hello }),
  wire('bytes behind the last chunk', `${CHUNKED}5\r\nhello\r\n0\r\n\r\nX`, '200 400|501!', { wrong: hello }),
  wire('no last chunk', `${CHUNKED}5\r\nhello\r\n`, '', { open: true, broken: true }),
  wire('a chunk larger than anything', `${CHUNKED}7fffffffffffffff\r\nhello`, '', { open: true, broken: true }),
  ...(
    [
      ['a bare LF in a chunk extension', '5;\nhello\r\n0\r\n\r\n'],
      ['a bare LF in the middle of a chunk extension', '5;a\nb\r\nhello\r\n0\r\n\r\n'],
      ['a bare CR in a chunk extension', '5;a\rb\r\nhello\r\n0\r\n\r\n'],
      ['a NUL in a chunk extension', '5;\0\r\nhello\r\n0\r\n\r\n'],
      ['a bare LF in a quoted extension', '5;a="\n"\r\nhello\r\n0\r\n\r\n'],
      ['an extension without a size', ';x\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size with 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
      ['a signed chunk size', '+5\r\nhello\r\n0\r\n\r\n'],
      ['a negative chunk size', '-5\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size with an underscore', '0_5\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size with a space in front', ' 5\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size with a tab behind', '5\t\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size that is none', 'g\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size with a letter behind', '5g\r\nhello\r\n0\r\n\r\n'],
      ['an empty chunk size', '\r\nhello\r\n0\r\n\r\n'],
      ['a quoted chunk size', '"5"\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size in other digits', '\xd9\xa5\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size that overflows', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
      ['a chunk size of thirty digits', `${'0'.repeat(10)}${'f'.repeat(20)}\r\nhello\r\n0\r\n\r\n`],
      ['a chunk size that ends without CR', '5\nhello\r\n0\r\n\r\n'],
      ['a chunk size that ends without LF', '5\rhello\r\n0\r\n\r\n'],
      ['a chunk longer than it says', '5\r\nhello world\r\n0\r\n\r\n'],
      ['a chunk shorter than it says', '6\r\nhello\r\n0\r\n\r\n'],
      ['a chunk without its line end', '5\r\nhello0\r\n\r\n'],
      ['a chunk that ends without CR', '5\r\nhello\n0\r\n\r\n'],
      ['a chunk that ends without LF', '5\r\nhello\r0\r\n\r\n'],
      ['an extension that is endless', `5;${'a'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`],
      ['a length in the trailers', '0\r\nContent-Length: 5\r\n\r\n'],
      ['a coding in the trailers', '0\r\nTransfer-Encoding: chunked\r\n\r\n'],
      ['a folded trailer', '0\r\nX-A: b\r\n c\r\n\r\n'],
      ['a NUL in a trailer', '0\r\nX-A: b\0\r\n\r\n'],
      ['a trailer without a colon', '0\r\nX-A\r\n\r\n'],
      ['a trailer with a space before its colon', '0\r\nX-A : b\r\n\r\n'],
      ['a trailer that ends without CR', '0\r\nX-A: b\n\r\n'],
      ['a request in the trailers', `0\r\n${HIDDEN}`],
      ['endless trailers', `0\r\n${'X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(1000)}\r\n`],
    ] as const
  ).map(([name, body]) => ({ ...brokenChunks(name, body), answers: [[400, 413, 431]] })),
  wire(
    'a trailer that speaks in our name',
    `${POST}Transfer-Encoding: chunked\r\nTrailer: Tollgate-Charge-Id\r\n\r\n5\r\nhello\r\n0\r\nTollgate-Charge-Id: forged\r\n\r\n`,
    '200',
    { wrong: (seen) => lacks('trailer', 'tollgate-charge-id')(seen) ?? hello(seen) },
  ),
  wire('a trailer that pays', `${PAID}Transfer-Encoding: chunked\r\n\r\n0\r\nPAYMENT-SIGNATURE: YWFh\r\n\r\n`, '402?'),
  wire('a Host in the trailers', `${CHUNKED}5\r\nhello\r\n0\r\nHost: evil.example\r\n\r\n`, '200', {
    wrong: (seen) => keeps('host', 'api.example.com')(seen) ?? hello(seen),
  }),
];

export const FRAMING_CASES: readonly WireCase[] = [...LENGTHS, ...CODINGS, ...CHUNKS];
