// What a person chose for this browser: the theme, and whether single keys do something. Kept for the origin; a browser that
// keeps nothing has the defaults.
import { effect, signal, type Signal } from '@preact/signals';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export type DeskChoices = { readonly theme: Signal<Theme>; readonly hasShortcuts: Signal<boolean> };

const THEME = 'tollgate-desk-theme';
const SHORTCUTS = 'tollgate-desk-shortcuts';

export function createSettings(storage: Storage | null, root: HTMLElement): DeskChoices {
  const kept = storage?.getItem(THEME);
  const theme = signal<Theme>(THEMES.find((each) => each === kept) ?? 'system');
  const hasShortcuts = signal(storage?.getItem(SHORTCUTS) !== 'off');
  effect(() => {
    if (theme.value === 'system') delete root.dataset['theme'];
    else root.dataset['theme'] = theme.value;
    keep(storage, THEME, theme.value === 'system' ? null : theme.value);
  });
  effect(() => keep(storage, SHORTCUTS, hasShortcuts.value ? null : 'off'));
  return { theme, hasShortcuts };
}

function keep(storage: Storage | null, name: string, value: string | null): void {
  if (value === null) storage?.removeItem(name);
  else storage?.setItem(name, value);
}
