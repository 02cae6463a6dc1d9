// Numbers of units in bodies, read as the bodies stream: the scanner agrees with JSON.parse about every document, however it
// is cut, and takes nothing for a number of units that only looks like one.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventNumber } from '../../../src/domain/selling/meter/event-number.ts';
import { DEEPEST, JsonNumber } from '../../../src/domain/selling/meter/json-number.ts';
import type { MeterReading, MeterSource } from '../../../src/domain/selling/meter/meter.ts';
import { readUsage, type UsageReader } from '../../../src/domain/selling/meter/usage.ts';

const ABSENT: MeterReading = { kind: 'absent' };
const MALFORMED: MeterReading = { kind: 'malformed' };
const TWICE: MeterReading = { kind: 'twice' };
const read = (text: string): MeterReading => ({ kind: 'read', text });

/** Feeds `text` cut at `cuts`; each piece is written over afterwards, as the memory of a connection is. */
function feed(reader: UsageReader, text: string | Buffer, cuts: readonly number[] = []): MeterReading {
  const bytes = Buffer.from(text);
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < edges.length; i++) {
    const piece = Buffer.from(bytes.subarray(edges[i - 1], edges[i]));
    reader.push(piece);
    piece.fill('x');
  }
  return reader.end();
}

const inJson = (text: string | Buffer, path: string, cuts?: readonly number[]): MeterReading =>
  feed(new JsonNumber(path.split('.')), text, cuts);
const inEvents = (text: string, path: string, tail = 16_384, cuts?: readonly number[]): MeterReading =>
  feed(new EventNumber(path.split('.'), tail), text, cuts);

/** What JSON.parse finds at `path`; undefined: the text is no document. */
function parsed(text: string, path: readonly string[]): { readonly value: unknown } | undefined {
  try {
    let value: unknown = JSON.parse(text);
    for (const name of path) {
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      value = isObject && Object.hasOwn(value as object, name) ? (value as Record<string, unknown>)[name] : undefined;
    }
    return { value };
  } catch {
    return undefined;
  }
}

