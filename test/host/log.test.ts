// A log line is JSON whatever its fields hold, never holds a secret, and lines of one turn leave together.
import { describe, expect, test } from 'vitest';
import { gatherLines } from '../../src/host/lines.ts';
import { createLog, type LogFields } from '../../src/host/log.ts';

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
  test('behaviour: time, level and message first, then the fields in their order', () => {
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
  ])('behaviour: %s', (_, fields, expected) => {
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

  test('attack: names that are made up are written and not remembered for ever', () => {
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

  test('behaviour: they leave in one write at its end, in order, and the next turn has a write of its own', () => {
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

  test('behaviour: at the end of the process what waits is written at once, and not again', () => {
    const { lines, written, endTurn } = stage();
    lines.write('last\n');
    lines.flush();
    expect(written).toEqual(['last\n']);
    endTurn();
    lines.flush();
    expect(written).toEqual(['last\n']);
  });

  test('behaviour: warnings and errors leave at once, behind what waits', () => {
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

  test('behaviour: up to 64 Ki characters wait, not one more', () => {
    const { lines, written } = stage();
    lines.write('x'.repeat(65_535));
    expect(written).toEqual([]);
    lines.write('y');
    expect(written.join('')).toHaveLength(65_536);
    lines.write('z');
    expect(written).toHaveLength(1);
  });
});
