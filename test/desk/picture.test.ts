// The picture of the desk in the README: the overview, as a sharp screen shows it. Every run makes it anew under coverage/desk, to
// be looked at; `npm run picture` puts it into docs/desk.webp, which stands in the repository and has to stay small.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createDeskLab } from './fixture/desk-lab.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const MADE = path.join(ROOT, 'coverage/desk/readme.webp');
const KEPT = path.join(ROOT, 'docs/desk.webp');
const SIZE = { width: 1280, height: 800 };
const MOST_BYTES = 120_000;

const { desk, open } = createDeskLab();

/** Width and height of an extended WebP file (RFC 9649, section 2.7). */
function sizeOf(file: Buffer): { width: number; height: number } {
  expect([file.toString('latin1', 0, 4), file.toString('latin1', 8, 16)]).toEqual(['RIFF', 'WEBPVP8X']);
  return { width: file.readUIntLE(24, 3) + 1, height: file.readUIntLE(27, 3) + 1 };
}

test('behaviour: the picture of the desk is made of the page as it stands, and the one in the README is as large', async () => {
  desk().mood.attention = false;
  const { page, context } = await open('/desk/', { viewport: SIZE, colorScheme: 'light' });
  // The headless shell draws at one pixel a pixel, whatever the context says: the clip asks for two.
  const session = await context.newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    ...{ format: 'webp', quality: 70 },
    clip: { x: 0, y: 0, ...SIZE, scale: 2 },
  });
  mkdirSync(path.dirname(MADE), { recursive: true });
  writeFileSync(MADE, Buffer.from(data, 'base64'));
  if (process.env['TOLLGATE_PICTURE'] === '1') copyFileSync(MADE, KEPT);
  for (const file of [MADE, KEPT].map((each) => readFileSync(each))) {
    expect(sizeOf(file)).toEqual({ width: 2 * SIZE.width, height: 2 * SIZE.height });
    expect(file.length).toBeGreaterThan(20_000);
    expect(file.length).toBeLessThanOrEqual(MOST_BYTES);
  }
});
