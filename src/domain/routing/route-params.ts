// Values of the parameters of a route's pattern in a path, decoded. A trailing wildcard's value is the rest of the path, and
// may be empty.
import { LRUCache } from 'lru-cache';
import { parsePattern, type PatternResult } from './pattern.ts';
import type { Route } from './route.ts';

/** Patterns that are not read again. */
const patterns = new LRUCache<string, PatternResult>({ max: 1024, memoMethod: parsePattern });

export function paramsOf({ pattern }: Pick<Route, 'pattern'>, path: string): Record<string, string> {
  const parsed = patterns.memo(pattern);
  if (!parsed.ok) return {};
  const parts = path.split('/').filter((part) => part !== '');
  const entries = parsed.pattern.segments.flatMap((segment, index): [string, string][] => {
    switch (segment.kind) {
      case 'literal':
        return [];
      case 'param':
        return [[segment.name, decode(parts[index] ?? '')]];
      case 'wildcard':
        return [[segment.name, parts.slice(index).map(decode).join('/')]];
      default:
        return segment satisfies never;
    }
  });
  return Object.fromEntries(entries);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
