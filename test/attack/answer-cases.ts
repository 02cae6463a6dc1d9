// What an upstream that is broken, old, hostile or merely odd puts on the wire, and what has to come of it at the client:
// data only, latin1. `@@@@@@@@` stands for the eight characters of the token that the client asked with. Bytes that
// belong to nobody say `stray`. answers.test.ts runs the table over both ways to the upstream, whole and cut into pieces.

export type AnswerCase = {
  readonly name: string;
  readonly answer: string;
  /** Comes in one packet with the end of `answer`, and is nobody's. The connection must never be used again. */
  readonly stray?: string;
  /** What the upstream does when it has written this. */
  readonly end?: 'fin' | 'rst';
  /** GET where absent. */
  readonly method?: 'HEAD';
  readonly comes:
    | {
        /** The client gets it, all of it. */
        readonly to: 'whole';
        readonly status: number;
        readonly body: string;
        /** Statuses of the 1xx in front of it that cross. */
        readonly before?: readonly number[];
        /** What else has to be in the head that the client gets. */
        readonly headers?: Readonly<Record<string, string>>;
      }
    /** 502, nothing of it. */
    | { readonly to: 'refused' }
    /** 502, or it breaks off visibly: it never looks whole. */
    | { readonly to: 'broken' };
};

/** Headers of the upstream's answer at most. */
export const ANSWER_HEAD_BYTES = 64 * 1024;

const T = '@@@@@@@@';
const OK = 'HTTP/1.1 200 OK\r\n';
const LENGTH = 'Content-Length: 8\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const STRAY = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray';

type Whole = Extract<AnswerCase['comes'], { to: 'whole' }>;

const whole = (
  name: string,
  answer: string,
  { end, method, ...comes }: Partial<Whole> & Pick<AnswerCase, 'end' | 'method'> = {},
): AnswerCase => ({
  name,
  answer,
  ...(end === undefined ? {} : { end }),
  ...(method === undefined ? {} : { method }),
  comes: { to: 'whole', status: 200, body: T, ...comes },
});

const stray = (
  name: string,
  answer: string,
  more: string,
  { method, ...comes }: Partial<Whole> & Pick<AnswerCase, 'method'> = {},
): AnswerCase => ({ ...whole(name, answer, { ...(method === undefined ? {} : { method }), ...comes }), stray: more });

const refused = (name: string, answer: string, end?: 'fin'): AnswerCase => ({
  name,
  answer,
  ...(end === undefined ? {} : { end }),
  comes: { to: 'refused' },
});

const broken = (name: string, answer: string, end?: 'fin' | 'rst'): AnswerCase => ({
  name,
  answer,
  ...(end === undefined ? {} : { end }),
  comes: { to: 'broken' },
});

/** A head of exactly `size` bytes, status line and empty line included. */
export function headOf(size: number): string {
  const start = `${OK}${LENGTH}X-Long: `;
  return `${start}${'a'.repeat(size - start.length - 4)}\r\n\r\n`;
}

