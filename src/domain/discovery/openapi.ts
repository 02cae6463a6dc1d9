// Reads an OpenAPI document (3.0 or 3.1) as plain data: its operations, each ready to be shown, what of it may be told to
// everybody, and what an owner should know about it. Nothing in it is an error: what cannot be read is left out and named
// with its line. Bounded: many references to one large schema make no more than that many descriptions of a few kilobytes.
import { canonicalPath } from '../routing/target.ts';
import { FULL_FOLDING } from '../routing/profile.ts';
import { withoutInternal } from './internal-members.ts';
import { describeOperation, METHODS, type Description } from './operation.ts';
import { readOwnerDocument, type WrittenOperation } from './owner-document.ts';
import { createReferences, isPlain, memberOf, type References } from './schema-references.ts';

export type ApiOperation = {
  readonly method: string;
  /** Path from the root of the host: as the document writes it, behind the path of its first server. */
  readonly path: string;
  /** Description; undefined if nothing but the method can be shown. */
  readonly description: Description | undefined;
};

/** Finds the line of what stands at a path of the document. */
type LineOf = (path: readonly string[]) => number;
export type Remark = { readonly line: number; readonly message: string };

export type OpenApi = {
  readonly operations: readonly ApiOperation[];
  /** JSON of the OwnerDocument: the part that may be published. */
  readonly owner: string;
  /** Line of `paths` in the document. */
  readonly pathsLine: number;
  readonly remarks: readonly Remark[];
};

const MAX_OPERATIONS = 5_000;
/** Number of remarks of one kind at most; after these it is said how many there are. */
const MAX_REMARKS = 20;

/** Length of a route's pattern at most; no route names a longer path. */
const MAX_PATH = 512;

/** Runs work that may never end; undefined: it did not end in time, or failed. */
type WorkLimiter = <T>(work: () => T) => { readonly value: T } | undefined;

/**
 * Reads a document. `bounded` describes one operation: its schema may hold an expression that backtracks on its own
 * example.
 */
export function readOpenApi(written: unknown, lineOf: LineOf, bounded: WorkLimiter): OpenApi | Remark {
  const document = withoutInternal(written);
  const version = memberOf(document, 'openapi');
  const dialect = /^3\.([01])\.\d+/.exec(typeof version === 'string' ? version : '')?.[1];
  if (dialect === undefined)
    return { line: lineOf(['openapi']), message: 'is no OpenAPI document of version 3.0 or 3.1' };
  const unread = new Map<string, 'outside' | 'nothing'>();
  const references = createReferences(
    document,
    dialect === '0' ? '3.0' : '3.1',
    (reference, why) => void unread.set(reference, why),
  );
  const { operations: found, excess } = operationsOf(document, references);
  const late: Place[] = [];
  const operations = found.map(({ method, path, name, item, operation }): ApiOperation => {
    const described = bounded(() => describeOperation(method, item, operation, references));
    if (described === undefined) late.push(['paths', name, method.toLowerCase()]);
    return { method, path, description: described?.value };
  });
  const { owner, left } = readOwnerDocument(document, found);
  const pathsLine = lineOf(['paths']);
  const remarks: Remark[] = [];
  if (unread.size > 0) remarks.push(...remarksOn(unread, written, lineOf));
  if (late.length > 0) remarks.push(...remarksOnLate(late, lineOf));
  if (excess)
    remarks.push({ line: pathsLine, message: `holds more than ${MAX_OPERATIONS} operations; the rest is left out` });
  if (left > 0)
    remarks.push({ line: pathsLine, message: `holds more than can be published; ${left} operations are left out` });
  return { operations, owner: JSON.stringify(owner), pathsLine, remarks };
}

/** Place of an operation in the document. */
type Place = readonly ['paths', name: string, method: string];
/** Operation with its `name`: its path as the document writes it. */
type PlacedOperation = WrittenOperation & { readonly name: string };

function operationsOf(
  document: unknown,
  references: References,
): { readonly operations: readonly PlacedOperation[]; readonly excess: boolean } {
  const base = pathOfServer(memberOf(memberOf(document, 'servers'), 0));
  const operations: PlacedOperation[] = [];
  const paths = memberOf(document, 'paths');
  for (const [name, of] of Object.entries(isPlain(paths) ? paths : {})) {
    const path = base + name;
    const item = references.follow(of);
    if (!name.startsWith('/') || path.length > MAX_PATH || !isPlain(item)) continue;
    for (const method of METHODS) {
      const operation = memberOf(item, method.toLowerCase());
      if (!isPlain(operation)) continue;
      if (operations.length === MAX_OPERATIONS) return { operations, excess: true };
      operations.push({ method, path, name, item, operation });
    }
  }
  return { operations, excess: false };
}

function remarksOnLate(late: readonly Place[], lineOf: LineOf): readonly Remark[] {
  const remarks = late.slice(0, MAX_REMARKS).map((place) => ({
    line: lineOf(place),
    message: `${place[2].toUpperCase()} ${place[1]} takes too long to judge, as an expression does that backtracks on its own example; its method and template alone are told`,
  }));
  const [last] = late.slice(MAX_REMARKS - 1);
  const left = late.length - MAX_REMARKS;
  return last === undefined || left <= 0
    ? remarks
    : [...remarks, { line: lineOf(last), message: `and ${left} more operations like these` }];
}

/** Path of a server without a slash at its end; empty for the root. */
function pathOfServer(server: unknown): string {
  const url = memberOf(server, 'url');
  if (typeof url !== 'string') return '';
  const filled = url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const value = memberOf(memberOf(memberOf(server, 'variables'), name), 'default');
    return typeof value === 'string' ? value : '';
  });
  if (!URL.canParse(filled, 'http://server.invalid/')) return '';
  const path = new URL(filled, 'http://server.invalid/').pathname;
  const canonical = canonicalPath(path, { encodedSlashes: 'keep', doubleSlashes: 'merge', folding: FULL_FOLDING });
  return (canonical.ok ? canonical.path : path).replace(/\/+$/, '');
}

/** Collects every place of the references that could not be read. */
function remarksOn(
  unread: ReadonlyMap<string, 'outside' | 'nothing'>,
  document: unknown,
  lineOf: LineOf,
): readonly Remark[] {
  const found: Remark[] = [];
  let left = 0;
  const walk = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      const why = name === '$ref' && typeof member === 'string' ? unread.get(member) : undefined;
      if (why === undefined) walk(member, [...path, name]);
      else if (found.length === MAX_REMARKS) left++;
      else found.push({ line: lineOf([...path, name]), message: REMARKS[why] });
    }
  };
  walk(document, []);
  const last = found.at(-1);
  if (left > 0 && last !== undefined)
    found.push({ line: last.line, message: `and ${left} more references like these` });
  return found;
}

const REMARKS = {
  outside: 'refers to something outside this file, which is not read; write it into the file',
  nothing: 'refers to nothing in this file',
} as const;
