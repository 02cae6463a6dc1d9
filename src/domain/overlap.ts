// How two patterns lie to each other: whether some path is covered by both, and to which of the two it goes. The order is
// that of the matcher: segment by segment, literal over parameter over wildcard.
import { foldSegment } from './fold.ts';
import type { Pattern, Segment } from './pattern.ts';
import { FULL_FOLDING } from './profile.ts';

/** `paths`: of those that both cover one for each way in which a third pattern could cover them too; in `a`'s spelling. */
export type Overlap =
  | { readonly kind: 'apart' }
  | { readonly kind: 'first' | 'second' | 'same'; readonly paths: readonly string[] };

/** Fills a segment where neither pattern has a literal: no pattern that a person writes has it. */
const ANY = '0~';
/**
 * How many segments stand for what a wildcard covers: patterns with as many parameters differ there. The last is more than
 * a pattern of 512 characters can have.
 */
const DEPTHS: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 172];

export function overlapOf(a: Pattern, b: Pattern): Overlap {
  const parts: string[] = [];
  let kind: 'first' | 'second' | 'same' = 'same';
  for (let index = 0; ; index++) {
    const [one, other] = [a.segments[index], b.segments[index]];
    if (one === undefined && other === undefined) return { kind, paths: pathsOf(parts) };
    if (one?.kind === 'wildcard' || other?.kind === 'wildcard') {
      // It covers what is left of the other one, and the end of it.
      const [rest, more] = one?.kind === 'wildcard' ? [b, 'second' as const] : [a, 'first' as const];
      if (kind === 'same' && one?.kind !== other?.kind) kind = more;
      return { kind, paths: pathsOf(parts, rest.segments.slice(index)) };
    }
    if (one === undefined || other === undefined) return { kind: 'apart' };
    if (one.kind === 'literal' && other.kind === 'literal') {
      if (foldSegment(one.text, FULL_FOLDING) !== foldSegment(other.text, FULL_FOLDING)) return { kind: 'apart' };
    } else if (kind === 'same' && one.kind !== other.kind) kind = one.kind === 'literal' ? 'first' : 'second';
    parts.push(partOf(one.kind === 'literal' ? one : other));
  }
}

/** Of the paths that `pattern` covers one for each way in which another pattern could cover all of them. */
export function pathsCovered({ segments }: Pattern): readonly string[] {
  return pathsOf([], segments);
}

function pathsOf(parts: readonly string[], rest: readonly Segment[] = []): readonly string[] {
  const fixed = [...parts, ...rest.filter(({ kind }) => kind !== 'wildcard').map(partOf)];
  if (rest.at(-1)?.kind !== 'wildcard') return [`/${fixed.join('/')}`];
  return DEPTHS.map((depth) => `/${[...fixed, ...Array<string>(depth).fill(ANY)].join('/')}`);
}

function partOf(segment: Segment): string {
  return segment.kind === 'literal' ? encodeURIComponent(segment.text) : ANY;
}
