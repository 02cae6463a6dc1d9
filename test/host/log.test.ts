// A log line is JSON whatever its fields hold, never holds a secret, and lines of one turn leave together.
import { describe, expect, test } from 'vitest';
import { gatherLines } from '../../src/host/lines.ts';
import { createLog, type LogFields, type LogRenderer } from '../../src/host/log.ts';

const NOW = Date.UTC(2026, 10, 22, 1, 2, 3, 4);

function lineOf(fields: LogFields): string {
  let written = '';
  createLog(
    'info',
    (line) => (written += line),
    () => NOW,
  ).info('told', fields);
  return written;
}

describe('a line', () => {
  test('behaviour: a line has time, level and message first, then the fields in their order', () => {
    expect(lineOf({ route: '/a', ms: 1.5, ok: true, none: null })).toBe(
      '{"ts":"2026-11-22T01:02:03.004Z","level":"info","msg":"told","route":"/a","ms":1.5,"ok":true,"none":null}\n',
    );
  });

  test.each<[string, LogFields, unknown]>([
    ['undefined is left out', { a: undefined, b: 1 }, { b: 1 }],
    ['a function is left out', { a: () => 1, b: 1 }, { b: 1 }],
    ['integers of money', { a: 2n ** 70n, b: { c: 3n } }, { a: '1180591620717411303424', b: { c: '3' } }],
    ['an error is its message', { error: new TypeError('why'), b: [new Error('x')] }, { error: 'why', b: ['x'] }],
    ['what is no number', { a: NaN, b: Infinity }, { a: null, b: null }],
    ['dates and lists', { at: new Date(0), l: [1, 'b', null] }, { at: '1970-01-01T00:00:00.000Z', l: [1, 'b', null] }],
    ['odd names and text', { 'a"\n': 'b"\n\u2028\ud800' }, { 'a"\n': 'b"\n\u2028\ud800' }],
  ])('behaviour: a line holds fields as JSON: %s', (_, fields, expected) => {
    const { ts, level, msg, ...rest } = JSON.parse(lineOf(fields)) as Record<string, unknown>;
    expect([ts, level, msg, rest]).toEqual(['2026-11-22T01:02:03.004Z', 'info', 'told', expected]);
  });

  test.each(['authorization', 'Cookie', 'api_key', 'apikey', 'X-PAYMENT', 'payment-signature', 'token', 'secrets'])(
    'attack: a field named %s is never written, wherever it stands and whatever it is',
    (name) => {
      const line = lineOf({ [name]: 'hidden', a: { [name]: 'hidden' }, b: [{ [name]: { c: 'hidden' } }] });
      expect(line).not.toContain('hidden');
      expect(line.split('[redacted]')).toHaveLength(4);
      expect(lineOf({ [name]: { c: 'hidden' } })).not.toContain('hidden');
      expect(lineOf({ [name]: 77n })).not.toContain('77');
    },
  );

  test('attack: names of fields that are made up are written and not remembered for ever', () => {
    for (let i = 0; i < 1000; i++) expect(lineOf({ [`made up ${i}`]: i })).toContain(`"made up ${i}":${i}`);
    expect(lineOf({ token: 'hidden' })).not.toContain('hidden');
  });
});