const GOOD: readonly AnswerCase[] = [
  whole('a length', `${OK}${LENGTH}\r\n${T}`),
  whole('a length of 0', `${OK}Content-Length: 0\r\n\r\n`, { body: '' }),
  whole('a length with leading zeros', `${OK}Content-Length: 008\r\n\r\n${T}`),
  whole('names in lower case, much white space', `${OK}content-length:\t  8 \t\r\nx-a:b\r\n\r\n${T}`, {
    headers: { 'x-a': 'b' },
  }),
  whole('chunks', `${CHUNKED}3\r\n@@@\r\n5\r\n@@@@@\r\n0\r\n\r\n`),
  whole('chunks of one byte', `${CHUNKED}${'1\r\n@\r\n'.repeat(8)}0\r\n\r\n`),
  whole('no chunk', `${CHUNKED}0\r\n\r\n`, { body: '' }),
  whole('chunk sizes with zeros in front and capitals', `${CHUNKED}0008\r\n${T}\r\n000\r\n\r\n`),
  whole('a chunk of 26 bytes, in capitals', `${CHUNKED}1A\r\n${T}abcdefghijklmnopqr\r\n0\r\n\r\n`, {
    body: `${T}abcdefghijklmnopqr`,
  }),
  whole('a chunk extension', `${CHUNKED}8;a=b;c="d"\r\n${T}\r\n0;e\r\n\r\n`),
  whole('a trailer, which does not cross', `${CHUNKED}8\r\n${T}\r\n0\r\nX-Stray: stray\r\n\r\n`),
  whole('a coding in capitals', `${OK}Transfer-Encoding: CHUNKED\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`),
  whole(
    'chunks and Connection: close',
    `${OK}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`,
  ),
  whole('a length and Connection: close', `${OK}Connection: close\r\n${LENGTH}\r\n${T}`, { end: 'fin' }),
  whole('no reason', `HTTP/1.1 200\r\n${LENGTH}\r\n${T}`),
  whole('an empty reason', `HTTP/1.1 200 \r\n${LENGTH}\r\n${T}`),
  whole('a reason with bytes from 0x80', `HTTP/1.1 200 tr\xe8s bien\r\n${LENGTH}\r\n${T}`),
  whole('a status that nobody knows', `HTTP/1.1 599 Odd\r\n${LENGTH}\r\n${T}`, { status: 599 }),
  whole('a header without a value', `${OK}X-Empty:\r\n${LENGTH}\r\n${T}`, { headers: { 'x-empty': '' } }),
  whole('a value with bytes from 0x80 and a tab', `${OK}X-A: caf\xe9\t\xff\r\n${LENGTH}\r\n${T}`, {
    headers: { 'x-a': 'caf\xe9\t\xff' },
  }),
  whole('names with odd characters', `${OK}X_A: 1\r\nX.B!#$%&'*+^|~: 2\r\n${LENGTH}\r\n${T}`, {
    headers: { x_a: '1', "x.b!#$%&'*+^|~": '2' },
  }),
  whole('a header called __proto__', `${OK}__proto__: x\r\nconstructor: y\r\n${LENGTH}\r\n${T}`),
  whole('a thousand headers', `${OK}${'X-Many: 1\r\n'.repeat(1000)}${LENGTH}\r\n${T}`),
  whole('a 100 in front', `HTTP/1.1 100 Continue\r\n\r\n${OK}${LENGTH}\r\n${T}`),
  whole('two 100 in front', `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)}${OK}${LENGTH}\r\n${T}`),
  whole('a 100 with headers in front', `HTTP/1.1 100 Continue\r\nX-A: stray\r\n\r\n${OK}${LENGTH}\r\n${T}`),
  whole('a 102 in front', `HTTP/1.1 102 Processing\r\n\r\n${OK}${LENGTH}\r\n${T}`),
  whole('a 103 in front', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}${LENGTH}\r\n${T}`, { before: [103] }),
  whole(
    'a 103, a 100 and a 199 in front',
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-A: stray\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n${OK}${LENGTH}\r\n${T}`,
    { before: [103] },
  ),
  whole('204', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '' }),
  whole(
    '304 with the length of what it is not',
    'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 8\r\n\r\n',
    {
      status: 304,
      body: '',
    },
  ),
  whole('304 with a coding', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n', {
    status: 304,
    body: '',
  }),
  whole('205 with a length of 0', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n', { status: 205, body: '' }),
  whole('HEAD with a length', `${OK}${LENGTH}\r\n`, { method: 'HEAD', body: '', headers: { 'content-length': '8' } }),
  whole('HEAD with a coding', CHUNKED, { method: 'HEAD', body: '' }),
  whole('HEAD without any framing', `${OK}\r\n`, { method: 'HEAD', body: '' }),
  whole('a body to the end of the connection', `${OK}\r\n${T}`, { end: 'fin' }),
  whole('a body to the end, announced', `${OK}Connection: close\r\n\r\n${T}`, { end: 'fin' }),
  whole('an empty body to the end', `${OK}Connection: close\r\n\r\n`, { end: 'fin', body: '' }),
  whole('HTTP/1.0 with a body to the end', `HTTP/1.0 200 OK\r\n\r\n${T}`, { end: 'fin' }),
  whole('HTTP/1.0 with a length', `HTTP/1.0 200 OK\r\n${LENGTH}\r\n${T}`, { end: 'fin' }),
  whole('HTTP/1.0 with a length that stays open', `HTTP/1.0 200 OK\r\n${LENGTH}\r\n${T}`),
  whole('HTTP/1.0 that announces keep-alive', `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n${LENGTH}\r\n${T}`),
  whole(
    'HTTP/1.0 that announces keep-alive without a length',
    `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n${T}`,
    {
      end: 'fin',
    },
  ),
  whole('a redirect', `HTTP/1.1 302 Found\r\nLocation: /else\r\n${LENGTH}\r\n${T}`, {
    status: 302,
    headers: { location: '/else' },
  }),
  whole(
    'a list of Connection options',
    `${OK}Connection: keep-alive, x-a\r\nX-A: stray\r\nKeep-Alive: timeout=5\r\n${LENGTH}\r\n${T}`,
  ),
];

