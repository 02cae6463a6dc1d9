// Puts things on the page: elements without markup in strings, one panel that shows where a payment stands, and a live
// region that says it. The keyboard's focus stays where the panel changes.

type Child = Node | string | undefined;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

export type Action = {
  readonly says: string;
  readonly run: () => void;
  readonly primary?: boolean;
  /** A data URL. */
  readonly icon?: string | undefined;
};

export type Card = {
  readonly headline: string;
  /** Something is under way. */
  readonly busy?: boolean;
  readonly mood?: 'ok' | 'warn' | 'bad';
  readonly sentences?: readonly string[];
  readonly more?: readonly Node[];
  readonly actions?: readonly Action[];
};

export type View = {
  readonly showCard: (card: Card) => void;
  /** Changes the last line of what is shown, unsaid. */
  readonly note: (text: string) => void;
};

export function createView(place: Element): View {
  const panel = element('div', { class: 'panel stack' });
  const said = element('p', { class: 'sr', role: 'status', 'aria-live': 'polite' });
  place.replaceChildren(panel, said);
  const notes = element('p', { class: 'note' });
  return {
    note: (text) => {
      notes.textContent = text;
    },
    showCard: ({ headline, busy = false, mood, sentences = [], more = [], actions = [] }) => {
      const heading = element('h2', busy ? { class: 'busy', tabindex: '-1' } : { tabindex: '-1' }, headline);
      notes.textContent = '';
      if (mood === undefined) delete panel.dataset['tone'];
      else panel.dataset['tone'] = mood;
      const texts = sentences.map((sentence) => element('p', {}, sentence));
      const isHeld = panel.contains(document.activeElement);
      const [first, rest] = [actions.filter(isTall), actions.filter((action) => !isTall(action))];
      const others = rest.length === 0 ? [] : [element('div', { class: 'row' }, ...rest.map(button))];
      panel.replaceChildren(heading, ...texts, ...more, notes, ...first.map(button), ...others);
      said.textContent = [`${headline}.`, ...sentences].join(' ');
      // The focused element is gone: reading goes on here.
      if (isHeld) heading.focus({ preventScroll: true });
    },
  };
}

/** Has a line of its own. */
function isTall({ primary, icon }: Action): boolean {
  return primary === true || icon !== undefined;
}

export function button({ says, run, primary = false, icon }: Action): HTMLButtonElement {
  const picture = icon === undefined ? undefined : element('img', { src: icon, alt: '', width: '28', height: '28' });
  const kind = primary ? 'primary' : icon === undefined ? '' : 'wallet';
  const made = element('button', { type: 'button', class: kind }, picture, says);
  made.addEventListener('click', run);
  return made;
}

/** A list of names and what they stand for. */
export function facts(rows: readonly (readonly [name: string, value: Child])[]): HTMLElement {
  const list = element('dl', { class: 'facts' });
  for (const [name, value] of rows)
    if (value !== undefined) list.append(element('dt', {}, name), element('dd', {}, value));
  return list;
}

/** A button that copies what `code` says, or marks it where a page may not copy. */
export function copyButton(code: HTMLElement, label: string): HTMLButtonElement {
  const copy = element('button', { type: 'button' }, label);
  copy.addEventListener('click', () => {
    getSelection()?.selectAllChildren(code);
    const { clipboard } = navigator as { readonly clipboard?: Clipboard };
    void clipboard?.writeText(code.textContent).then(() => {
      copy.textContent = 'Copied';
    });
  });
  return copy;
}

/** The ends of what is too long to be read. */
export function short(text: string): string {
  return text.length <= 24 ? text : `${text.slice(0, 8)}...${text.slice(-6)}`;
}
