// Keeps the operations of a document as a tree by segments, so that 100,000 routes meet 5,000 operations in little
// time.
import type { Pattern } from '../routing/pattern.ts';
import { escapeSegment, folded } from './exclusion.ts';
import type { OwnerOperation } from './owner-document.ts';
import { decoded, fits } from './paths.ts';

/** Text that fills a parameter of a path: no literal of a route is spelled so. */
export const SAMPLE = 'x7f3sample9qz';

type Node = {
  readonly literals: Map<string, Node>;
  readonly templates: Map<string, { readonly parts: readonly string[]; readonly node: Node }>;
  readonly ends: { readonly operation: OwnerOperation; readonly index: number }[];
};

/** An operation under the paths that it shares with a pattern. `isWhole`: those are all of its own. */
export type Meeting = {
  readonly operation: OwnerOperation;
  readonly index: number;
  readonly path: string;
  readonly sample: string;
  readonly isWhole: boolean;
};

type Tree = { readonly meet: (pattern: Pattern, method: string) => Iterable<Meeting> };

export function createTree(operations: readonly OwnerOperation[]): Tree {
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

/** Place in the tree that a pattern reaches. `filled` has its literal for each parameter of the template. */
type TreePlace = Pick<Node, 'ends'> & { readonly filled: readonly (string | undefined)[] };

function* reach(
  node: Node,
  segments: Pattern['segments'],
  at: number,
  filled: readonly (string | undefined)[],
): Generator<TreePlace> {
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

/** Splits a path without empty segments: no router here tells `/a/` from `/a`. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
