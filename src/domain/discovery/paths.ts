// Finds the operation of a path. Of all templates that match the path, the most exact one wins, segment by segment, as
// OpenAPI says. A tree by segments, so that many operations cost a request no more than few.
import type { Pattern } from '../routing/pattern.ts';

/** Node of the tree, with the values of templates that end at it by method. */
type Node<T> = {
  readonly literals: Map<string, Node<T>>;
  /** Segments with parameters in them, by their text around these. */
  readonly templates: Map<string, Template<T>>;
  /** Templates in the order of a look-up: those with the most letters of their own first. */
  inOrder: readonly Template<T>[];
  readonly ends: Map<string, T>;
};

type Template<T> = { readonly parts: readonly string[]; readonly node: Node<T> };

export type Paths<T> = {
  /** Finds the value that applies to a canonical path. */
  readonly find: (method: string, path: string) => T | undefined;
  /** Whether some path of `pattern` has something; `*`: for any method. */
  readonly hasAny: (method: string, pattern: Pattern) => boolean;
};

type PathEntry<T> = { readonly method: string; readonly path: string; readonly value: T };

/** Builds the tree; of two entries with one template and method the first counts. */
export function createPaths<T>(entries: readonly PathEntry<T>[]): Paths<T> {
  const root = newNode<T>();
  for (const { method, path, value } of entries) {
    const { ends } = segmentsOf(path).reduce(below, root);
    if (!ends.has(method)) ends.set(method, value);
  }
  order(root);
  return {
    find: (method, path) => walk(root, segmentsOf(path), 0, method),
    hasAny: (method, { segments }) => reaches(root, segments, 0, method),
  };
}

function newNode<T>(): Node<T> {
  return { literals: new Map(), templates: new Map(), inOrder: [], ends: new Map() };
}

function below<T>({ literals, templates }: Node<T>, segment: string): Node<T> {
  const parts = segment.split(/\{[^{}]*\}/);
  if (parts.length === 1) {
    const name = decoded(segment);
    const known = literals.get(name) ?? newNode<T>();
    literals.set(name, known);
    return known;
  }
  const name = parts.join('{}');
  const known = templates.get(name) ?? { parts, node: newNode<T>() };
  templates.set(name, known);
  return known.node;
}

/** No template has more segments than a path of 512 characters. */
function order<T>(node: Node<T>): void {
  node.inOrder = [...node.templates.values()].toSorted((a, b) => lettersOf(b.parts) - lettersOf(a.parts));
  for (const literal of node.literals.values()) order(literal);
  for (const template of node.inOrder) order(template.node);
}

/** Walks the tree. Each node is on one way alone, so a walk meets it once at most. */
function walk<T>(node: Node<T>, segments: readonly string[], at: number, method: string): T | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.ends.get(method);
  const text = decoded(segment);
  const literal = node.literals.get(text);
  const found = literal && walk(literal, segments, at + 1, method);
  if (found !== undefined) return found;
  for (const { parts, node: next } of node.inOrder) {
    const value = fits(parts, text) ? walk(next, segments, at + 1, method) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

function reaches<T>(node: Node<T>, segments: Pattern['segments'], at: number, method: string): boolean {
  const segment = segments[at];
  if (segment === undefined) return method === '*' ? node.ends.size > 0 : node.ends.has(method);
  const all = [...node.literals.values(), ...node.inOrder.map((each) => each.node)];
  switch (segment.kind) {
    case 'literal': {
      const literal = node.literals.get(segment.text);
      const taking = node.inOrder.filter(({ parts }) => fits(parts, segment.text)).map((each) => each.node);
      return [...(literal === undefined ? [] : [literal]), ...taking].some((next) =>
        reaches(next, segments, at + 1, method),
      );
    }
    case 'param':
      return all.some((next) => reaches(next, segments, at + 1, method));
    case 'wildcard':
      return reaches(node, [], 0, method) || all.some((next) => reaches(next, segments, at, method));
    default:
      return segment satisfies never;
  }
}

/** Whether `text` is these parts with something between each two. */
export function fits(parts: readonly string[], text: string): boolean {
  const [first = ''] = parts;
  const last = parts.at(-1) ?? '';
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at + 1);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length > at;
}

/** Splits a path without empty segments: no router here tells `/a/` from `/a`. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** Decodes a segment as patterns have their literals; what cannot be decoded stands for itself. */
export function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function lettersOf(parts: readonly string[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}
