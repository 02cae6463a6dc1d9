// Reads a YAML document into plain data and remembers where everything stands. Environment variables are filled in here,
// inside scalars, after parsing; in a document that is not a configuration nothing is. Every message is ours: the parser's
// own sentences may quote the source, and the source may hold a secret.
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Node, type Scalar } from 'yaml';
import { interpolate, shieldExpressions, unshieldExpressions, type Env } from './environment.ts';
import type { Issue, Path } from './problems.ts';

type Position = { readonly line: number; readonly column: number };

type SourceDocument = {
  readonly data: unknown;
  readonly issues: readonly Issue[];
  /** Problems of the text itself; if there are any, `data` is not to be used. */
  readonly syntax: readonly (Position & { readonly message: string })[];
  /** Finds where `path` stands; one that is not there is found at the nearest parent that is. */
  readonly locate: (path: Path, at?: 'key') => Position;
  /** Whether the scalar at `path` was filled in from the environment. */
  readonly fromEnvironment: (path: Path) => boolean;
};

/** Offsets into the source; `key` is undefined for the root and for items of a list. */
type Place = {
  readonly key: number | undefined;
  readonly value: number;
  readonly filled: boolean;
  readonly children: Map<string | number, Place>;
};

type DocumentKind = {
  /** Name of the document in messages. */
  readonly name: string;
  /** Values in one document, aliases counted each time they are used: far above any that is meant, far below a bomb. */
  readonly maxValues: number;
  /** Fills in variables; undefined: nothing is filled in, and numbers may be keys. */
  readonly env: Env | undefined;
};

const MAX_DEPTH = 64;
/** Map that all values share that hold nothing, as most do. */
const NO_CHILDREN = new Map<string | number, Place>();

export function readDocument(source: string, env: Env): SourceDocument {
  return readDocumentOf({ name: 'configuration', maxValues: 100_000, env }, source);
}

export function readDocumentOf(kind: DocumentKind, source: string): SourceDocument {
  const start = { line: 1, column: 1 };
  const unreadable = (message: string, position: Position = start): SourceDocument => ({
    data: undefined,
    issues: [],
    syntax: [{ ...position, message }],
    locate: () => start,
    fromEnvironment: () => false,
  });
  const shielded = kind.env === undefined ? source : shieldExpressions(source);
  if (shielded === undefined) return unreadable('holds a Unicode noncharacter (U+FDD0 to U+FDD4); take it out');
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const document = parseDocument(shielded, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: false,
  });
  if (document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) {
    return unreadable(`holds more than ${MAX_DEPTH} levels; that is no ${kind.name}`);
  }
  if (document.errors.length > 0) {
    // One slip makes the parser stumble over what follows, to the end of the file: only the first error is one.
    const [first] = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
    return unreadable(syntaxMessage(first?.code ?? '', kind.name), position(first?.pos[0] ?? 0));
  }
  const { data, root, issues, excess } = convert(document, kind, position);
  if (excess !== undefined) return unreadable(`holds ${excess}; that is no ${kind.name}`);
  const find = (path: Path): { place: Place; complete: boolean } => {
    let place = root;
    for (const step of path) {
      const child = place.children.get(step);
      if (child === undefined) return { place, complete: false };
      place = child;
    }
    return { place, complete: true };
  };
  return {
    data,
    issues,
    syntax: [],
    locate: (path, at) => {
      const { place, complete } = find(path);
      return position(at === 'key' || !complete ? (place.key ?? place.value) : place.value);
    },
    fromEnvironment: (path) => {
      const { place, complete } = find(path);
      return complete && place.filled;
    },
  };
}

