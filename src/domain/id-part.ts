// Charge ids as lists show them and as commands take them. What tells two charges of one route apart stands at the end of
// an id: its beginning says which route, price and second it was made for.

const PREFIX = 'chg_';
const GAP = '...';
const SHOWN = 12;

/** `chg_...` and the last characters; an id that is not longer than that stays whole. */
export function shortId(id: string): string {
  if (id.length <= PREFIX.length + GAP.length + SHOWN) return id;
  return `${PREFIX}${GAP}${id.slice(-SHOWN)}`;
}

/** What an id begins and ends with. */
export type IdPart = { readonly start: string; readonly end: string };

/** At least so many characters, so that nothing is meant by accident. */
const LEAST = 6;

/** A whole id, its beginning, its end, or both with dots in between; undefined if `text` is none of them. */
export function readIdPart(text: string): IdPart | undefined {
  const [, prefix = '', start = '', gap = '', end = ''] =
    /^(chg_)?([A-Za-z0-9_-]{0,124})(?:(\.{2,3}|\u2026)([A-Za-z0-9_-]{0,124}))?$/.exec(text) ?? [];
  if (start.length + end.length < LEAST) return undefined;
  if (gap !== '') return { start: PREFIX + start, end };
  return prefix === '' ? { start: PREFIX, end: start } : { start: PREFIX + start, end: '' };
}

export function isOfPart(id: string, { start, end }: IdPart): boolean {
  return id.startsWith(start) && id.endsWith(end);
}
