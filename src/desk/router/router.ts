// The router: the address as signals, links that stay in the page, and changes of the query. Links are plain `<a href>`, so a
// middle click and "copy link" work as everywhere.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { readPlace, type Place } from './view-addresses.ts';

export type Router = {
  readonly place: ReadonlySignal<Place | null>;
  readonly query: ReadonlySignal<URLSearchParams>;
  /** What this entry of the history keeps beside its address. */
  readonly state: ReadonlySignal<unknown>;
  readonly go: (href: string, options?: { readonly replace?: boolean; readonly state?: unknown }) => void;
  /** Sets members of the query; null takes one out. Replaces the entry of the history unless `push` is set. */
  readonly setQuery: (values: Readonly<Record<string, string | null>>, options?: { readonly push?: boolean }) => void;
};

type Address = { readonly pathname: string; readonly search: string; readonly state: unknown };

export function createRouter(window: Window): Router {
  const read = (): Address => ({
    pathname: window.location.pathname,
    search: window.location.search,
    state: window.history.state,
  });
  const address = signal(read());
  const update = (): void => {
    address.value = read();
  };
  window.addEventListener('popstate', update);
  const go: Router['go'] = (href, { replace = false, state = null } = {}) => {
    if (replace) window.history.replaceState(state, '', href);
    else window.history.pushState(state, '', href);
    update();
    if (!replace) window.scrollTo(0, 0);
  };
  window.document.addEventListener('click', (event) => {
    const href = linkOf(event, window.location.origin);
    if (href === null) return;
    event.preventDefault();
    go(href);
  });
  const place = computed(() => readPlace(address.value.pathname));
  return {
    place: computed(() => place.value),
    query: computed(() => new URLSearchParams(address.value.search)),
    state: computed(() => address.value.state),
    go,
    setQuery: (values, { push = false } = {}) => {
      const query = new URLSearchParams(window.location.search);
      for (const [name, value] of Object.entries(values))
        if (value === null || value === '') query.delete(name);
        else query.set(name, value);
      const text = query.toString();
      const href = window.location.pathname + (text === '' ? '' : `?${text}`);
      if (push) window.history.pushState(null, '', href);
      else window.history.replaceState(null, '', href);
      update();
    },
  };
}

/** The address of a plain click on a link within the desk; null: the browser's own business. */
function linkOf(event: MouseEvent, origin: string): string | null {
  if (event.defaultPrevented || event.button !== 0) return null;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== '' || link.hasAttribute('download')) return null;
  if (link.origin !== origin || link.hash !== '' || readPlace(link.pathname) === null) return null;
  return link.pathname + link.search;
}
