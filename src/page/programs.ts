// The lines for programs at the end of the page: with the whole address, query included, and a button that copies each.
import { copyButton } from './view.ts';

/** Functions that write a text as a literal, by the language of the lines. */
const WRITTEN: Readonly<Record<string, (text: string) => string>> = {
  sh: (text) => `'${text.replaceAll("'", "'\\''")}'`,
  js: (text) => JSON.stringify(text),
};

export function completePrograms(url: string): void {
  for (const place of document.querySelectorAll<HTMLElement>('[data-url]'))
    place.textContent = WRITTEN[place.dataset['url'] ?? '']?.(url) ?? url;
  for (const pre of document.querySelectorAll<HTMLElement>('#programs pre')) {
    const copy = copyButton(pre, 'Copy');
    copy.setAttribute('aria-label', `Copy: ${pre.getAttribute('aria-label')}`);
    pre.before(copy);
  }
}

/** Opens the lines and brings them into view. */
export function showPrograms(): void {
  const details = document.querySelector<HTMLDetailsElement>('#programs');
  if (details === null) return;
  details.open = true;
  details.scrollIntoView();
  details.querySelector('summary')?.focus();
}
