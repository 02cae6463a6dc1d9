// Judges whether a value fits a JSON Schema (2020-12), as every validator would say. No value fits a schema with a
// malformed word, or with one that cannot be judged here. Words that are no validator's business (`example`, `format`,
// `x-...`) are passed over. zod's `fromJSONSchema` cannot take its place: it drops `uniqueItems`, and every bound if no
// `type` stands beside it, and throws at `if`, `not` and `dependentRequired`. Source: JSON Schema 2020-12, Core and
// Validation.

type Words = Readonly<Record<string, unknown>>;

const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']);
/**
 * Words that are not judged: references, of which none is left; those of other versions; those that need the result of
 * others.
 */
const NOT_JUDGED = new Set(
  '$id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary $defs definitions nullable dependencies dependentSchemas unevaluatedItems unevaluatedProperties'.split(
    ' ',
  ),
);

const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isFinite = (value: unknown): value is number => Number.isFinite(value);
const isCount = (value: unknown): value is number => isFinite(value) && Number.isInteger(value) && value >= 0;
const isWords = (value: unknown): value is Words =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isNames = (value: unknown): value is readonly string[] =>
  isList(value) && value.every(isText) && new Set(value).size === value.length && !value.some(isInherited);
const isSchemas = (value: unknown): boolean => isList(value) && value.length > 0 && value.every(isSchema);
const isSchemaMap = (value: unknown): boolean =>
  isWords(value) && Object.entries(value).every(([name, schema]) => !isInherited(name) && isSchema(schema));
/** Tells whether a validator that reads `value[name]` finds it on any object. */
const isInherited = (name: string): boolean => name in Object.prototype;

/** The form of each word that has one. */
const FORMS = new Map<string, (value: unknown) => boolean>(
  Object.entries({
    $schema: isText,
    $comment: isText,
    title: isText,
    description: isText,
    format: isText,
    contentEncoding: isText,
    contentMediaType: isText,
    contentSchema: isSchema,
    deprecated: isFlag,
    readOnly: isFlag,
    writeOnly: isFlag,
    examples: isList,
    type: (value) =>
      isText(value) ? TYPES.has(value) : isNames(value) && value.length > 0 && value.every((name) => TYPES.has(name)),
    enum: (value) => isList(value) && value.length > 0,
    multipleOf: (value) => isFinite(value) && value > 0,
    minimum: isFinite,
    maximum: isFinite,
    exclusiveMinimum: isFinite,
    exclusiveMaximum: isFinite,
    minLength: isCount,
    maxLength: isCount,
    pattern: (value) => isText(value) && expressionOf(value) !== undefined,
    items: isSchema,
    prefixItems: isSchemas,
    contains: isSchema,
    minContains: isCount,
    maxContains: isCount,
    minItems: isCount,
    maxItems: isCount,
    uniqueItems: isFlag,
    properties: isSchemaMap,
    patternProperties: (value) =>
      isSchemaMap(value) && Object.keys(value as Words).every((text) => expressionOf(text) !== undefined),
    additionalProperties: isSchema,
    propertyNames: isSchema,
    required: isNames,
    dependentRequired: (value) =>
      isWords(value) && Object.entries(value).every(([name, names]) => !isInherited(name) && isNames(names)),
    minProperties: isCount,
    maxProperties: isCount,
    allOf: isSchemas,
    anyOf: isSchemas,
    oneOf: isSchemas,
    not: isSchema,
    if: isSchema,
    else: isSchema,
  }),
);
FORMS.set('then', isSchema);

/** Whether `schema` takes `value`; false as well if that cannot be said. Both are plain JSON of a bounded size. */
export function takes(schema: unknown, value: unknown): boolean {
  return isSchema(schema) && judge(schema, value);
}

function isSchema(schema: unknown): schema is boolean | Words {
  if (typeof schema === 'boolean') return true;
  if (!isWords(schema)) return false;
  return Object.entries(schema).every(([word, value]) => {
    if (NOT_JUDGED.has(word)) return false;
    return FORMS.get(word)?.(value) !== false;
  });
}

