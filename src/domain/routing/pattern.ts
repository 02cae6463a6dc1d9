// Route patterns: literal segments, parameters that fill a segment, one wildcard at the end. path-to-regexp reads the
// path syntax into tokens. No regular expression is ever built from a pattern. A pattern that could mean something else
// than its author thinks is refused with a sentence. It is never stored as a literal: a route that matches nothing
// protects nothing.
import { parse } from 'path-to-regexp';
import { foldSegment } from './fold.ts';
import { FULL_FOLDING } from './profile.ts';
import { canonicalPath } from './target.ts';

export type Segment =
  /** `text` is decoded; a matcher folds it. */
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'param'; readonly name: string }
  | { readonly kind: 'wildcard'; readonly name: string };

export type Pattern = {
  /** Text of the pattern as it was written. */
  readonly text: string;
  readonly segments: readonly Segment[];
  /** The fully folded form without parameter names. Two routes with one key and one method cannot exist. */
  readonly key: string;
};

export type PatternResult =
  | { readonly ok: true; readonly pattern: Pattern }
  | { readonly ok: false; readonly reason: string };

const MAX_LENGTH = 512;
/** Name of an unnamed trailing `/*` in the parameters of a match. */
const WILDCARD_NAME = 'wildcard';
/** Form of most segments: nothing to escape, to decode or to refuse. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
const NAME = '[A-Za-z_][A-Za-z0-9_]*';
/** Form of most patterns: they stand in the library's syntax already, except the wildcard's name. */
const PLAIN_PATTERN = new RegExp(`^(?=/)(?:/(?:[A-Za-z0-9_-]+|:${NAME}))*(?:/\\*|/)?$`);
const COLON_PARAM = new RegExp(`^:(${NAME})$`);
const BRACE_PARAM = new RegExp(`^\\{(${NAME})(?::(int|float|uuid|str))?\\}$`);
const WILDCARD = new RegExp(`^(?:\\*(${NAME})?|\\{(${NAME}):path\\})$`);

/** Reads `text`; `reason` is a sentence that says what is wrong and what to write instead. */
export function parsePattern(text: string): PatternResult {
  if (text.length > MAX_LENGTH) return refuse(`the pattern is longer than ${MAX_LENGTH} characters`);
  const translated = translate(text);
  if (!translated.ok) return translated;
  const segments = segmentsOf(translated.path);
  const names: string[] = [];
  for (const segment of segments) {
    if (segment.kind === 'literal') continue;
    if (names.includes(segment.name))
      return refuse(`the parameter ${segment.name} stands twice; give each its own name`);
    names.push(segment.name);
  }
  return { ok: true, pattern: new ReadPattern(text, segments) };
}

/** Pattern whose key is made when it is asked for: a matcher never asks. */
class ReadPattern implements Pattern {
  readonly text: string;
  readonly segments: readonly Segment[];
  private folded: string | undefined;

  constructor(text: string, segments: readonly Segment[]) {
    this.text = text;
    this.segments = segments;
  }

  get key(): string {
    return (this.folded ??= this.segments.map(keyPart).join('') || '/');
  }
}

/** Name that makes two routes one: the method and the key of the pattern. */
export function routeName(method: string, pattern: string): string {
  const parsed = parsePattern(pattern);
  return `${method} ${parsed.ok ? parsed.pattern.key : pattern}`;
}

function keyPart(segment: Segment): string {
  if (segment.kind !== 'literal') return segment.kind === 'param' ? '/{}' : '/{*}';
  const folded = foldSegment(segment.text, FULL_FOLDING);
  // The literal is encoded, so that none can be mistaken for the braces of a parameter.
  return `/${PLAIN.test(folded) ? folded : encodeURIComponent(folded)}`;
}

