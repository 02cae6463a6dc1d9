// Bombs, data only: payment headers and bodies for the registry that are as large as they may be, or one past it, and that
// are made to cost whoever reads them more than whoever sends them.

export type HeaderBomb = {
  readonly name: string;
  /** Header lines, each ended. */
  readonly headers: string;
  /** Statuses that are right. */
  readonly statuses: readonly number[];
};

export type BodyBomb = { readonly name: string; readonly body: Buffer; readonly statuses: readonly number[] };

const HEADER_BYTES = 16 * 1024;
const JSON_BYTES = 12 * 1024;
const BODY_BYTES = 64 * 1024;

/** Fills `text` at its mark `~` so that the whole has so many bytes. */
function fill(text: string, bytes: number, with_ = 'x'): string {
  const room = bytes - Buffer.byteLength(text) + 1;
  return text.replace('~', with_.repeat(Math.max(0, Math.floor(room / Buffer.byteLength(with_)))));
}

function nest(open: string, close: string, inside: string, bytes: number): string {
  const levels = Math.floor((bytes - inside.length) / (open.length + close.length));
  return open.repeat(levels) + inside + close.repeat(levels);
}

function members(bytes: number, name: (index: number) => string): string {
  let text = '{';
  for (let index = 0; text.length < bytes - 60; index++)
    text += `${index === 0 ? '' : ','}${JSON.stringify(name(index))}:0`;
  return `${text}}`;
}

const encode = (json: string): string => Buffer.from(json).toString('base64');
const signed = (value: string): string => `PAYMENT-SIGNATURE: ${value}\r\n`;

/** `paid`: a credential that reads well. */
export function headerBombs(paid: string): readonly HeaderBomb[] {
  const malformed = [400];
  const json = (name: string, text: string): HeaderBomb => ({
    name,
    headers: signed(encode(text)),
    statuses: malformed,
  });
  const decoded = Buffer.from(paid, 'base64').toString();
  const withAmount = (amount: string): string => decoded.replace(/"value":"\d+"/, `"value":${amount}`);
  return [
    { name: '16 KiB of base64', headers: signed('A'.repeat(HEADER_BYTES)), statuses: malformed },
    { name: 'one past 16 KiB', headers: signed('A'.repeat(HEADER_BYTES + 1)), statuses: malformed },
    { name: '30 KiB', headers: signed('A'.repeat(30_000)), statuses: malformed },
    { name: '40 KiB, more than all headers may have', headers: signed('A'.repeat(40_000)), statuses: [431] },
    json('12 KiB of JSON, one long string', fill('{"x402Version":2,"a":"~"}', JSON_BYTES)),
    json('thousands of arrays in each other', nest('[', ']', '', JSON_BYTES)),
    json('thousands of objects in each other', nest('{"a":', '}', '1', JSON_BYTES)),
    json('open brackets only', '['.repeat(JSON_BYTES)),
    json(
      'a thousand members',
      members(JSON_BYTES, (index) => `k${index}`),
    ),
    json(
      'a thousand members of one name',
      members(JSON_BYTES, () => 'x402Version'),
    ),
    json(
      'members named __proto__',
      members(JSON_BYTES, (index) => (index % 2 === 0 ? '__proto__' : 'constructor')),
    ),
    json(
      'members like array indices',
      members(JSON_BYTES, (index) => String(index * 7919)),
    ),
    json('thousands of items', `[${'0,'.repeat(JSON_BYTES / 2 - 2)}0]`),
    json('a number of 12,000 digits', withAmount('9'.repeat(JSON_BYTES - decoded.length - 10))),
    json('a number of 12,000 digits as text', withAmount(`"${'9'.repeat(JSON_BYTES - decoded.length - 10)}"`)),
    json('a huge exponent', withAmount('1e999999999')),
    json('a fraction of 11,000 digits', withAmount(`0.${'1'.repeat(11_000)}`)),
    json('a hex number', withAmount('"0xffffffffffffffffffff"')),
    json('escapes all over', fill('{"x402Version":2,"a":"~"}', JSON_BYTES, '\\u0041')),
    json('halves of characters', fill('{"x402Version":2,"a":"~"}', JSON_BYTES, '\\ud800')),
    json('characters of four bytes', fill('{"x402Version":2,"a":"~"}', JSON_BYTES, '\u{1f4b8}')),
    json('combining marks', fill('{"x402Version":2,"a":"e~"}', JSON_BYTES, '\u0301')),
    json('whitespace', fill('{"x402Version":2,~"a":1}', JSON_BYTES, ' ')),
    {
      name: 'bytes that are no UTF-8',
      headers: signed(Buffer.alloc(JSON_BYTES, 0xff).toString('base64')),
      statuses: malformed,
    },
    { name: 'zeros', headers: signed(Buffer.alloc(JSON_BYTES).toString('base64')), statuses: malformed },
    { name: 'base64url', headers: signed('-_'.repeat(4000)), statuses: malformed },
    { name: 'base64 without padding', headers: signed(`${encode('{}')}A`), statuses: malformed },
    { name: 'base64 with padding all over', headers: signed('=A=='.repeat(4000)), statuses: malformed },
    { name: 'base64 with spaces', headers: signed('AAAA '.repeat(3000).trim()), statuses: malformed },
    { name: 'a space-like byte', headers: signed('AAAA\u00a0AAA'), statuses: [400] },
    { name: 'nothing', headers: signed(''), statuses: [400] },
    { name: 'two', headers: signed(paid) + signed(paid), statuses: malformed },
    { name: 'two versions', headers: `${signed(paid)}X-PAYMENT: ${paid}\r\n`, statuses: malformed },
    { name: 'a hundred', headers: signed('AAAA').repeat(100), statuses: malformed },
    { name: 'a thousand other headers', headers: 'a: b\r\n'.repeat(900) + signed('AAAA'), statuses: [400, 431] },
    { name: 'a credential of v1', headers: `X-PAYMENT: ${'A'.repeat(HEADER_BYTES)}\r\n`, statuses: [400, 402] },
    {
      name: 'a signature of 4,000 bytes',
      headers: signed(encode(decoded.replace(/"signature":"0x\w+"/, `"signature":"0x${'ab'.repeat(4000)}"`))),
      statuses: [400, 402],
    },
    {
      name: 'a signature of 4,001 bytes',
      headers: signed(encode(decoded.replace(/"signature":"0x\w+"/, `"signature":"0x${'ab'.repeat(4001)}"`))),
      statuses: malformed,
    },
    { name: 'a customer id of 16 KiB', headers: `X-Customer-Id: ${'c'.repeat(HEADER_BYTES)}\r\n`, statuses: [400] },
  ];
}

