// The matcher again, in the plainest way there is: every route against every path, one after the other. Slow, short and
// obviously right; the trie has to agree with it.
import { foldSegment } from '../../src/domain/routing/fold.ts';
import { parsePattern, type Segment } from '../../src/domain/routing/pattern.ts';
import type { PathFolding } from '../../src/domain/routing/profile.ts';
import type { Route } from '../../src/domain/routing/route.ts';

const RANK = { literal: 0, param: 1, wildcard: 2 };

export function findLinear(
  routes: readonly Route[],
  key: string,
  method: string,
  folding: PathFolding,
): Route | undefined {
  const parts = key.split('/').filter((part) => part !== '');
  const candidates = routes.flatMap((route) => {
    const parsed = parsePattern(route.pattern);
    const accepted = [method, ...(method === 'HEAD' ? ['GET'] : []), '*'].indexOf(route.method);
    if (!parsed.ok || accepted < 0 || !covers(parsed.pattern.segments, parts, folding)) return [];
    // An end of the pattern where the path ends too is as good as a literal; a wildcard that matches nothing is not.
    const ranks = parsed.pattern.segments.map((segment) => RANK[segment.kind]);
    return [{ route, order: [...ranks, ...Array<number>(parts.length + 1 - ranks.length).fill(0), accepted] }];
  });
  candidates.sort(
    (a, b) => a.order.map((rank, i) => rank - (b.order[i] ?? 0)).find((difference) => difference !== 0) ?? 0,
  );
  return candidates[0]?.route;
}

function covers(segments: readonly Segment[], parts: readonly string[], folding: PathFolding): boolean {
  const wildcard = segments.at(-1)?.kind === 'wildcard';
  const fixed = wildcard ? segments.slice(0, -1) : segments;
  if (wildcard ? parts.length < fixed.length : parts.length !== fixed.length) return false;
  return fixed.every(
    (segment, i) =>
      segment.kind === 'param' || (segment.kind === 'literal' && foldSegment(segment.text, folding) === parts[i]),
  );
}
