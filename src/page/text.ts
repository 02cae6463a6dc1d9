// Text in blocks of whole lines. A browser lays out the blocks that are seen alone, so that megabytes of short lines, and
// text that grows, cost no more than what is seen.
import { element } from './view.ts';

const BLOCK_CHARACTERS = 16_384;

export function textElement(text = ''): HTMLElement {
  const pre = element('pre', { class: 'text', tabindex: '0', role: 'region', 'aria-label': 'Its content' });
  appendText(pre, text);
  return pre;
}

export function appendText(pre: HTMLElement, text: string): void {
  for (let at = 0; at < text.length;) {
    const last = pre.lastElementChild;
    const before = last?.textContent ?? '\n'.repeat(BLOCK_CHARACTERS);
    const end = text.indexOf('\n', at + Math.max(0, BLOCK_CHARACTERS - before.length)) + 1 || text.length;
    const part = text.slice(at, end);
    if (last !== null && (before.length < BLOCK_CHARACTERS || !before.endsWith('\n'))) last.append(part);
    else pre.append(element('div', {}, part));
    at = end;
  }
}

/** Takes text away at its beginning, so that at most `most` characters are left. */
export function trimText(pre: HTMLElement, most: number): void {
  let size = pre.textContent.length;
  for (let first = pre.firstElementChild; first !== null && size > most; first = pre.firstElementChild) {
    const { length } = first.textContent;
    // A line without an end is cut itself.
    if (first === pre.lastElementChild) first.textContent = first.textContent.slice(-most);
    else first.remove();
    size -= first.isConnected ? size : length;
  }
}
