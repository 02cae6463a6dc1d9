// Turns schemas of an OpenAPI document into JSON Schemas that stand by themselves. References are replaced by what they
// name, and cut where they lead back to themselves. Words of OpenAPI 3.0 that JSON Schema spells otherwise are
// rewritten; all other words stay. A schema that grows beyond what could be shown is given up, so that a few references
// cannot make endless work.

type Dialect = '3.0' | '3.1';

export type References = {
  /** `node`, or what it refers to, over any number of references; undefined: nothing readable. */
  readonly follow: (node: unknown) => unknown;
  /** `schema` without references; undefined: it is too large, or too deep. */
  readonly inline: (schema: unknown) => unknown;
  /** `value` as it is; undefined: it is too large, or too deep. */
  readonly copy: (value: unknown) => unknown;
};

/** A reference that leads out of the document, or to nothing in it. */
type UnreadListener = (reference: string, why: 'outside' | 'nothing') => void;

/** A schema with more letters and values does not fit into 4 KiB. */
const MAX_LETTERS = 4096;
const MAX_DEPTH = 16;
/** References to references. */
const MAX_STEPS = 32;

/** Words that hold schemas: one, many, or by name. */
const ONE = new Set(
  'not if then else items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties contentSchema'.split(
    ' ',
  ),
);
const MANY = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const NAMED = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Words that only references need, of which none are left. */
const FOR_REFERENCES = new Set('$ref $id $schema $anchor $dynamicAnchor $dynamicRef $defs definitions'.split(' '));

type PlainObject = Readonly<Record<string, unknown>>;

export function isPlain(value: unknown): value is PlainObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own member `name` of `value`. */
export function memberOf(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Reflect.get(value, name);
}

export function createReferences(document: unknown, dialect: Dialect, onUnread: UnreadListener): References {
  const lookUp = (reference: string): unknown => {
    if (!reference.startsWith('#')) {
      onUnread(reference, 'outside');
      return undefined;
    }
    const found = pointed(document, reference.slice(1));
    if (found === undefined) onUnread(reference, 'nothing');
    return found;
  };

  const follow = (node: unknown): unknown => {
    let at = node;
    for (let step = 0; step < MAX_STEPS; step++) {
      const reference = memberOf(at, '$ref');
      if (typeof reference !== 'string') return at;
      at = lookUp(reference);
    }
    return undefined;
  };

  return {
    follow,
    inline: (schema) => bounded((room) => inlineIn(room, schema, lookUp, dialect)),
    copy: (value) => bounded((room) => room.copy(value, 0)),
  };
}

class TooLargeError extends Error {}

/** The room that is left for what is made. */
type Room = {
  readonly take: (letters: number, depth: number) => void;
  readonly copy: (value: unknown, depth: number) => unknown;
  /** `value` with other members. */
  readonly map: (value: PlainObject, depth: number, to: (member: unknown, name: string) => unknown) => PlainObject;
};

/** Makes something in bounded room; undefined if there was too little. */
function bounded(make: (room: Room) => unknown): unknown {
  let left = MAX_LETTERS;
  const room: Room = {
    take: (letters, depth) => {
      left -= letters;
      if (left < 0 || depth > MAX_DEPTH) throw new TooLargeError();
    },
    copy: (value, depth) => {
      room.take(typeof value === 'string' ? value.length + 1 : 1, depth);
      if (Array.isArray(value)) return value.map((item) => room.copy(item, depth + 1));
      return isPlain(value) ? room.map(value, depth, (member) => room.copy(member, depth + 1)) : value;
    },
    // The member is defined, not assigned: one named __proto__ stays a member.
    map: (value, depth, to) =>
      Object.fromEntries(
        Object.entries(value).map(([name, member]) => {
          room.take(name.length, depth);
          return [name, to(member, name)];
        }),
      ),
  };
  try {
    return make(room);
  } catch (error) {
    if (error instanceof TooLargeError) return undefined;
    throw error;
  }
}

function inlineIn(room: Room, schema: unknown, lookUp: (reference: string) => unknown, dialect: Dialect): unknown {
  const open = new Set<unknown>();

  const visit = (node: unknown, depth: number): unknown => {
    if (!isPlain(node)) return room.copy(node, depth);
    room.take(1, depth);
    // A schema that holds itself says nothing more the second time.
    if (open.has(node)) return {};
    open.add(node);
    const written = write(node, depth);
    open.delete(node);
    return written;
  };
  const write = (node: PlainObject, depth: number): unknown => {
    const reference = memberOf(node, '$ref');
    if (typeof reference !== 'string') return rewrite(words(node, depth), dialect);
    const meant = visit(lookUp(reference) ?? {}, depth);
    // Version 3.0 reads nothing that stands beside a reference.
    const beside = dialect === '3.0' ? {} : words(node, depth);
    if (Object.keys(beside).length === 0) return meant;
    const all = memberOf(beside, 'allOf');
    return { ...beside, allOf: [meant, ...(Array.isArray(all) ? (all as unknown[]) : [])] };
  };
  const words = (node: PlainObject, depth: number): PlainObject => {
    const kept = Object.fromEntries(Object.entries(node).filter(([word]) => !FOR_REFERENCES.has(word)));
    return room.map(kept, depth, (value, word) => {
      if (ONE.has(word)) return visit(value, depth + 1);
      if (MANY.has(word) && Array.isArray(value)) return value.map((each) => visit(each, depth + 2));
      if (NAMED.has(word) && isPlain(value)) return room.map(value, depth, (each) => visit(each, depth + 2));
      return room.copy(value, depth + 1);
    });
  };

  return visit(schema, 0);
}

/** Rewrites `nullable` and `exclusiveMinimum: true` of 3.0 in the words of 3.1. */
function rewrite(schema: PlainObject, dialect: Dialect): PlainObject {
  if (dialect === '3.1') return schema;
  const { nullable, exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = schema;
  const { type, minimum, maximum, ...others } = rest;
  return {
    ...others,
    ...(type === undefined ? {} : { type: nullable === true && typeof type === 'string' ? [type, 'null'] : type }),
    ...bound('minimum', minimum, 'exclusiveMinimum', above),
    ...bound('maximum', maximum, 'exclusiveMaximum', below),
  };
}

function bound(name: string, value: unknown, exclusiveName: string, exclusive: unknown): PlainObject {
  if (exclusive === true && value !== undefined) return { [exclusiveName]: value };
  const kept = value === undefined ? {} : { [name]: value };
  return exclusive === undefined || typeof exclusive === 'boolean' ? kept : { ...kept, [exclusiveName]: exclusive };
}

/** Finds what `pointer` (RFC 6901, in a fragment) leads to in `document`. */
export function pointed(document: unknown, pointer: string): unknown {
  if (pointer === '') return document;
  if (!pointer.startsWith('/')) return undefined;
  let at = document;
  for (const step of pointer.slice(1).split('/')) {
    let name: string;
    try {
      name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    } catch {
      return undefined;
    }
    at = memberOf(at, name);
  }
  return at;
}
