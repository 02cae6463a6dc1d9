// The page for people as two texts: its program in one classic script, and its style. Small, because they stand in every
// page; ASCII, because a document is. `node src/bundle-page.ts` prints them as JSON; bundle.ts puts them into the program.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import type { PageAssets } from './host/page-assets.ts';

const PAGE = path.join(import.meta.dirname, 'page');

export async function bundlePage(): Promise<PageAssets> {
  const bundle = await rolldown({
    input: path.join(PAGE, 'main.ts'),
    platform: 'browser',
    tsconfig: path.join(PAGE, 'tsconfig.json'),
    transform: { target: 'es2022' },
    onLog: (level, log, handle) => handle(level === 'warn' ? 'error' : level, log),
  });
  const minify = { compress: true, mangle: true, codegen: true, mangleProps: { include: OWN_NAMES } };
  const { output } = await bundle.generate({ format: 'iife', minify, comments: false });
  await bundle.close();
  return { script: escaped(shortened(output[0].code.trim())), style: styleOf(path.join(PAGE, 'page.css')) };
}

/**
 * Members of the page's own objects, which become short: never those of a document, of JSON, or of what a tab keeps, where
 * another page has to find them.
 */
export const OWN_NAMES = new RegExp(
  `^(?:${[
    ...['headline', 'sentences', 'actions', 'says', 'primary', 'busy', 'more', 'run', 'isFull', 'isKept'],
    ...[
      'deps',
      'delivery',
      'wallets',
      'choices',
      'choice',
      'watched',
      'begin',
      'chooser',
      'prepare',
      'pay',
      'takeOver',
    ],
    ...[
      'demanded',
      'payAnew',
      'anew',
      'again',
      'showLive',
      'cutOff',
      'taken',
      'sendLater',
      'fail',
      'keep',
      'unfinished',
    ],
    ...[
      'showKept',
      'showAnswer',
      'forget',
      'wallet',
      'account',
      'balance',
      'isOn',
      'switchTo',
      'watch',
      'serverMs',
      'told',
    ],
    ...[
      'problem',
      'because',
      'mood',
      'showCard',
      'paired',
      'section',
      'note',
      'way',
      'place',
      'kept',
      'networks',
      'money',
    ],
  ].join('|')})$`,
  'u',
);

/**
 * Shortens `undefined`, which stands in a program a hundred times, to the parameter of its function that is never
 * given.
 */
function shortened(code: string): string {
  const [head, ...rest] = code.split('(function(){');
  if (head !== '' || rest.length !== 1 || /\$0/.test(code)) throw new Error('the program of the page is no function');
  return `(function($0){${rest.join('').replaceAll('void 0', '$0')}`;
}

/** A script ends at the first `</script`, and a comment in one begins with `<!--`. */
function escaped(code: string): string {
  if (/<\/script|<!--/i.test(code)) throw new Error('the program of the page holds the end of its own element');
  return code.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Writes the style without comments, with single spaces only where they mean something, and with short names of its own
 * properties.
 */
function styleOf(file: string): string {
  const text = readFileSync(file, 'utf8');
  const names = new Set(text.match(/--[\w-]+/g)?.filter((name) => !/^--(?:on-)?accent$/.test(name)));
  const short = new Map([...names].map((name, index) => [name, `--${String.fromCharCode(97 + index)}`]));
  const style = text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,>~]) ?/g, '$1')
    .replace(/;}/g, '}')
    .replace(/(?<=[\s:,(])0(?=\.\d)/g, '')
    .replace(/: /g, ':')
    .trim()
    .replace(/--[\w-]+/g, (name) => short.get(name) ?? name);
  if (/[^\0-\x7f]|</.test(style)) throw new Error('the style of the page is not plain ASCII');
  return style;
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(await bundlePage()));
