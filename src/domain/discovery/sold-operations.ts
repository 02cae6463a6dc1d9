// Finds what is sold: the operations that an active route protects and `exclude` does not name. Whether a request costs
// something, and how much, is asked of the same look-up that the proxy uses, so a document never tells another price.
import { parsePattern, type Pattern } from '../pattern.ts';
import type { Resolution } from '../resolve.ts';
import type { Route } from '../route.ts';
import { covers, escapeSegment, folded, isExcluded } from './exclusion.ts';
import { METHODS } from './operation.ts';
import type { OwnerOperation } from './owner-document.ts';
import { decoded, fits } from './paths.ts';

export type SoldOperation = {
  readonly method: string;
  /** A path template of OpenAPI. */
  readonly path: string;
  readonly route: Route;
  /** Undefined: the owner's document has none. */
  readonly operation: OwnerOperation | undefined;
};

/**
 * `wildcard`: no path template says it, and no operation stands for it. `shadowed`: another route takes its requests.
 * `method`: no document can name it.
 */
export type LeftOutReason = 'paused' | 'excluded' | 'unpayable' | 'wildcard' | 'method' | 'shadowed' | 'no_room';
export type LeftOut = { readonly method: string; readonly pattern: string; readonly why: LeftOutReason };

export type Sold = { readonly operations: readonly SoldOperation[]; readonly leftOut: readonly LeftOut[] };

type SoldQuestion = {
  readonly routes: readonly Route[];
  /** The same routes as the proxy looks them up. */
  readonly resolve: (method: string, path: string) => Resolution;
  /** Whether somebody could pay for it. */
  readonly isPayable: (route: Route) => boolean;
  readonly exclude: readonly Pattern[];
  readonly operations: readonly OwnerOperation[];
};

/** Methods that OpenAPI can say and a client may ask with. */
const SAYABLE: ReadonlySet<string> = new Set([...METHODS, 'OPTIONS']);
/** Of a route for any method if no document says more. */
const ANY = ['GET', 'POST'];
/** Operations under further paths: more than a document has room for. */
const MOST_CANDIDATES = 20_000;
/** Stands where a path is filled in: no literal of a route is spelled so. */
const SAMPLE = 'x7f3sample9qz';

export function findSold(question: SoldQuestion): Sold {
  const { routes, isPayable, operations, exclude } = question;
  const tree = createTree(operations);
  const found = new Map<string, SoldOperation & { readonly index: number; readonly isWhole: boolean }>();
  const leftOut: LeftOut[] = [];
  /** Those that the document has no operation for, and have a path template. */
  const plain: { readonly route: Route; readonly pattern: Pattern }[] = [];
  const winner = createWinner(question);
  for (const route of routes) {
    const { method, pattern: written } = route;
    const leave = (why: LeftOutReason): void => void leftOut.push({ method, pattern: written, why });
    const parsed = parsePattern(written);
    if (!parsed.ok) continue;
    const { pattern } = parsed;
    if (route.status !== 'active') leave('paused');
    else if (!isPayable(route)) leave('unpayable');
    else if (exclude.some((each) => covers(each, pattern))) leave('excluded');
    else {
      let known = false;
      for (const { operation, index, path, sample, isWhole } of tree.meet(pattern, method)) {
        if (winner(operation.method, sample) !== route) continue;
        known = true;
        const key = `${operation.method} ${path}`;
        if (isExcluded(sample, exclude)) continue;
        if (found.size >= MOST_CANDIDATES) leave('no_room');
        else if (!found.has(key)) found.set(key, { method: operation.method, path, route, operation, index, isWhole });
      }
      if (known) continue;
      if (pattern.segments.some(({ kind }) => kind === 'wildcard')) leave('wildcard');
      else if (method !== '*' && !SAYABLE.has(method)) leave('method');
      else plain.push({ route, pattern });
    }
  }
  const described = [...found.values()].toSorted(
    (a, b) => Number(b.isWhole) - Number(a.isWhole) || a.index - b.index || compare(a.path, b.path),
  );
  const undescribed = findPlain(plain, described, winner, leftOut);
  return { operations: [...described, ...undescribed], leftOut };
}

/** Routes without an operation stand as their patterns. */
function findPlain(
  plain: readonly { readonly route: Route; readonly pattern: Pattern }[],
  described: readonly SoldOperation[],
  winner: (method: string, sample: string) => Route | undefined,
  leftOut: LeftOut[],
): readonly SoldOperation[] {
  // No document has two paths that differ in the names of their parameters alone.
  const paths = new Map(described.map(({ path }) => [shapeOf(path), path]));
  const taken = new Set(described.map(({ method, path }) => `${method} ${path}`));
  const ordered = plain
    .map((each) => ({ ...each, template: templateOf(each.pattern) }))
    .toSorted((a, b) => compare(a.template, b.template) || compare(a.route.method, b.route.method));
  return ordered.flatMap(({ route, pattern, template }) => {
    const shape = shapeOf(template);
    const path = paths.get(shape) ?? template;
    const sample = sampleOf(pattern);
    const methods = route.method === '*' ? ANY : [route.method];
    const operations = methods.flatMap((method): SoldOperation[] => {
      const key = `${method} ${path}`;
      if (winner(method, sample) !== route || taken.has(key)) return [];
      taken.add(key);
      return [{ method, path, route, operation: undefined }];
    });
    if (operations.length === 0) leftOut.push({ method: route.method, pattern: route.pattern, why: 'shadowed' });
    else paths.set(shape, path);
    return operations;
  });
}

