// Shows what was paid for. Text, JSON and images are shown, a place elsewhere as a link. Everything else, web pages included,
// can be saved or opened. Opened, it runs no script, because it inherits this page's policy.
import { decoderOf, isText, kindOf, mediaOf, sizeOf } from './kinds.ts';
import { placeContent, placeOf } from './redirect.ts';
import { HELD_BYTES } from './receive.ts';
import { appendText, textElement, trimText } from './text.ts';
import { button, element } from './view.ts';

export type ShownAnswer = {
  readonly type: string;
  readonly name: string;
  /** Size of the whole answer in bytes. */
  readonly size: number;
  readonly blob: Blob;
  /** Bytes of the answer; undefined if it is too large to be shown. */
  readonly bytes: Uint8Array | undefined;
};

/** Reads an answer as far as the page can show it. */
export async function shownOf(
  { type, name }: Pick<ShownAnswer, 'type' | 'name'>,
  { size, blob }: Pick<ShownAnswer, 'size' | 'blob'>,
): Promise<ShownAnswer> {
  const bytes = size <= HELD_BYTES ? new Uint8Array(await blob.arrayBuffer()) : undefined;
  return { type, name, size, blob, bytes };
}

export function answerSection(title: string, shown: ShownAnswer): HTMLElement {
  const { type, name, size, blob, bytes } = shown;
  const media = mediaOf(type);
  const place = kindOf(type) === 'place' && bytes !== undefined ? placeOf(decoderOf(type).decode(bytes)) : undefined;
  if (place !== undefined) return section(title, placeContent(place));
  const url = URL.createObjectURL(blob);
  const about = `${media === '' ? 'unknown kind' : media}, ${sizeOf(size)}`;
  const save = element('a', { class: 'button', href: url, download: name }, 'Save');
  const open = element('a', { class: 'button', href: url, target: '_blank', rel: 'noopener' }, 'Open in a new tab');
  return section(title, [
    element('p', { class: 'note' }, blob.size < size ? `${about}, of which ${sizeOf(blob.size)} are kept` : about),
    content(shown, url),
    element('div', { class: 'row' }, save, open),
  ]);
}

function section(title: string, children: readonly HTMLElement[]): HTMLElement {
  const heading = element('h2', { tabindex: '-1', id: 'answer' }, title);
  return element('section', { class: 'answer stack', 'aria-labelledby': 'answer' }, heading, ...children);
}

function content({ type, bytes, size }: ShownAnswer, url: string): HTMLElement {
  if (size === 0) return element('p', {}, 'The answer is empty.');
  if (bytes === undefined) return element('p', {}, 'The answer is too large to be shown here.');
  const kind = kindOf(type);
  if (kind === 'picture') return element('img', { class: 'picture', src: url, alt: 'The answer, an image' });
  if (kind === 'web')
    return element(
      'p',
      {},
      'The answer is a web page. It is not shown within this one; opened, it has neither scripts nor styles.',
    );
  if (!isText(kind)) return element('p', {}, 'An answer of this kind is not shown here.');
  const text = decoderOf(type).decode(bytes);
  return textElement(kind === 'json' ? indent(text) : text);
}

/** Characters that are shown of an answer that still comes: the last ones. */
const LIVE_CHARACTERS = 1024 * 1024;
const LIVE_MS = 100;

export type LiveAnswer = {
  readonly section: HTMLElement;
  readonly add: (piece: Uint8Array, size: number) => void;
};

/** An answer while it comes: its newest text, the bytes so far, and a button that calls `stop`. */
export function liveAnswer(type: string, stop: () => void): LiveAnswer {
  const kind = kindOf(type);
  const decoder = decoderOf(type);
  const count = element('p', { class: 'note' }, 'Nothing came so far.');
  const pre = isText(kind) ? textElement() : undefined;
  let pending = '';
  let bytes = 0;
  let total = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const paint = (): void => {
    timer = undefined;
    const isCut = pre !== undefined && total > LIVE_CHARACTERS;
    count.textContent = `${sizeOf(bytes)} so far.${isCut ? ' The beginning is not shown any more.' : ''}`;
    if (pre === undefined || pending === '') return;
    const isAtEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
    appendText(pre, pending);
    pending = '';
    trimText(pre, LIVE_CHARACTERS);
    if (isAtEnd) pre.scrollTop = pre.scrollHeight;
  };
  return {
    section: section('The answer, as it comes', [
      count,
      button({ says: 'Stop', run: stop }),
      ...(pre === undefined ? [] : [pre]),
    ]),
    add: (piece, size) => {
      bytes = size;
      if (pre !== undefined) {
        const text = decoder.decode(piece, { stream: true });
        total += text.length;
        pending = (pending + text).slice(-LIVE_CHARACTERS);
      }
      timer ??= setTimeout(paint, LIVE_MS);
    },
  };
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
