// The addresses of the desk: which view a path is, and back. Filters, range and page stand in the query, so that a link shows
// what its sender saw.

export const VIEWS = [
  ...(['overview', 'routes', 'try', 'charges', 'plans', 'passes'] as const),
  ...(['keys', 'receivers', 'audit', 'api'] as const),
] as const;
export type ViewName = (typeof VIEWS)[number];

/** `id`: the route, charge or pass whose panel is open. */
export type Place = { readonly view: ViewName; readonly id: string | null };

const WITH_ID: ReadonlySet<ViewName> = new Set(['routes', 'charges', 'passes']);

export function readPlace(pathname: string): Place | null {
  const [, desk, name = '', id = '', ...rest] = pathname.split('/');
  if (desk !== 'desk' || rest.length > 0) return null;
  if (name === '') return id === '' ? { view: 'overview', id: null } : null;
  const view = VIEWS.find((each) => each === name);
  if (view === undefined || view === 'overview') return null;
  if (id === '') return { view, id: null };
  const decoded = decode(id);
  return WITH_ID.has(view) && decoded !== null ? { view, id: decoded } : null;
}

export function hrefOf(view: ViewName, id: string | null = null): string {
  const path = view === 'overview' ? '/desk/' : `/desk/${view}`;
  return id === null ? path : `${path}/${encodeURIComponent(id)}`;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
