// Judges what `discovery.exclude` keeps from being told: patterns against routes and paths. In doubt something is
// excluded: a reading of a path that any router could have is enough.
import { foldSegment } from '../routing/fold.ts';
import type { Pattern, Segment } from '../routing/pattern.ts';
import { FULL_FOLDING } from '../routing/profile.ts';
import { canonicalPath } from '../routing/target.ts';

/** Whether every path of `other` is one of `pattern`. */
export function covers({ segments }: Pattern, other: Pattern): boolean {
  for (const [index, segment] of segments.entries()) {
    if (segment.kind === 'wildcard') return true;
    const same = other.segments[index];
    if (same === undefined || same.kind === 'wildcard') return false;
    if (segment.kind === 'literal' && (same.kind !== 'literal' || folded(same) !== folded(segment))) return false;
  }
  return other.segments.length === segments.length;
}

export function folded({ text }: Pick<Extract<Segment, { kind: 'literal' }>, 'text'>): string {
  return foldSegment(text, FULL_FOLDING);
}

/** Tells whether a pattern covers `path` in any reading that a router could have. */
export function isExcluded(path: string, patterns: readonly Pattern[]): boolean {
  if (patterns.length === 0) return false;
  const read = canonicalPath(path, { encodedSlashes: 'keep', doubleSlashes: 'merge', folding: FULL_FOLDING });
  if (!read.ok) return true;
  const readings = [...read.keys, ...read.names].map((key) => key.split('/').filter((segment) => segment !== ''));
  return patterns.some((pattern) => readings.some((reading) => isOf(pattern, reading)));
}

function isOf({ segments }: Pattern, reading: readonly string[]): boolean {
  for (const [index, segment] of segments.entries()) {
    if (segment.kind === 'wildcard') return true;
    const text = reading[index];
    if (text === undefined || (segment.kind === 'literal' && folded(segment) !== text)) return false;
  }
  return reading.length === segments.length;
}

/** A literal segment as it stands in a URL. */
export function escapeSegment(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
