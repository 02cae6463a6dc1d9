// The table of customers' keys: it finds what stands in a file and nothing else, says which line is wrong, and is read a slice at
// a time. With TOLLGATE_KEYS=1000000 it is measured with as many keys as a file may hold.
import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { expect, test } from 'vitest';
import { readKeyTable, readKeyTableAtOnce } from '../../../src/domain/selling/key-table.ts';

const digestOf = (key: string): Buffer => createHash('sha256').update(key).digest();
const line = (key: string, rest = ''): string => `${digestOf(key).toString('hex')}${rest}`;
const read = (text: string): ReturnType<typeof readKeyTableAtOnce> => readKeyTableAtOnce(Buffer.from(text));

test('behaviour: a key is found by its digest, with its name, whatever the ends of lines, comments and case', () => {
  const table = read(
    [
      '# partners\r',
      line('plain'),
      line('named', ' acme\r'),
      line('tabbed', '\t \tinitech  \t'),
      line('upper').toUpperCase(),
      '   ',
      line('long', ` ${'n'.repeat(64)}`),
      line('last', ' ~!#x'),
    ].join('\n'),
  );
  const found = (key: string): unknown => table.find(digestOf(key));
  expect(table.size).toBe(6);
  expect(['plain', 'named', 'tabbed', 'upper', 'long', 'last', 'other'].map(found)).toEqual([
    ...['', 'acme', 'initech', '', 'n'.repeat(64), '~!#x', undefined],
  ]);
});

test('behaviour: a line as sha256sum prints it has no name: its dash is that of what was read', () => {
  expect(read(line('piped', '  -\n')).find(digestOf('piped'))).toBe('');
  expect(read(line('piped', ' --')).find(digestOf('piped'))).toBe('--');
});

test('behaviour: of a key that stands twice the first line counts, and an empty file finds nobody', () => {
  const table = read(`${line('twice', ' first')}\n${line('twice', ' second')}\n${line('after', ' third')}\n`);
  expect(table.find(digestOf('twice'))).toBe('first');
  expect(table.find(digestOf('after'))).toBe('third');
  for (const text of ['', '\n\n', '# nobody'])
    expect([text, read(text).size, read(text).find(digestOf('twice'))]).toEqual([text, 0, undefined]);
});

test.each([
  ['a key itself', 'a-key-of-a-partner-0001'],
  ['a digest that is short', line('a').slice(1)],
  ['a digest that is long', `${line('a')}0`],
  ['a digit that is none', line('a').replace(/^./, 'g')],
  ['a byte that is none', line('a').replace(/^./, 'é')],
  ['a name of two words', line('a', ' two words')],
  ['a name that is long', line('a', ` ${'n'.repeat(65)}`)],
  ['a name beyond ASCII', line('a', ' café')],
  ['a name with a control character', line('a', ' a\u0007')],
  ['a space before the digest', ` ${line('a')}`],
])('refuses: %s, by the number of its line', (_, text) => {
  expect(() => read(`${line('first')}\n${text}\n`)).toThrow('line 2 is not usable; write 64 hexadecimal digits');
});

test('behaviour: many keys are all found, and the file is read a slice at a time', () => {
  const count = Number(process.env['TOLLGATE_KEYS'] ?? 20_000);
  const file = Buffer.from(Array.from({ length: count }, (_, n) => line(`key ${n}`, ` customer-${n}`)).join('\n'));
  const before = process.memoryUsage().arrayBuffers;
  const cpu = process.cpuUsage();
  const reading = readKeyTable(file);
  let [steps, longest] = [0, 0];
  let step = reading.next();
  for (; step.done !== true; steps++) {
    const began = performance.now();
    step = reading.next();
    longest = Math.max(longest, performance.now() - began);
  }
  const table = step.value;
  const { user } = process.cpuUsage(cpu);
  if (process.env['TOLLGATE_KEYS'] !== undefined)
    console.log({
      ...{ count, cpuMs: user / 1000, longestSliceMs: longest },
      megabytes: (process.memoryUsage().arrayBuffers - before) / 2 ** 20,
    });
  expect([table.size, steps]).toEqual([count, Math.floor(count / 1024)]);
  for (let n = 0; n < count; n++)
    if (table.find(digestOf(`key ${n}`)) !== `customer-${n}`) throw new Error(`key ${n} is not found`);
  expect(table.find(digestOf(`key ${count}`))).toBeUndefined();
}, 120_000);
