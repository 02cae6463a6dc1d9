// A place elsewhere, as the server names the redirect that was paid for. It is shown as a link, with the name of whose it is;
// what is no address of the web is shown as text.
import { copyButton, element } from './view.ts';

const ANSWERED = 'The service answered with an address';

/** Finds where a redirect leads; undefined if the document names no place. */
export function placeOf(text: string): string | undefined {
  try {
    const { location } = JSON.parse(text) as { readonly location?: unknown };
    return typeof location === 'string' ? location : undefined;
  } catch {
    return undefined;
  }
}

export function placeContent(place: string): readonly HTMLElement[] {
  const code = element('code', {}, place);
  const copy = copyButton(code, 'Copy the address');
  const shown = element('p', { class: 'place' }, code);
  const url = URL.canParse(place) ? new URL(place) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return [element('p', {}, `${ANSWERED}:`), shown, element('div', { class: 'row' }, copy)];
  const isOwn = url.origin === location.origin;
  const words = isOwn
    ? 'of this site. It may ask for a payment of its own.'
    : `at ${url.host}, another site. It may be all that opens the answer: keep it to yourself.`;
  const target = { target: '_blank', rel: 'noreferrer noopener' };
  const open = element(
    'a',
    { class: 'button primary', href: url.href, ...target },
    isOwn ? 'Open it' : `Open ${url.host}`,
  );
  return [element('p', {}, `${ANSWERED} ${words}`), shown, element('div', { class: 'row' }, open, copy)];
}