function convert(
  document: ReturnType<typeof parseDocument>,
  { env, maxValues }: DocumentKind,
  position: (offset: number) => Position,
): { data: unknown; root: Place; issues: Issue[]; excess: string | undefined } {
  const issues: Issue[] = [];
  const open = new Set<Node>();
  let values = 0;
  let excess: string | undefined;

  const scalar = (node: Scalar, path: Path, place: Omit<Place, 'filled'>): [unknown, Place] => {
    if (typeof node.value !== 'string' || env === undefined) return [node.value, { ...place, filled: false }];
    const { text, changed, problems } = interpolate(unshieldExpressions(node.value), env);
    for (const message of problems) issues.push({ path, message });
    return [problems.length > 0 ? '' : text, { ...place, filled: changed }];
  };

  const visit = (node: Node | null, path: Path, key: number | undefined, fallback: number): [unknown, Place] => {
    const place = {
      key,
      value: node?.range?.[0] ?? fallback,
      filled: false,
      children: isMap(node) || isSeq(node) || isAlias(node) ? new Map<string | number, Place>() : NO_CHILDREN,
    };
    values++;
    if (values > maxValues) excess ??= `more than ${maxValues} values, aliases counted where they are used`;
    if (path.length > MAX_DEPTH) excess ??= `more than ${MAX_DEPTH} levels`;
    if (node === null || excess !== undefined) return [null, place];
    if (!isAlias(node) && node.tag !== undefined && !CORE_TAGS.has(node.tag)) {
      issues.push({ path, message: 'has a tag; write the plain value' });
      return [undefined, place];
    }
    if (isScalar(node)) return scalar(node, path, place);
    const target = isAlias(node) ? node.resolve(document) : node;
    if (target === undefined || open.has(target)) {
      const reason =
        target === undefined ? 'refers to an anchor that is not set before it' : 'refers to an anchor that holds it';
      issues.push({ path, message: `${reason}; write the value out` });
      return [undefined, place];
    }
    if (target !== node) return visit(target, path, key, place.value);
    open.add(target);
    const result = isMap(target)
      ? visitMap(target.items, path, place)
      : visitList(isSeq(target) ? target.items : [], path, place);
    open.delete(target);
    return result;
  };

  const nameOf = (key: unknown): string | undefined => {
    const value = isScalar(key) ? key.value : undefined;
    if (env === undefined) return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
    return typeof value === 'string' ? unshieldExpressions(value) : undefined;
  };

  const visitMap = (pairs: readonly { key: unknown; value: unknown }[], path: Path, place: Place): [unknown, Place] => {
    const data: Record<string, unknown> = {};
    for (const pair of pairs) {
      const offset = nodeOffset(pair.key) ?? place.value;
      const name = nameOf(pair.key);
      if (name === undefined) {
        issues.push({
          path,
          message: `holds a key in line ${position(offset).line} that is not a word; write a name before the colon`,
        });
        continue;
      }
      const inside = [...path, name];
      const earlier = place.children.get(name);
      if (earlier !== undefined) {
        const first = position(earlier.key ?? earlier.value).line;
        place.children.set(name, { ...earlier, key: offset });
        issues.push({ path: inside, at: 'key', message: `stands twice; keep one, the first is in line ${first}` });
        continue;
      }
      const [value, child] = visit(toNode(pair.value), inside, offset, offset);
      // The key is defined, not assigned: one named __proto__ must stay a key.
      Object.defineProperty(data, name, { value, enumerable: true, writable: true, configurable: true });
      place.children.set(name, child);
    }
    return [data, place];
  };

  const visitList = (items: readonly unknown[], path: Path, place: Place): [unknown, Place] => {
    const data = items.map((item, index) => {
      const [value, child] = visit(toNode(item), [...path, index], undefined, place.value);
      place.children.set(index, child);
      return value;
    });
    return [data, place];
  };

  const [data, root] = visit(toNode(document.contents), [], undefined, 0);
  return { data, root, issues, excess };
}

const CORE_TAGS = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `tag:yaml.org,2002:${name}`),
);

function toNode(value: unknown): Node | null {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value) ? value : null;
}

function nodeOffset(value: unknown): number | undefined {
  return toNode(value)?.range?.[0];
}

function syntaxMessage(code: string, name: string): string {
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'is indented with a tab; use spaces';
    case 'MULTIPLE_DOCS':
      return `holds a second document (---); one file is one ${name}`;
    case 'BAD_INDENT':
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'BLOCK_IN_FLOW':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'is not valid YAML: check the indentation and the colons here and in the line before';
    case 'MISSING_CHAR':
      return 'is not valid YAML: a closing quote, bracket or comma is missing here or before';
    case 'BAD_SCALAR_START':
    case 'BAD_DQ_ESCAPE':
      return 'is not valid YAML: put the value in single quotes';
    default:
      return 'is not valid YAML: something stands here that cannot; quote values that hold : # { } [ ] , & * or quotes';
  }
}
