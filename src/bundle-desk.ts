// The owners' desk as the files that a browser asks for: one document, one script, one style, one icon and two fonts. The names of all
// but the document hold a hash of their bytes, so that a browser may keep them for ever. `node src/bundle-desk.ts` prints
// them as JSON; a run from the sources calls it when the desk is asked for first, the build once.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { rolldown } from 'rolldown';

const DESK = path.join(import.meta.dirname, 'desk');
const require = createRequire(import.meta.url);

/** Files of the style, in the order in which they count. */
const STYLES = ['tokens', 'base', 'controls', 'frame', 'parts', 'views', 'more-views'];
const FONTS = [
  { family: 'Geist', file: '@fontsource-variable/geist/files/geist-latin-wght-normal.woff2' },
  { family: 'Geist Mono', file: '@fontsource-variable/geist-mono/files/geist-mono-latin-wght-normal.woff2' },
];

type DeskFile = {
  /** Path below `/desk/`; empty: the document of every view. */
  readonly path: string;
  readonly type: string;
  readonly base64: string;
};

export async function bundleDesk(): Promise<readonly DeskFile[]> {
  const fonts = FONTS.map(({ family, file }) => ({
    family,
    file: asset(path.basename(file, '.woff2'), 'woff2', 'font/woff2', readFileSync(require.resolve(file))),
  }));
  const faces = fonts.map(
    ({ family, file }) =>
      `@font-face{font-family:${JSON.stringify(family)};src:url(${path.basename(file.path)}) format("woff2");font-weight:100 900;font-display:swap}`,
  );
  const script = asset('desk', 'js', 'text/javascript; charset=utf-8', await bundleScript());
  const style = asset('desk', 'css', 'text/css; charset=utf-8', faces.join('') + STYLES.map(styleOf).join(''));
  const icon = asset('icon', 'svg', 'image/svg+xml', readFileSync(path.join(DESK, 'icon.svg')));
  const document = documentOf({ script, style, icon, font: fonts[0]?.file ?? style });
  return [
    { path: '', type: 'text/html; charset=utf-8', base64: Buffer.from(document).toString('base64') },
    ...[script, style, icon, ...fonts.map(({ file }) => file)],
  ];
}

async function bundleScript(): Promise<string> {
  const bundle = await rolldown({
    input: path.join(DESK, 'desk-page.tsx'),
    platform: 'browser',
    tsconfig: path.join(DESK, 'tsconfig.json'),
    transform: { target: 'es2022', define: { 'process.env.NODE_ENV': '"production"' } },
    onLog: (level, log, handle) => handle(level === 'warn' ? 'error' : level, log),
  });
  const { output } = await bundle.generate({ format: 'iife', minify: true, comments: false });
  await bundle.close();
  return output[0].code;
}

/** One file of the style without comments, and with single spaces only. */
function styleOf(name: string): string {
  return readFileSync(path.join(DESK, 'style', `${name}.css`), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/;}/g, '}')
    .trim();
}

function asset(name: string, extension: string, type: string, content: string | Uint8Array): DeskFile {
  const bytes = Buffer.from(content);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 12);
  return { path: `assets/${name}.${hash}.${extension}`, type, base64: bytes.toString('base64') };
}

/** The script comes before the body is drawn: it knows the theme, and its views wait for the body to be there. */
function documentOf({ script, style, icon, font }: Record<'script' | 'style' | 'icon' | 'font', DeskFile>): string {
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tollgate</title>',
    '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">',
    `<link rel="icon" type="image/svg+xml" href="/desk/${icon.path}">`,
    `<link rel="preload" href="/desk/${font.path}" as="font" type="${font.type}" crossorigin>`,
    `<link rel="stylesheet" href="/desk/${style.path}"><script src="/desk/${script.path}"></script></head>`,
    '<body><div id="desk"></div><noscript>The desk of Tollgate needs JavaScript.</noscript></body></html>',
  ].join('');
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(await bundleDesk()));