describe('a JSON body', () => {
  it.each([
    ['{"usage":{"total_tokens":42}}', read('42')],
    [' { "usage" : { "a" : [1,{"total_tokens":1}] , "total_tokens" :\t42.50 } , "b" : "}" }\r\n', read('42.50')],
    ['{"usage":{"total_tokens":1.5E+2}}', read('1.5E+2')],
    ['\ufeff{"usage":{"total_tokens":0}}', read('0')],
    ['{"us\\u0061ge":{"total\\u005Ftokens":7}}', read('7')],
    ['[{"usage":{"total_tokens":7}}]', ABSENT],
    ['{"usage":[{"total_tokens":7}]}', ABSENT],
    ['{"usage":null}', ABSENT],
    ['{"usage":{"total_tokens":null}}', ABSENT],
    ['{"total_tokens":7}', ABSENT],
    ['{"a":{"usage":{"total_tokens":7}}}', ABSENT],
    ['{"usage":{"total_tokens":"7"}}', MALFORMED],
    ['{"usage":{"total_tokens":true}}', MALFORMED],
    ['{"usage":{"total_tokens":[7]}}', MALFORMED],
    ['{"usage":{"total_tokens":{"total_tokens":7}}}', MALFORMED],
    [`{"usage":{"total_tokens":${'1'.repeat(200)}}}`, MALFORMED],
    ['{"usage":{"total_tokens":7}', MALFORMED],
    ['{"usage":{"total_tokens":7}} {"usage":{"total_tokens":8}}', MALFORMED],
    ['{"usage":{"total_tokens":07}}', MALFORMED],
    ['{"usage":{"total_tokens":7,}}', MALFORMED],
    ['', MALFORMED],
    ['{"usage":{"total_tokens":7,"total_tokens":8}}', TWICE],
    ['{"usage":{"total_tokens":7,"total_token\\u0073":7}}', TWICE],
    ['{"usage":{"total_tokens":7},"usage":{}}', TWICE],
    ['{"usage":1,"usage":{"total_tokens":7}}', TWICE],
    ['{"a":{"usage":1,"usage":1},"usage":{"total_tokens":7}}', read('7')],
  ])('behaviour: the number at usage.total_tokens in %s', (text, expected) => {
    expect(inJson(text, 'usage.total_tokens')).toEqual(expected);
    expect(
      inJson(
        text,
        'usage.total_tokens',
        Array.from({ length: Buffer.byteLength(text) }, (_, index) => index),
      ),
    ).toEqual(expected);
  });

  it.each([
    [
      '{"choices":[{"text":"\\n\\n{\\"usage\\":{\\"total_tokens\\":0}}\\n"}],"usage":{"total_tokens":900}}',
      read('900'),
    ],
    ['{"text":"\\"usage\\":{\\"total_tokens\\":0}","usage":{"total_tokens":900}}', read('900')],
    ['{"text":"ends with \\\\","usage":{"total_tokens":900}}', read('900')],
    ['{"text":"\\",\\"usage\\":{\\"total_tokens\\":0},\\"a\\":\\""}', ABSENT],
    ['{"usage":{"text":"total_tokens\\":0","total_tokens":900}}', read('900')],
  ])('attack: a prompt that prints a usage line into a string is not read as one: %s', (text, expected) => {
    expect(inJson(text, 'usage.total_tokens')).toEqual(expected);
  });

  it('behaviour: for random documents, cut anywhere, what is read is what JSON.parse finds', () => {
    const names = fc.constantFrom('a', 'a', 'b', 'b', 'é', '"', '', 'a.b', '\u0000', 'aa');
    const document = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.string(), fc.constant(null)),
        fc.dictionary(names, tie('value')),
        fc.array(tie('value'), { maxLength: 3 }),
      ),
    })).value;
    const path = fc.array(fc.constantFrom('a', 'b', 'é'), { minLength: 1, maxLength: 2 });
    const spaces = fc.constantFrom(undefined, 1, '\t', '\r\n ');
    let found = 0;
    fc.assert(
      fc.property(
        fc.oneof(document, fc.dictionary(names, document)),
        path,
        spaces,
        fc.array(fc.nat(), { maxLength: 6 }),
        (value, names_, space, cuts) => {
          // JSON.stringify takes any text for a space, of which spaces alone leave a document.
          const text = JSON.stringify(value, null, space);
          const reading = feed(new JsonNumber(names_), text, cuts);
          const there = parsed(text, names_)?.value;
          if (typeof there === 'number') {
            found++;
            expect(reading.kind === 'read' && Number(reading.text)).toBe(there);
          } else expect(reading).toEqual(there === undefined || there === null ? ABSENT : MALFORMED);
        },
      ),
      { numRuns: 3000, seed: 38 },
    );
    expect(found).toBeGreaterThan(100);
  });

  it('behaviour: a document that was changed at a byte is malformed exactly if JSON.parse refuses it', () => {
    const seed = '{"a":{"n":-12.5e3,"t":[true,false,null,"\\u00e9\\n"]},"b":[{},[],0]} ';
    let refused = 0;
    fc.assert(
      fc.property(
        fc.nat(seed.length - 1),
        fc.constantFrom(...'{}[]",:\\0123456789eE+-.tfn u\n\u0001'.split('')),
        fc.constantFrom(0, 1, 2),
        fc.nat(seed.length),
        (at, character, dropped, cut) => {
          const text = seed.slice(0, at) + character + seed.slice(at + dropped);
          const reading = inJson(text, 'zz', [cut]);
          const isRefused = parsed(text, []) === undefined;
          if (isRefused) refused++;
          expect([text, reading]).toEqual([text, isRefused ? MALFORMED : ABSENT]);
        },
      ),
      { numRuns: 4000, seed: 38 },
    );
    expect(refused).toBeGreaterThan(1000);
  });

  it('attack: a document that nests without end, or has a name without end, is read in constant memory', () => {
    expect(inJson('['.repeat(DEEPEST) + ']'.repeat(DEEPEST), 'a')).toEqual(ABSENT);
    expect(inJson('['.repeat(DEEPEST + 1) + ']'.repeat(DEEPEST + 1), 'a')).toEqual(MALFORMED);
    const scanner = new JsonNumber(['a']);
    const piece = Buffer.alloc(1 << 20, '[');
    for (let i = 0; i < 8; i++) scanner.push(piece);
    expect(scanner.end()).toEqual(MALFORMED);
    expect(inJson(`{"${'a'.repeat(100_000)}":1,"a":2}`, 'a')).toEqual(read('2'));
  });
});