/** The active route that a request for `sample` pays for. */
function createWinner({ resolve }: SoldQuestion): (method: string, sample: string) => Route | undefined {
  return (method, sample) => {
    const resolution = resolve(method, sample);
    if (!resolution.ok || resolution.match.kind !== 'route') return undefined;
    const { route } = resolution.match;
    return route.status === 'active' ? route : undefined;
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function templateOf({ segments }: Pattern): string {
  return (
    segments
      .map((segment) => (segment.kind === 'literal' ? `/${escapeSegment(segment.text)}` : `/{${segment.name}}`))
      .join('') || '/'
  );
}

function sampleOf({ segments }: Pattern): string {
  return (
    segments.map((segment) => `/${segment.kind === 'literal' ? escapeSegment(segment.text) : SAMPLE}`).join('') || '/'
  );
}

function shapeOf(path: string): string {
  return path.replace(/\{[^{}]*\}/g, '{}');
}

// The operations of a document as a tree by segments, so that 100,000 routes meet 5,000 operations in little time.

type Node = {
  readonly literals: Map<string, Node>;
  readonly templates: Map<string, { readonly parts: readonly string[]; readonly node: Node }>;
  readonly ends: { readonly operation: OwnerOperation; readonly index: number }[];
};

/** An operation under the paths that it shares with a pattern. `isWhole`: those are all of its own. */
type Meeting = {
  readonly operation: OwnerOperation;
  readonly index: number;
  readonly path: string;
  readonly sample: string;
  readonly isWhole: boolean;
};

type Tree = { readonly meet: (pattern: Pattern, method: string) => Iterable<Meeting> };

function createTree(operations: readonly OwnerOperation[]): Tree {
  const root = newNode();
  for (const [index, operation] of operations.entries()) {
    let node = root;
    for (const segment of segmentsOf(operation.path)) node = below(node, segment);
    node.ends.push({ operation, index });
  }
  return {
    meet: function* (pattern, method) {
      for (const { ends, filled } of reach(root, pattern.segments, 0, []))
        for (const { operation, index } of ends)
          if (method === '*' || method === operation.method) yield meeting(operation, index, filled);
    },
  };
}

function newNode(): Node {
  return { literals: new Map(), templates: new Map(), ends: [] };
}

function below({ literals, templates }: Node, segment: string): Node {
  const parts = partsOf(segment);
  if (parts.length === 1) {
    const name = folded({ text: decoded(segment) });
    const known = literals.get(name) ?? newNode();
    literals.set(name, known);
    return known;
  }
  const name = parts.join('{}');
  const known = templates.get(name) ?? { parts, node: newNode() };
  templates.set(name, known);
  return known.node;
}

/** `filled`: by segment, the pattern's literal in the place of a parameter. */
type Reached = Pick<Node, 'ends'> & { readonly filled: readonly (string | undefined)[] };

function* reach(
  node: Node,
  segments: Pattern['segments'],
  at: number,
  filled: readonly (string | undefined)[],
): Generator<Reached> {
  const segment = segments[at];
  if (segment === undefined || segment.kind === 'wildcard') {
    if (node.ends.length > 0) yield { ends: node.ends, filled };
    if (segment === undefined) return;
  } else if (segment.kind === 'literal') {
    const literal = node.literals.get(folded(segment));
    if (literal !== undefined) yield* reach(literal, segments, at + 1, [...filled, undefined]);
    for (const { parts, node: next } of node.templates.values())
      if (fits(parts, segment.text)) yield* reach(next, segments, at + 1, [...filled, segment.text]);
    return;
  }
  const next = segment.kind === 'wildcard' ? at : at + 1;
  for (const literal of node.literals.values()) yield* reach(literal, segments, next, [...filled, undefined]);
  for (const template of node.templates.values()) yield* reach(template.node, segments, next, [...filled, undefined]);
}

function meeting(operation: OwnerOperation, index: number, filled: readonly (string | undefined)[]): Meeting {
  const isWhole = filled.every((text) => text === undefined);
  const written = segmentsOf(operation.path);
  const told = written.map((segment, place) => {
    const text = filled[place];
    return text === undefined ? segment : escapeSegment(text);
  });
  const sample = told.map((segment) => `/${sampleSegment(segment)}`).join('') || '/';
  const path = isWhole ? operation.path : `/${told.join('/')}`;
  return { operation, index, path, sample, isWhole };
}

function sampleSegment(segment: string): string {
  const parts = partsOf(segment);
  return parts.length === 1 ? escapeSegment(decoded(segment)) : parts.map(escapeSegment).join(SAMPLE);
}

function partsOf(segment: string): readonly string[] {
  return segment.split(/\{[^{}]*\}/);
}

/** Without empty ones: no router here tells `/a/` from `/a`. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
