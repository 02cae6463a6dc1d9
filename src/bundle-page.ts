// The page for people as two texts: its program in one classic script, and its style. Small, because they stand in every
// page; ASCII, because a document is. `node src/bundle-page.ts` prints them as JSON; bundle.ts puts them into the program.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import type { PageAssets } from './gateway/page/assets.ts';

const PAGE = path.join(import.meta.dirname, 'page');

export async function bundlePage(): Promise<PageAssets> {
  const bundle = await rolldown({
    input: path.join(PAGE, 'main.ts'),
    platform: 'browser',
    tsconfig: path.join(PAGE, 'tsconfig.json'),
    transform: { target: 'es2022' },
    onLog: (level, log, handle) => handle(level === 'warn' ? 'error' : level, log),
  });
  const { output } = await bundle.generate({ format: 'iife', minify: true, comments: false });
  await bundle.close();
  return { script: escaped(output[0].code.trim()), style: styleOf(path.join(PAGE, 'page.css')) };
}

/** A script ends at the first `</script`, and a comment in one begins with `<!--`. */
function escaped(code: string): string {
  if (/<\/script|<!--/i.test(code)) throw new Error('the program of the page holds the end of its own element');
  return code.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Without comments, and with single spaces only where they mean something. */
function styleOf(file: string): string {
  const style = readFileSync(file, 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/: /g, ':')
    .trim();
  if (/[^\0-\x7f]|</.test(style)) throw new Error('the style of the page is not plain ASCII');
  return style;
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(await bundlePage()));