/** A pattern's segments in the syntax of path-to-regexp, every literal character escaped. */
function translate(text: string): { ok: true; path: string } | { ok: false; reason: string } {
  if (PLAIN_PATTERN.test(text)) return { ok: true, path: text.endsWith('*') ? text + WILDCARD_NAME : text };
  if (!text.startsWith('/')) return refuse('the pattern must start with a slash, such as /reports/*');
  if (text.includes('?'))
    return refuse('the pattern holds a query or a ?; a route protects a path, whatever its query');
  if (text.includes('#')) return refuse('the pattern holds a fragment; it never reaches a server');
  if (/[\u0000-\u001f\u007f]/.test(text)) return refuse('the pattern holds a control character');
  if (text.includes('//')) return refuse('the pattern holds an empty segment (//); write one slash');
  const parts = text.slice(1).split('/');
  let path = '';
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1;
    if (part === '') continue;
    if (PLAIN.test(part)) {
      path += `/${part}`;
      continue;
    }
    const param = COLON_PARAM.exec(part)?.[1] ?? BRACE_PARAM.exec(part)?.[1];
    if (param !== undefined) {
      path += `/:"${param}"`;
      continue;
    }
    const wildcard = WILDCARD.exec(part);
    if (wildcard) {
      if (!last) return refuse(`the wildcard ${part} must stand at the end; use :name for one segment`);
      path += `/*"${wildcard[1] ?? wildcard[2] ?? WILDCARD_NAME}"`;
      continue;
    }
    const literal = readLiteral(part);
    if (!literal.ok) return literal;
    path += `/${literal.text.replace(/[^A-Za-z0-9]/gu, (character) => `\\${character}`)}`;
  }
  return { ok: true, path: path || '/' };
}

function readLiteral(part: string): { ok: true; text: string } | { ok: false; reason: string } {
  const syntax = /[*+()[\]{}:]/.exec(part)?.[0];
  if (syntax === ':' || syntax === '{' || syntax === '}') {
    return refuse(
      `"${part}" looks like a parameter; one fills a whole segment as :name, {name} or {name:int|float|uuid|str}, {name:path} stands at the end; write %${syntax.charCodeAt(0).toString(16).toUpperCase()} for a literal ${syntax}`,
    );
  }
  if (syntax === '*') return refuse(`"${part}": a wildcard is a whole segment at the end, as in /prefix/*`);
  if (syntax !== undefined) {
    return refuse(
      `"${part}" looks like an expression; patterns have none, write %${syntax.charCodeAt(0).toString(16).toUpperCase()} for a literal ${syntax}`,
    );
  }
  // People write patterns in their own letters; requests carry them percent-encoded.
  let encoded: string;
  try {
    encoded = part.replace(/[^\x21-\x7e]+/gu, encodeURIComponent);
  } catch {
    return refuse('the pattern is not valid Unicode');
  }
  const canonical = canonicalPath(`/${encoded}`, {
    encodedSlashes: 'refuse',
    doubleSlashes: 'merge',
    folding: FULL_FOLDING,
  });
  if (!canonical.ok) return refuse(`"${part}" can never match: ${canonical.reason}`);
  const literal = decodeURIComponent(canonical.path.slice(1));
  const folded = foldSegment(literal, FULL_FOLDING);
  if (folded === '') return refuse('a segment is empty once ;parameters are taken off; leave them out');
  if (folded.includes('/')) return refuse('the pattern holds a look-alike of a slash; write a plain one');
  return { ok: true, text: literal };
}

/** Adds the literals of `text` up to `length`, where a segment ends. */
function addLiterals(segments: Segment[], text: string, length: number): void {
  for (let at = 0; at < length;) {
    const slash = text.indexOf('/', at);
    const end = slash < 0 ? text.length : slash;
    if (end > at) segments.push({ kind: 'literal', text: text.slice(at, end) });
    at = end + 1;
  }
}

function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  // The segments up to the first one with a mark are text: the library has nothing to read there, letter by letter.
  const mark = path.search(/[:*\\]/);
  const start = mark < 0 ? path.length : path.lastIndexOf('/', mark);
  addLiterals(segments, path, start);
  if (mark < 0) return segments;
  for (const token of parse(path.slice(start)).tokens) {
    switch (token.type) {
      case 'text':
        addLiterals(segments, token.value, token.value.length);
        break;
      case 'param':
        segments.push({ kind: 'param', name: token.name });
        break;
      case 'wildcard':
        segments.push({ kind: 'wildcard', name: token.name });
        break;
      case 'group':
        throw new Error('a translated pattern has no groups');
      default:
        token satisfies never;
    }
  }
  return segments;
}

function refuse(reason: string): { ok: false; reason: string } {
  return { ok: false, reason };
}