export function bodyBombs(): readonly BodyBomb[] {
  const good = '"route_pattern":"/bomb","method":"GET","amount":"1"';
  const bomb = (name: string, text: string | Buffer, ...statuses: number[]): BodyBomb => ({
    name,
    body: Buffer.from(text),
    statuses,
  });
  return [
    bomb('64 KiB with a member too many', fill(`{${good},"extra":"~"}`, BODY_BYTES), 200, 201),
    bomb('one byte past 64 KiB', fill(`{${good},"extra":"~"}`, BODY_BYTES + 1), 413),
    bomb('300 KiB', 'x'.repeat(300_000), 413),
    bomb('30,000 arrays in each other', nest('[', ']', '', BODY_BYTES), 422),
    bomb('objects in each other', nest('{"a":', '}', '1', BODY_BYTES), 422),
    bomb(
      'objects in each other, as the pattern',
      `{"route_pattern":${nest('{"a":', '}', '1', 60_000)},"method":"GET","amount":"1"}`,
      422,
    ),
    bomb('open brackets only', '['.repeat(BODY_BYTES), 400),
    bomb(
      'thousands of members',
      members(BODY_BYTES, (index) => `k${index}`),
      422,
    ),
    bomb(
      'one member thousands of times',
      members(BODY_BYTES, () => 'amount'),
      422,
    ),
    bomb(
      'members like array indices',
      members(BODY_BYTES, (index) => String(index * 7919)),
      422,
    ),
    bomb(
      '__proto__ thousands of times',
      members(BODY_BYTES, () => '__proto__'),
      422,
    ),
    bomb('a pattern of 60,000 segments', `{"route_pattern":"${'/a'.repeat(30_000)}","method":"GET","amount":"1"}`, 422),
    bomb(
      'a pattern of 60,000 escapes',
      `{"route_pattern":"/${'%25'.repeat(20_000)}","method":"GET","amount":"1"}`,
      422,
    ),
    bomb('a pattern of parameters', `{"route_pattern":"${'/:a'.repeat(170)}","method":"GET","amount":"1"}`, 422),
    bomb('a pattern of open brackets', `{"route_pattern":"/${'('.repeat(500)}","method":"GET","amount":"1"}`, 422),
    bomb('an amount of 60,000 digits', `{"route_pattern":"/b","method":"GET","amount":"${'9'.repeat(60_000)}"}`, 422),
    bomb(
      'an amount of 60,000 digits, as a number',
      `{"route_pattern":"/b","method":"GET","amount":${'9'.repeat(60_000)}}`,
      422,
    ),
    bomb('a huge exponent', '{"route_pattern":"/b","method":"GET","amount":1e999999}', 422),
    bomb('a name of 60,000 characters', fill(`{${good},"name":"~"}`, 60_000, '\u00e9'), 422),
    bomb('a name of ligatures and marks', fill(`{${good},"name":"~"}`, 60_000, '\ufdfa\u0301'), 422),
    bomb(
      'a pattern that grows when it is normalised',
      `{"route_pattern":"/${'\ufdfa'.repeat(500)}","method":"GET","amount":"1"}`,
      422,
    ),
    bomb('escapes all over', fill(`{${good},"description":"~"}`, BODY_BYTES, '\\u0041'), 422),
    bomb(
      'halves of characters',
      fill(`{"route_pattern":"/half","method":"GET","amount":"1","description":"~"}`, 5000, '\\ud800'),
      200,
      201,
    ),
    bomb('bytes that are no UTF-8', Buffer.alloc(BODY_BYTES, 0xff), 400),
    bomb('UTF-16', Buffer.from(`{${good}}`, 'utf16le'), 400),
    bomb('whitespace', fill(`{${good}~}`, BODY_BYTES, ' '), 200, 201),
  ];
}
