// Shows what was paid for. Text, JSON and images are shown. Everything else, web pages included, can be saved or
// opened. Opened, it runs no script, because it inherits this page's policy.
import { element } from './view.ts';

export type Shown = { readonly type: string; readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> };

const SHOWN_BYTES = 5 * 1024 * 1024;
const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;

export function answerSection(title: string, { type, name, bytes }: Shown): HTMLElement {
  const [kind = ''] = type
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const url = URL.createObjectURL(new Blob([bytes], { type: type === '' ? 'application/octet-stream' : type }));
  const heading = element('h2', { tabindex: '-1', id: 'answer' }, title);
  const size = element('p', { class: 'note' }, `${kind === '' ? 'unknown kind' : kind}, ${sizeOf(bytes.length)}`);
  const save = element('a', { class: 'button', href: url, download: name }, 'Save');
  const open = element('a', { class: 'button', href: url, target: '_blank', rel: 'noopener' }, 'Open in a new tab');
  const row = element('div', { class: 'row' }, save, open);
  return element(
    'section',
    { class: 'answer stack', 'aria-labelledby': 'answer' },
    heading,
    size,
    content(kind, type, url, bytes),
    row,
  );
}

function content(kind: string, type: string, url: string, bytes: Uint8Array): HTMLElement {
  if (bytes.length === 0) return element('p', {}, 'The answer is empty.');
  if (bytes.length > SHOWN_BYTES) return element('p', {}, 'The answer is too large to be shown here.');
  if (IMAGES.test(kind)) return element('img', { class: 'picture', src: url, alt: 'The answer, an image' });
  const isJson = /^application\/(?:[\w.-]+\+)?json$/.test(kind);
  if (!isJson && (!kind.startsWith('text/') || kind === 'text/html'))
    return element(
      'p',
      {},
      kind === 'text/html'
        ? 'The answer is a web page. It is not shown within this one; opened, it has neither scripts nor styles.'
        : 'An answer of this kind is not shown here.',
    );
  const text = decode(bytes, type);
  return element(
    'pre',
    { class: 'text', tabindex: '0', role: 'region', 'aria-label': 'Its content' },
    isJson ? indent(text) : text,
  );
}

function decode(bytes: Uint8Array, type: string): string {
  const [, charset = 'utf-8'] = /charset="?([\w-]+)/i.exec(type) ?? [];
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** JSON over several lines. Only what stands between its words is changed: numbers stay as they are written. */
function indent(json: string): string {
  let depth = 0;
  const line = (): string => `\n${'  '.repeat(depth)}`;
  return json.replace(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[[{\]},:]|\s+/g, (part) => {
    switch (part) {
      case '{':
      case '[':
        depth++;
        return part + line();
      case '}':
      case ']':
        depth = Math.max(0, depth - 1);
        return line() + part;
      case ',':
        return part + line();
      case ':':
        return ': ';
      default:
        return part.trim() === '' ? '' : part.startsWith('"') ? part : part.replace(/\s+/g, '');
    }
  });
}