/** Judges `value` by `schema`, which has been found to be one. */
function judge(schema: unknown, value: unknown): boolean {
  if (!isWords(schema)) return schema === true;
  const { type, not } = schema;
  if (type !== undefined && ![type].flat().some((name) => isOfType(name, value))) return false;
  if (isList(schema['enum']) && !schema['enum'].some((each) => isSame(each, value))) return false;
  if (Object.hasOwn(schema, 'const') && !isSame(schema['const'], value)) return false;
  const taking = (word: string): readonly boolean[] | undefined =>
    listOf(schema, word)?.map((each) => judge(each, value));
  if (taking('allOf')?.includes(false) || taking('anyOf')?.includes(true) === false) return false;
  if ((taking('oneOf')?.filter(Boolean).length ?? 1) !== 1) return false;
  if (not !== undefined && judge(not, value)) return false;
  if (schema['if'] !== undefined) {
    const next = judge(schema['if'], value) ? schema['then'] : schema['else'];
    if (next !== undefined && !judge(next, value)) return false;
  }
  if (typeof value === 'number') return judgeNumber(schema, value);
  if (typeof value === 'string') return judgeText(schema, value);
  if (isList(value)) return judgeList(schema, value);
  return !isWords(value) || judgeObject(schema, value);
}

function judgeNumber(schema: Words, value: number): boolean {
  const { multipleOf } = schema;
  return (
    value >= numberOf(schema, 'minimum', -Infinity) &&
    value <= numberOf(schema, 'maximum', Infinity) &&
    value > numberOf(schema, 'exclusiveMinimum', -Infinity) &&
    value < numberOf(schema, 'exclusiveMaximum', Infinity) &&
    (!isFinite(multipleOf) || Number.isSafeInteger(value / multipleOf))
  );
}

function judgeText(schema: Words, value: string): boolean {
  const { pattern } = schema;
  // Length counts characters, not UTF-16 units.
  return (
    isWithin(Array.from(value).length, schema, 'Length') &&
    (!isText(pattern) || expressionOf(pattern)?.test(value) === true)
  );
}

function judgeList(schema: Words, value: readonly unknown[]): boolean {
  const { items, contains, uniqueItems } = schema;
  const first = listOf(schema, 'prefixItems') ?? [];
  if (!isWithin(value.length, schema, 'Items')) return false;
  if (
    !value.every((item, index) =>
      index < first.length ? judge(first[index], item) : items === undefined || judge(items, item),
    )
  )
    return false;
  if (uniqueItems === true && value.some((item, index) => value.slice(0, index).some((other) => isSame(item, other))))
    return false;
  if (contains === undefined) return true;
  const found = value.filter((item) => judge(contains, item)).length;
  return found >= numberOf(schema, 'minContains', 1) && found <= numberOf(schema, 'maxContains', Infinity);
}

function judgeObject(schema: Words, value: Words): boolean {
  const { properties, patternProperties, additionalProperties, propertyNames, required, dependentRequired } = schema;
  const names = Object.keys(value);
  const has = (name: string): boolean => Object.hasOwn(value, name);
  if (!isWithin(names.length, schema, 'Properties') || (isNames(required) && !required.every(has))) return false;
  if (isWords(dependentRequired)) {
    const missing = Object.entries(dependentRequired).some(
      ([name, others]) => has(name) && isNames(others) && !others.every(has),
    );
    if (missing) return false;
  }
  const patterns = isWords(patternProperties)
    ? Object.entries(patternProperties).map(([text, of]) => ({ expression: expressionOf(text), of }))
    : [];
  return names.every((name) => {
    const member = value[name];
    if (propertyNames !== undefined && !judge(propertyNames, name)) return false;
    const named = isWords(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [];
    const meant = patterns.filter(({ expression }) => expression?.test(name) === true).map(({ of }) => of);
    const all = [...named, ...meant];
    if (all.length === 0 && additionalProperties !== undefined) return judge(additionalProperties, member);
    return all.every((each) => judge(each, member));
  });
}

function isWithin(size: number, schema: Words, of: 'Length' | 'Items' | 'Properties'): boolean {
  return size >= numberOf(schema, `min${of}`, 0) && size <= numberOf(schema, `max${of}`, Infinity);
}

function numberOf(schema: Words, word: string, otherwise: number): number {
  const value = schema[word];
  return isFinite(value) ? value : otherwise;
}

function listOf(schema: Words, word: string): readonly unknown[] | undefined {
  const value = schema[word];
  return isList(value) ? value : undefined;
}

function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return isList(value);
    case 'object':
      return isWords(value);
    default:
      return typeof value === type;
  }
}

/** Compares two values as JSON; the order of members does not count. */
function isSame(a: unknown, b: unknown): boolean {
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  if (!isWords(a) || !isWords(b)) return a === b;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  );
}

function expressionOf(text: string): RegExp | undefined {
  try {
    return new RegExp(text, 'u');
  } catch {
    return undefined;
  }
}
