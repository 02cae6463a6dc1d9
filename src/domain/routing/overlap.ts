// Compares two patterns: whether some path is covered by both, and to which of the two it goes. The order is that of the
// matcher: segment by segment, literal over parameter over wildcard.
import { foldSegment } from './fold.ts';
import type { Pattern, Segment } from './pattern.ts';
import { FULL_FOLDING } from './profile.ts';

/**
 * Overlap of two patterns. Of the paths that both cover, `paths` has one for each way in which a third pattern could
 * cover them too: in `a`'s spelling, in `b`'s, and if `b` alone has a literal also in others that some router takes for
 * it.
 */
type Overlap =
  | { readonly kind: 'apart' }
  | { readonly kind: 'first' | 'second' | 'same'; readonly paths: readonly string[] };

/** Fills a segment in which neither pattern has a literal: no pattern that a person writes has it. */
const ANY = '0~';
/**
 * Numbers of segments that stand for what a wildcard covers: patterns with as many parameters differ there. The last is
 * more than a pattern of 512 characters can have.
 */
const DEPTHS: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 172];
/** Spellings that a router takes for a literal if it folds letter case, spaces around a segment, or parameters. */
const RESPELLED: readonly ((literal: string) => string)[] = [
  (literal) => encodeURIComponent(swapCase(literal)),
  (literal) => `%20${encodeURIComponent(literal)}`,
  (literal) => `${encodeURIComponent(literal)};x`,
];

/** The literals that two patterns have in one place of a path. */
type Part = { readonly a?: string | undefined; readonly b?: string | undefined };

export function overlapOf(a: Pattern, b: Pattern): Overlap {
  const parts: Part[] = [];
  let kind: 'first' | 'second' | 'same' = 'same';
  for (let index = 0; ; index++) {
    const [one, other] = [a.segments[index], b.segments[index]];
    if (one === undefined && other === undefined) return { kind, paths: pathsOf(parts) };
    if (one?.kind === 'wildcard' || other?.kind === 'wildcard') {
      // The wildcard covers what is left of the other one, and the end of it.
      const [rest, more] = one?.kind === 'wildcard' ? [b, 'second' as const] : [a, 'first' as const];
      if (kind === 'same' && one?.kind !== other?.kind) kind = more;
      for (const segment of fixedOf(rest).slice(index)) {
        const text = literalOf(segment);
        parts.push(rest === a ? { a: text } : { b: text });
      }
      return { kind, paths: pathsOf(parts, endsOpen(rest)) };
    }
    if (one === undefined || other === undefined) return { kind: 'apart' };
    if (one.kind === 'literal' && other.kind === 'literal') {
      if (foldSegment(one.text, FULL_FOLDING) !== foldSegment(other.text, FULL_FOLDING)) return { kind: 'apart' };
    } else if (kind === 'same' && one.kind !== other.kind) kind = one.kind === 'literal' ? 'first' : 'second';
    parts.push({ a: literalOf(one), b: literalOf(other) });
  }
}

/** Lists paths that `pattern` covers, one for each way in which another pattern could cover all of them. */
export function pathsCovered(pattern: Pattern): readonly string[] {
  const parts = fixedOf(pattern).map((segment): Part => ({ a: literalOf(segment) }));
  return pathsOf(parts, endsOpen(pattern));
}

function fixedOf({ segments }: Pattern): readonly Segment[] {
  return segments.filter(({ kind }) => kind !== 'wildcard');
}

function endsOpen({ segments }: Pattern): boolean {
  return segments.at(-1)?.kind === 'wildcard';
}

function literalOf(segment: Segment): string | undefined {
  return segment.kind === 'literal' ? segment.text : undefined;
}

function pathsOf(parts: readonly Part[], open = false): readonly string[] {
  const spell = (spelling: (part: Part) => string): string => parts.map((part) => `/${spelling(part)}`).join('');
  const plain = ({ a, b }: Part): string => encodeURIComponent(a ?? b ?? ANY);
  const spelled = new Set([spell(plain), spell(({ a, b }) => encodeURIComponent(b ?? a ?? ANY))]);
  if (parts.some(({ a, b }) => a === undefined && b !== undefined)) {
    for (const respell of RESPELLED)
      spelled.add(spell((part) => (part.a === undefined && part.b !== undefined ? respell(part.b) : plain(part))));
  }
  return [...spelled].flatMap((path) => (open ? DEPTHS : [0]).map((depth) => path + `/${ANY}`.repeat(depth) || '/'));
}

function swapCase(text: string): string {
  const upper = text.toUpperCase();
  return text === upper ? text.toLowerCase() : upper;
}