describe('a stream of events', () => {
  const PATH = 'usage.total_tokens';
  const said = (tokens: number): string => `data: {"usage":{"total_tokens":${tokens}}}`;

  it.each([
    ['the last event that has it', `${said(1)}\n\n${said(9)}\n\ndata: {"usage":null}\n\ndata: [DONE]\n\n`, read('9')],
    ['lines that end with CR, LF and both', `${said(1)}\r\r${said(2)}\r\n\r\n${said(3)}\n\n`, read('3')],
    ['other fields and comments', `: ping\nevent: data\nid: 1\nretry: 5\n${said(4)}\nfoo\n\n`, read('4')],
    ['data over several lines', 'data: {"usage":\ndata:{"total_tokens":\ndata\ndata: 5}}\n\n', read('5')],
    ['no space behind the colon', 'data:{"usage":{"total_tokens":6}}\n\n', read('6')],
    ['a last event without a blank line', `${said(1)}\n\n${said(7)}`, read('7')],
    ['a byte order mark', `\ufeff${said(8)}\n\n`, read('8')],
    ['fields with names like data', `data2: {}\ndat: {}\nDATA: {}\n${said(2).replace('data', 'dat')}\n\n`, ABSENT],
    ['no event', '', ABSENT],
    ['a number that is none', `${said(1)}\n\ndata: {"usage":{"total_tokens":"2"}}\n\n`, MALFORMED],
    ['one that is there twice', `${said(1)}\n\ndata: {"usage":{},"usage":{"total_tokens":2}}\n\n`, TWICE],
    ['one that broke off', `${said(1)}\n\ndata: {"usage":{"total_tokens":2}\n\n`, MALFORMED],
  ])('behaviour: %s', (_name, text, expected) => {
    expect(inEvents(text, PATH)).toEqual(expected);
    expect(
      inEvents(
        text,
        PATH,
        16_384,
        Array.from({ length: Buffer.byteLength(text) }, (_, index) => index),
      ),
    ).toEqual(expected);
  });

  it('behaviour: an event larger than the tail is not read, and nothing before it is the last word', () => {
    const large = `data: {"text":"${'x'.repeat(200)}","usage":{"total_tokens":2}}`;
    expect(inEvents(`${said(1)}\n\n${large}\n\n`, PATH, 100)).toEqual(ABSENT);
    expect(inEvents(`${said(1)}\n\n${large}\n\n`, PATH, 300)).toEqual(read('2'));
    expect(inEvents(`${large}\n\n${said(3)}\n\n`, PATH, 100)).toEqual(read('3'));
  });

  it('attack: a prompt that prints events into a text makes none', () => {
    const printed = JSON.stringify({ text: `\n\n${said(0)}\n\ndata: [DONE]\n\n` });
    expect(inEvents(`data: ${printed}\n\n${said(900)}\n\ndata: ${printed}\n\n`, PATH)).toEqual(read('900'));
  });

  it('behaviour: random events, cut anywhere, are read as browsers split them', () => {
    const line = fc.oneof(
      fc.nat(99).map((tokens) => said(tokens)),
      fc.constantFrom('', 'data', 'data:', 'data: ', ': c', 'id: 1', 'data: {', 'data: }', 'data: null', 'data: "a"'),
    );
    const broken = fc.constantFrom('\n', '\r', '\r\n');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, broken), { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 6 }),
        (lines, cuts) => {
          const text = lines.map((each) => each.join('')).join('');
          let last: MeterReading = ABSENT;
          // One line break of each kind ends a line; a carriage return and a line feed are one.
          for (const event of text.replace(/\r\n?/g, '\n').split(/(?<=^|\n)\n/)) {
            const data = event.split('\n').filter((each) => each === 'data' || each.startsWith('data:'));
            const joined = data.map((each) => each.slice(5).replace(/^ /, '')).join('\n');
            const document = new JsonNumber(['usage', 'total_tokens']);
            document.push(Buffer.from(joined));
            if (document.hasTarget) last = document.end();
          }
          const reading = inEvents(text, PATH, 16_384, cuts);
          expect([text, reading]).toEqual([text, last]);
        },
      ),
      { numRuns: 3000, seed: 38 },
    );
  });
});

describe('the kind of a body', () => {
  const SOURCE: Extract<MeterSource, { kind: 'usage' }> = {
    ...{ kind: 'usage', path: ['n'], unit: { units: 1n, scale: 0 }, tailBytes: 100 },
  };
  it.each([
    [['Content-Type', 'application/json'], '{"n":1}', read('1')],
    [['content-type', 'Application/JSON; charset=utf-8', 'Content-Encoding', 'identity'], '{"n":1}', read('1')],
    [['Content-Type', 'application/vnd.api+json'], '{"n":1}', read('1')],
    [['Content-Type', 'text/event-stream;charset=utf-8'], 'data: {"n":1}\n\n', read('1')],
    [['Content-Type', 'text/plain'], '{"n":1}', MALFORMED],
    [[], '{"n":1}', MALFORMED],
    [['Content-Type', 'application/json', 'Content-Type', 'text/html'], '{"n":1}', MALFORMED],
    [['Content-Type', 'application/json', 'Content-Encoding', 'gzip'], '{"n":1}', MALFORMED],
  ])('behaviour: a body with %j', (headers, body, expected) => {
    expect(feed(readUsage(SOURCE, headers), body)).toEqual(expected);
  });
});
