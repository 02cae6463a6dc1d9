// Finds the route that applies to a path: a trie over folded segments, compiled once per set of routes and never
// changed while it serves. Precedence is total and written as the order of the walk: literal over parameter over
// wildcard, segment by segment, and only routes whose method matches too compete; then exact method over `*`.
// No regular expression is built from a pattern. test/domain/matcher.test.ts holds it against a linear oracle.
import { foldSegment } from './fold.ts';
import type { Pattern } from './pattern.ts';
import type { Folding } from './profile.ts';
import type { Route } from './route.ts';
import { createSegmentTable } from './segment-table.ts';

type Entry = { readonly method: string; readonly route: Route };

type Node = {
  readonly number: number;
  /** Some literal leads on from here, through the table. */
  hasLiterals: boolean;
  param: Node | undefined;
  /** Routes that end here. */
  ends: Entry[] | undefined;
  /** Routes whose wildcard stands here: they cover this path and everything below. */
  wildcards: Entry[] | undefined;
};

/** `other_methods`: some pattern matches, no route of it the method. */
export type Found = Route | 'other_methods' | undefined;

export type Matcher = {
  /** The route for `method` on `key` (a key of fold.ts). */
  readonly find: (key: string, method: string) => Found;
  /** Every route whose pattern matches `key`, whatever its method, most specific first. */
  readonly findAll: (key: string) => Route[];
};

export type MatcherBuilder = {
  /** Returns the route that stands there already with this method, if one does: then nothing was added. */
  readonly add: (route: Route, pattern: Pattern) => Route | undefined;
  readonly matcher: Matcher;
};

/** An empty matcher and the way to fill it: route by route, so that a large set can be compiled in slices. */
export function createMatcher(folding: Folding): MatcherBuilder {
  const table = createSegmentTable();
  const nodes: Node[] = [];
  const addNode = (): Node => {
    const node = { number: nodes.length, hasLiterals: false, param: undefined, ends: undefined, wildcards: undefined };
    nodes.push(node);
    return node;
  };
  const root = addNode();

  const literalFrom = (node: Node, literal: string): Node => {
    const known = table.find(node.number, literal, 0, literal.length);
    if (known !== 0) return nodes[known] ?? root;
    const child = addNode();
    table.put(node.number, literal, child.number);
    node.hasLiterals = true;
    return child;
  };

  /** `at` is where the next segment of `key` starts; the length of `key` or more: none is left. */
  const walk = (node: Node, key: string, at: number, method: string): Found => {
    if (at >= key.length)
      return better(node.ends && pick(node.ends, method), node.wildcards && pick(node.wildcards, method));
    let found: Found;
    if (node.hasLiterals || node.param !== undefined) {
      const slash = key.indexOf('/', at);
      const end = slash < 0 ? key.length : slash;
      const child = node.hasLiterals ? table.find(node.number, key, at, end) : 0;
      if (child !== 0) found = walk(nodes[child] ?? root, key, end + 1, method);
      if (node.param !== undefined && typeof found !== 'object') {
        found = better(found, walk(node.param, key, end + 1, method));
      }
    }
    return node.wildcards === undefined ? found : better(found, pick(node.wildcards, method));
  };

  const collect = (node: Node, key: string, at: number, into: Route[]): void => {
    if (at >= key.length) {
      for (const entry of node.ends ?? []) into.push(entry.route);
    } else {
      const slash = key.indexOf('/', at);
      const end = slash < 0 ? key.length : slash;
      const child = table.find(node.number, key, at, end);
      if (child !== 0) collect(nodes[child] ?? root, key, end + 1, into);
      if (node.param !== undefined) collect(node.param, key, end + 1, into);
    }
    for (const entry of node.wildcards ?? []) into.push(entry.route);
  };

  return {
    add: (route, pattern) => {
      let node = root;
      for (const segment of pattern.segments) {
        if (segment.kind === 'wildcard') return put((node.wildcards ??= []), route);
        node =
          segment.kind === 'param' ? (node.param ??= addNode()) : literalFrom(node, foldSegment(segment.text, folding));
      }
      return put((node.ends ??= []), route);
    },
    matcher: {
      find: (key, method) => walk(root, key, firstSegment(key), method),
      findAll: (key) => {
        const found: Route[] = [];
        collect(root, key, firstSegment(key), found);
        return found;
      },
    },
  };
}

function firstSegment(key: string): number {
  return key.length > 1 ? 1 : key.length;
}

function put(entries: Entry[], route: Route): Route | undefined {
  const { method } = route;
  const other = entries.find((entry) => entry.method === method);
  if (other === undefined) entries.push({ method, route });
  return other?.route;
}

/** A route before none, the more specific one first; that other methods match is remembered. */
function better(specific: Found, general: Found): Found {
  return typeof specific === 'object' || general === undefined ? specific : general;
}

/** Exact method first; HEAD is answered by what answers GET; then `*`. */
function pick(entries: readonly Entry[], method: string): Found {
  let get: Route | undefined;
  let any: Route | undefined;
  for (const entry of entries) {
    if (entry.method === method) return entry.route;
    if (entry.method === '*') any = entry.route;
    else if (method === 'HEAD' && entry.method === 'GET') get = entry.route;
  }
  return get ?? any ?? 'other_methods';
}