// Nobody asked for what comes after these; it belongs to nobody.
const STRAYS: readonly AnswerCase[] = [
  stray('two answers in one packet', `${OK}${LENGTH}\r\n${T}`, STRAY),
  stray('three answers in one packet', `${OK}${LENGTH}\r\n${T}`, STRAY + STRAY),
  stray('two chunked answers', `${CHUNKED}8\r\n${T}\r\n0\r\n\r\n`, `${CHUNKED}5\r\nstray\r\n0\r\n\r\n`),
  stray('a body longer than its length', `${OK}${LENGTH}\r\n${T}`, 'stray'),
  stray('a body behind a length of 0', `${OK}Content-Length: 0\r\n\r\n`, 'stray', { body: '' }),
  stray('bytes behind the last chunk', `${CHUNKED}8\r\n${T}\r\n0\r\n\r\n`, 'stray'),
  stray('a chunk behind the last chunk', `${CHUNKED}8\r\n${T}\r\n0\r\n\r\n`, '5\r\nstray\r\n0\r\n\r\n'),
  stray('the beginning of an answer', `${OK}${LENGTH}\r\n${T}`, 'HTTP/1.1 2'),
  stray('one letter', `${OK}${LENGTH}\r\n${T}`, 'H'),
  stray('a NUL', `${OK}${LENGTH}\r\n${T}`, '\0'),
  stray('a 100 behind the answer', `${OK}${LENGTH}\r\n${T}`, 'HTTP/1.1 100 Continue\r\n\r\n'),
  stray('a 103 behind the answer', `${OK}${LENGTH}\r\n${T}`, 'HTTP/1.1 103 Early Hints\r\nLink: </stray>\r\n\r\n'),
  stray(
    'a 101 behind the answer',
    `${OK}${LENGTH}\r\n${T}`,
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nstray',
  ),
  stray('204 with a length and a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'stray', {
    status: 204,
    body: '',
  }),
  stray('204 with chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', '5\r\nstray\r\n0\r\n\r\n', {
    status: 204,
    body: '',
  }),
  stray('204 and then an answer', 'HTTP/1.1 204 No Content\r\n\r\n', STRAY, { status: 204, body: '' }),
  stray('304 with a length and a body', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'stray', {
    status: 304,
    body: '',
  }),
  stray(
    '304 with chunks',
    'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n',
    '5\r\nstray\r\n0\r\n\r\n',
    { status: 304, body: '' },
  ),
  stray('HEAD with a body', `${OK}Content-Length: 5\r\n\r\n`, 'stray', { method: 'HEAD', body: '' }),
  stray('HEAD with chunks', CHUNKED, '5\r\nstray\r\n0\r\n\r\n', { method: 'HEAD', body: '' }),
  stray('HEAD with a body that is an answer', `${OK}Content-Length: ${STRAY.length}\r\n\r\n`, STRAY, {
    method: 'HEAD',
    body: '',
  }),
  stray('HEAD without framing, with a body', `${OK}\r\n`, 'stray', { method: 'HEAD', body: '' }),
];

