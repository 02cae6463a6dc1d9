// Routes for many paths at once: each path literally, as an operator would protect it who knows what patterns take for
// syntax.
import { parsePattern } from '../../src/domain/routing/pattern.ts';
import type { Route } from '../../src/domain/routing/route.ts';
import { route } from '../cases/routes.ts';

/** The paths of `targets` that can stand in a pattern, decoded, each with its pattern; one for each folded form. */
export function protect(targets: readonly string[]): Map<string, string> {
  const patterns = new Map<string, string>();
  const keys = new Set<string>();
  for (const target of targets) {
    const path = target.split('?')[0] ?? '';
    const text = path.replace(/[*+()[\]{}:]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
    const parsed = parsePattern(text);
    if (!parsed.ok || keys.has(parsed.pattern.key)) continue;
    keys.add(parsed.pattern.key);
    patterns.set(decodeURIComponent(path).replace(/(?<=.)\/$/, ''), text);
  }
  return patterns;
}

export function routesFor(patterns: ReadonlyMap<string, string>): Route[] {
  return [...patterns.values()].map((pattern, index) => route('GET', { id: `route-${index}`, pattern }));
}
