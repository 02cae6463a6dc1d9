// Single keys, as lists of work know them from Linear and Gmail. None does anything while somebody writes in a field, while a
// dialog is open, or if they are switched off (WCAG 2.1.4). Rows and actions say in their markup that keys may reach them.
import { hrefOf, type ViewName } from '../router/view-addresses.ts';

const PLACES: Readonly<Record<string, ViewName>> = {
  ...{
    o: 'overview',
    r: 'routes',
    t: 'try',
    c: 'charges',
    p: 'plans',
    s: 'passes',
    k: 'keys',
    e: 'receivers',
    a: 'audit',
    d: 'api',
  },
};

/** The table that `?` shows. */
export const SHORTCUTS: readonly (readonly [keys: string, what: string])[] = [
  ...([['g o', 'Overview'] as const, ['g r', 'Routes'], ['g t', 'Try it'], ['g c', 'Charges']] as const),
  ...([['g p', 'Plans'] as const, ['g s', 'Passes']] as const),
  ...([['g k', 'Keys'] as const, ['g e', 'Receivers'], ['g a', 'Audit'], ['g d', 'API']] as const),
  ...([['/', 'Search or filter'] as const, ['j', 'Next row'], ['k', 'Row before'], ['Enter', 'Open the row']] as const),
  ...([['e', 'Edit the row'] as const, ['n', 'New'], ['?', 'This table']] as const),
];

type ShortcutOptions = {
  readonly document: Document;
  readonly isOn: () => boolean;
  readonly go: (href: string) => void;
  readonly showHelp: () => void;
};

const SEQUENCE_MS = 1_200;

export function listenForShortcuts({ document, isOn, go, showHelp }: ShortcutOptions): () => void {
  let pressedG = Number.NEGATIVE_INFINITY;
  const press = (event: KeyboardEvent): void => {
    if (!isOn() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isWriting(event.target) || document.querySelector('dialog[open]') !== null) return;
    const { key } = event;
    const place = event.timeStamp - pressedG < SEQUENCE_MS ? PLACES[key] : undefined;
    pressedG = key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
    if (place !== undefined) go(hrefOf(place));
    else if (key === '?') showHelp();
    else if (key === '/') focusSearch(document, go);
    else if (key === 'j' || key === 'k') moveRow(document, key === 'j' ? 1 : -1);
    else if (key === 'e') rowOf(document.activeElement)?.querySelector<HTMLElement>('[data-edit]')?.click();
    else if (key === 'n') document.querySelector<HTMLElement>('[data-new]')?.click();
    else return;
    event.preventDefault();
  };
  document.addEventListener('keydown', press);
  return () => document.removeEventListener('keydown', press);
}

/** A view without a search of its own leads to that of the charges, which finds everything that has an id. */
function focusSearch(document: Document, go: (href: string) => void): void {
  const field = document.querySelector<HTMLElement>('[data-search]');
  if (field !== null) return field.focus();
  go(hrefOf('charges'));
  requestAnimationFrame(() => document.querySelector<HTMLElement>('[data-search]')?.focus());
}

function moveRow(document: Document, by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const now = rowOf(document.activeElement);
  const index = now === null ? (by > 0 ? 0 : rows.length - 1) : rows.indexOf(now) + by;
  const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
  const target = row?.querySelector<HTMLElement>('[data-open]') ?? row;
  target?.focus();
  row?.scrollIntoView({ block: 'nearest' });
}

function rowOf(element: Element | null): HTMLElement | null {
  return element?.closest<HTMLElement>('[data-row]') ?? null;
}

function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}