const REFUSED: readonly AnswerCase[] = [
  refused('another protocol', 'SSH-2.0-OpenSSH_9.9\r\n'),
  refused('bytes without sense', '\xff'.repeat(200)),
  refused('zeros', '\0'.repeat(200)),
  refused('TLS', '\x15\x03\x01\x00\x02\x02\x46'),
  refused('a page without a head', '<html>stray</html>\r\n', 'fin'),
  refused('nothing at all, and the end', '', 'fin'),
  refused('line ends, and the end', '\r\n\r\n\r\n', 'fin'),
  refused('half a status line, and the end', 'HTTP/1.1 2', 'fin'),
  refused('half a head, and the end', `${OK}Content-Le`, 'fin'),
  refused('a head without its empty line, and the end', `${OK}${LENGTH}`, 'fin'),
  refused('a letter in front', `x${OK}${LENGTH}\r\n${T}`),
  refused('a space in front', ` ${OK}${LENGTH}\r\n${T}`),
  refused('HTTP/2.0', `HTTP/2.0 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('HTTP/0.9', `HTTP/0.9 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('HTTP/1.2', `HTTP/1.2 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('HTTP/11.1', `HTTP/11.1 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('RTSP', `RTSP/1.0 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('ICY', `ICY 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('http in lower case', `http/1.1 200 OK\r\n${LENGTH}\r\n${T}`),
  refused('a status of two digits', `HTTP/1.1 20 OK\r\n${LENGTH}\r\n${T}`),
  refused('a status of four digits', `HTTP/1.1 2000 OK\r\n${LENGTH}\r\n${T}`),
  refused('a status of letters', `HTTP/1.1 abc OK\r\n${LENGTH}\r\n${T}`),
  refused('a signed status', `HTTP/1.1 +20 OK\r\n${LENGTH}\r\n${T}`),
  refused('no status', `HTTP/1.1\r\n${LENGTH}\r\n${T}`),
  refused('status 000', `HTTP/1.1 000 No\r\n${LENGTH}\r\n${T}`),
  refused('status 099', `HTTP/1.1 099 No\r\n${LENGTH}\r\n${T}`),
  refused('a NUL in the reason', `HTTP/1.1 200 O\0K\r\n${LENGTH}\r\n${T}`),
  refused('a bare CR in the reason', `HTTP/1.1 200 O\rK\r\n${LENGTH}\r\n${T}`),
  refused('a length, then a coding', `${OK}${LENGTH}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
  refused('a coding, then a length', `${OK}Transfer-Encoding: chunked\r\n${LENGTH}\r\n0\r\n\r\n`),
  refused('two lengths that differ', `${OK}${LENGTH}Content-Length: 9\r\n\r\n${T}`),
  refused('two lengths that are equal', `${OK}${LENGTH}${LENGTH}\r\n${T}`),
  refused('a list of lengths', `${OK}Content-Length: 8, 8\r\n\r\n${T}`),
  refused('a signed length', `${OK}Content-Length: +8\r\n\r\n${T}`),
  refused('a negative length', `${OK}Content-Length: -8\r\n\r\n${T}`),
  refused('a hexadecimal length', `${OK}Content-Length: 0x8\r\n\r\n${T}`),
  refused('an empty length', `${OK}Content-Length:\r\n\r\n${T}`),
  refused('a length with a space in it', `${OK}Content-Length: 8 8\r\n\r\n${T}`),
  refused('a length with letters', `${OK}Content-Length: 8a\r\n\r\n${T}`),
  refused('a length that overflows', `${OK}Content-Length: 99999999999999999999\r\n\r\n${T}`),
  refused('the coding gzip', `${OK}Transfer-Encoding: gzip\r\n\r\n${T}`, 'fin'),
  refused('the coding identity', `${OK}Transfer-Encoding: identity\r\n\r\n${T}`, 'fin'),
  refused('gzip before chunked', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`),
  refused(
    'gzip before chunked, on two lines',
    `${OK}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`,
  ),
  refused('gzip after chunked', `${OK}Transfer-Encoding: chunked, gzip\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`, 'fin'),
  refused(
    'chunked twice',
    `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`,
    'fin',
  ),
  refused('xchunked', `${OK}Transfer-Encoding: xchunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`, 'fin'),
  refused('chunked with a parameter', `${OK}Transfer-Encoding: chunked;x\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`, 'fin'),
  refused('an empty coding', `${OK}Transfer-Encoding:\r\n\r\n${T}`, 'fin'),
  refused(
    'a coding on HTTP/1.0',
    `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n${T}\r\n0\r\n\r\n`,
    'fin',
  ),
  refused('line ends without CR', `HTTP/1.1 200 OK\nContent-Length: 8\n\n${T}`),
  refused('a header that ends without CR', `${OK}X-A: b\n${LENGTH}\r\n${T}`),
  refused('a status line that ends without CR', `HTTP/1.1 200 OK\n${LENGTH}\r\n${T}`),
  refused('an empty line without CR', `${OK}${LENGTH}\n${T}`),
  refused('line ends without LF', `HTTP/1.1 200 OK\rContent-Length: 8\r\r${T}`, 'fin'),
  refused('a bare CR in a value', `${OK}X-A: b\rX-B: c\r\n${LENGTH}\r\n${T}`),
  refused('a NUL in a value', `${OK}X-A: b\0c\r\n${LENGTH}\r\n${T}`),
  refused('a DEL in a value', `${OK}X-A: b\x7fc\r\n${LENGTH}\r\n${T}`),
  refused('a NUL in a name', `${OK}X\0A: b\r\n${LENGTH}\r\n${T}`),
  refused('a space in a name', `${OK}X A: b\r\n${LENGTH}\r\n${T}`),
  refused('a space before the colon', `${OK}Content-Length : 8\r\n\r\n${T}`),
  refused('a tab before the colon', `${OK}Content-Length\t: 8\r\n\r\n${T}`),
  refused('a byte from 0x80 in a name', `${OK}X-\xe9: b\r\n${LENGTH}\r\n${T}`),
  refused('no colon', `${OK}X-A\r\n${LENGTH}\r\n${T}`),
  refused('an empty name', `${OK}: b\r\n${LENGTH}\r\n${T}`),
  refused('a folded header', `${OK}X-A: b\r\n c\r\n${LENGTH}\r\n${T}`),
  refused('a folded length', `${OK}Content-Length:\r\n 8\r\n\r\n${T}`),
  refused('a first header that is folded', `${OK} X-A: b\r\n${LENGTH}\r\n${T}`),
  refused('an endless status line', `HTTP/1.1 200 ${'a'.repeat(ANSWER_HEAD_BYTES + 4096)}`),
  refused('an endless header', `${OK}X-A: ${'a'.repeat(ANSWER_HEAD_BYTES + 4096)}`),
  refused('endless headers', `${OK}${'X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(2000)}`),
  refused('a 103 with an endless header', `HTTP/1.1 103 Early Hints\r\nLink: ${'a'.repeat(ANSWER_HEAD_BYTES + 4096)}`),
  refused(
    'a 101 that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nstray',
  ),
  refused('a 101 without an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\nstray'),
  refused(
    'a 100, then a 101 that nobody asked for',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nstray',
  ),
  refused('a 100, then garbage', 'HTTP/1.1 100 Continue\r\n\r\nstray stray\r\n\r\n'),
  refused('a 100, and the end', 'HTTP/1.1 100 Continue\r\n\r\n', 'fin'),
  refused('a 100 with a body', `HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nstray${OK}${LENGTH}\r\n${T}`),
];

const CUT_AT: readonly (readonly [string, string])[] = [
  ['in a body with a length', `${OK}${LENGTH}\r\n@@@@`],
  ['before a body with a length', `${OK}${LENGTH}\r\n`],
  ['in a chunk size', `${CHUNKED}3\r\n@@@\r\n5`],
  ['behind a chunk size', `${CHUNKED}3\r\n@@@\r\n5\r\n`],
  ['in a chunk', `${CHUNKED}8\r\n@@@`],
  ['behind a chunk, before its line end', `${CHUNKED}8\r\n${T}`],
  ['before the last chunk', `${CHUNKED}8\r\n${T}\r\n`],
  ['in the last chunk', `${CHUNKED}8\r\n${T}\r\n0`],
  ['behind the last chunk', `${CHUNKED}8\r\n${T}\r\n0\r\n`],
  ['in the last line end', `${CHUNKED}8\r\n${T}\r\n0\r\n\r`],
  ['in the trailers', `${CHUNKED}8\r\n${T}\r\n0\r\nX-A: b\r\n`],
  ['before any chunk', CHUNKED],
];

const BROKEN: readonly AnswerCase[] = [
  ...CUT_AT.flatMap(([where, answer]) => [
    broken(`the end ${where}`, answer, 'fin'),
    broken(`a reset ${where}`, answer, 'rst'),
  ]),
  broken('a reset in a body to the end of the connection', `${OK}\r\n${T}`, 'rst'),
  broken('a reset in the body of an HTTP/1.0', `HTTP/1.0 200 OK\r\n\r\n${T}`, 'rst'),
  ...(
    [
      ['with 0x', `0x8\r\n${T}\r\n`],
      ['with a plus', `+8\r\n${T}\r\n`],
      ['with a minus', `-8\r\n${T}\r\n`],
      ['with a space in front', ` 8\r\n${T}\r\n`],
      ['with a tab in front', `\t8\r\n${T}\r\n`],
      ['with an underscore', `0_8\r\n${T}\r\n`],
      ['that is none', `g\r\n${T}\r\n`],
      ['that is empty', `\r\n${T}\r\n`],
      ['with a quote', `"8"\r\n${T}\r\n`],
      ['that overflows', `10000000000000008\r\n${T}\r\n`],
      ['with a NUL', `8\0\r\n${T}\r\n`],
      ['that ends without CR', `8\n${T}\r\n`],
      ['that ends without LF', `8\r${T}\r\n`],
      ['that is too small', `7\r\n${T}\r\n`],
      ['that is too large', `9\r\n${T}\r\n`],
      ['and a chunk without its line end', `8\r\n${T}`],
      ['and a chunk that ends without CR', `8\r\n${T}\n`],
      ['and a chunk that ends without LF', `8\r\n${T}\r`],
      ['and an extension with a bare LF', `8;a\nb\r\n${T}\r\n`],
      ['and an extension with a bare CR', `8;a\rb\r\n${T}\r\n`],
      ['and an extension with a NUL', `8;a\0b\r\n${T}\r\n`],
      ['and an endless extension', `8;${'a'.repeat(128 * 1024)}\r\n${T}\r\n`],
    ] as const
  ).map(([what, chunk]) => broken(`a chunk size ${what}`, `${CHUNKED}${chunk}0\r\n\r\n`)),
  broken('a length in the trailers', `${CHUNKED}8\r\n${T}\r\n0\r\nContent-Length: 8\r\n\r\n`),
  broken('a coding in the trailers', `${CHUNKED}8\r\n${T}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n`),
  broken('a folded trailer', `${CHUNKED}8\r\n${T}\r\n0\r\nX-A: b\r\n c\r\n\r\n`),
  broken('a NUL in a trailer', `${CHUNKED}8\r\n${T}\r\n0\r\nX-A: b\0c\r\n\r\n`),
  broken('a trailer without a colon', `${CHUNKED}8\r\n${T}\r\n0\r\nX-A\r\n\r\n`),
  broken('a trailer that ends without CR', `${CHUNKED}8\r\n${T}\r\n0\r\nX-A: b\n\r\n`),
  broken(
    'endless trailers',
    `${CHUNKED}8\r\n${T}\r\n0\r\n${'X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(3000)}`,
  ),
];

export const ANSWER_CASES: readonly AnswerCase[] = [...GOOD, ...STRAYS, ...REFUSED, ...BROKEN];
