// The weight of the desk: script and style, and fonts, as they cross the network; and that all of them come from its own origin.
import { expect, test } from 'vitest';
import { packDesk } from '../../src/pack-desk.ts';

test('behaviour: script and style are at most 60 kB compressed, the fonts as well', async () => {
  const files = await packDesk();
  const weigh = (wanted: RegExp): number =>
    files.filter(({ path }) => wanted.test(path)).reduce((sum, { gz, raw }) => sum + (gz ?? raw).length, 0);
  expect(weigh(/\.(?:js|css)$/)).toBeGreaterThan(10_000);
  expect(weigh(/\.(?:js|css)$/)).toBeLessThanOrEqual(60_000);
  expect(weigh(/\.woff2$/)).toBeGreaterThan(10_000);
  expect(weigh(/\.woff2$/)).toBeLessThanOrEqual(60_000);
});

test('refuses: a file of the desk that asks another origin for something, or runs text as a program', async () => {
  const files = await packDesk();
  const texts = files
    .filter(({ type }) => !type.startsWith('font/'))
    .map(({ raw }) => Buffer.from(raw).toString('utf8'));
  const found = texts.flatMap((text) => [
    ...(text.match(/(?:src|href|url)\s*[=(]\s*["']?https?:/g) ?? []),
    ...(text.match(/\beval\(|new Function\(|<style|<script>|\sstyle="/g) ?? []),
  ]);
  expect(found).toEqual([]);
});