describe('lines of one turn', () => {
  function stage() {
    const turns: (() => void)[] = [];
    const written: string[] = [];
    const lines = gatherLines(
      (text) => written.push(text),
      (run) => void turns.push(run),
    );
    return { lines, written, turns, endTurn: () => turns.splice(0).forEach((run) => run()) };
  }

  test('behaviour: lines of one turn leave in one write at its end, in order, and the next turn has a write of its own', () => {
    const { lines, written, turns, endTurn } = stage();
    lines.write('a\n');
    lines.write('b\n');
    expect([written, turns.length]).toEqual([[], 1]);
    endTurn();
    expect(written).toEqual(['a\nb\n']);
    lines.write('c\n');
    endTurn();
    expect(written).toEqual(['a\nb\n', 'c\n']);
  });

  test('behaviour: at the end of the process lines that wait are written at once, and not again', () => {
    const { lines, written, endTurn } = stage();
    lines.write('last\n');
    lines.flush();
    expect(written).toEqual(['last\n']);
    endTurn();
    lines.flush();
    expect(written).toEqual(['last\n']);
  });

  test('behaviour: warnings and errors leave at once, behind the lines that wait', () => {
    const { lines, written } = stage();
    const log = createLog('debug', lines.write, () => NOW);
    log.debug('first');
    log.info('second');
    expect(written).toEqual([]);
    log.warn('third');
    log.info('fourth');
    log.error('fifth');
    const messages = written.map((text) => text.match(/"msg":"(\w+)"/g)?.join(' '));
    expect(messages).toEqual(['"msg":"first" "msg":"second" "msg":"third"', '"msg":"fourth" "msg":"fifth"']);
  });

  test('behaviour: a write takes 4,096 bytes at most and whole lines; a line that is longer leaves alone', () => {
    const { lines, written, endTurn } = stage();
    lines.write(`${'x'.repeat(4094)}\n`);
    expect(written).toEqual([]);
    lines.write('\n');
    expect(written.map((text) => text.length)).toEqual([4096]);
    lines.write('a\n');
    lines.write(`${'\u20ac'.repeat(1365)}\n`);
    expect(written[1]).toBe('a\n');
    lines.write('b\n');
    lines.write(`${'y'.repeat(5000)}\n`);
    lines.write('c\n');
    endTurn();
    expect(written.slice(2).map((text) => Buffer.byteLength(text))).toEqual([4096, 2, 5001, 2]);
  });
});

describe('of several processes', () => {
  function lineOfWorker(worker: number, fields: LogFields, msg = 'told', render?: LogRenderer): string {
    let written = '';
    createLog(
      'info',
      (line) => (written += line),
      () => NOW,
      () => render,
      worker,
    ).info(msg, fields);
    return written;
  }

  test.each([0, 2])('behaviour: the worker’s number %i stands in each of its lines', (worker) => {
    expect(lineOfWorker(worker, { a: 1 })).toBe(
      `{"ts":"2026-11-22T01:02:03.004Z","level":"info","msg":"told","worker":${worker},"a":1}\n`,
    );
  });

  test('behaviour: a line that fits is whole, one that does not is cut and stays JSON of 4,000 bytes at most', () => {
    const around = Buffer.byteLength(lineOfWorker(1, { a: '' }));
    const fits = lineOfWorker(1, { a: 'x'.repeat(4000 - around) });
    expect(Buffer.byteLength(fits)).toBe(4000);
    expect(JSON.parse(fits).a).toHaveLength(4000 - around);
    const cut = JSON.parse(lineOfWorker(1, { a: 'x'.repeat(4001 - around), b: 7 }));
    expect([cut.a, cut.b]).toEqual([`${'x'.repeat(2048)}\u2026`, 7]);
  });

  test.each<[string, LogFields, string?]>([
    ['a path', { path: `/${'a'.repeat(8191)}`, status: 402 }],
    ['several long ones', { path: 'a'.repeat(8192), reason: 'b'.repeat(8192), error: new Error('c'.repeat(8192)) }],
    ['what is written as six characters each', { path: '\u0000'.repeat(8192) }],
    ['three bytes each', { path: '\u20ac'.repeat(8192) }],
    ['halves of a character', { path: `a${'\u{1f600}'.repeat(8192)}` }],
    ['a list', { settings: Array.from({ length: 5000 }, (_, index) => `setting ${index}`) }],
    ['many fields', Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`field ${index}`, 'a'.repeat(99)]))],
    ['a name', { ['n'.repeat(5000)]: 1 }],
    ['the message', {}, 'm'.repeat(5000)],
  ])('attack: a line too long because of %s is cut, and stays a line', (_, fields, msg) => {
    const text: LogRenderer = (entry) => `${entry.msg} ${[...entry.fields].flat().join(' ')}\n`;
    const written = lineOfWorker(3, fields, msg);
    expect(Buffer.byteLength(written)).toBeLessThanOrEqual(4000);
    expect(JSON.parse(written)).toMatchObject({ level: 'info', worker: 3 });
    expect(Buffer.byteLength(lineOfWorker(3, fields, msg, text))).toBeLessThanOrEqual(4000);
  });

  test('attack: a secret is as hidden in a line that is cut as in a whole one', () => {
    const filler = 'a'.repeat(5000);
    const line = lineOfWorker(1, { filler, token: 'hidden', list: [{ token: 'hidden', filler }] });
    expect(line).not.toContain('hidden');
  });
});
