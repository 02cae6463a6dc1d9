// The types of `tollgate/client`, made of the OpenAPI document: src/client/schema.ts. `npm run map` writes the file;
// test/client/schema.test.ts holds it against the document. A keyword of JSON Schema that is not known here throws.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { API } from '../../src/registry/api.ts';
import { describeApi } from '../../src/registry/http/openapi-document.ts';

export const CLIENT_SCHEMA = path.resolve(import.meta.dirname, '../../src/client/schema.ts');
const HEAD = `// What the registry takes and answers, as types: made from its OpenAPI document by \`npm run map\`, which a test holds. Whatever
// is wrong here is wrong there. \`Schemas\` are its components, \`Operations\` its paths with their methods.

`;

type Json = Readonly<Record<string, unknown>>;
type Schema = Json;

export function readClientSchema(): string {
  return readFileSync(CLIENT_SCHEMA, 'utf8');
}

export function renderClientSchema(document: Json = JSON.parse(JSON.stringify(describeApi(API, '0.0.0')))): string {
  const { schemas } = membersOf(document['components']);
  const components = Object.entries(membersOf(schemas)).map(([name, schema]) =>
    memberOf({ name, schema: membersOf(schema), isRequired: true, depth: 1 }),
  );
  const operations = Object.entries(membersOf(document['paths'])).map(([at, item]) => {
    const methods = Object.entries(membersOf(item)).flatMap(([method, each]) =>
      isForPrograms(membersOf(each)) ? [operationOf(method, membersOf(each))] : [],
    );
    return methods.length === 0 ? '' : `  '${at}': {\n${methods.join('')}  };\n`;
  });
  return `${HEAD}export interface Schemas {\n${components.join('')}}\n\nexport interface Operations {\n${operations.join('')}}\n`;
}

/** Whether an operation answers something itself; others lead a browser elsewhere. */
function isForPrograms(operation: Json): boolean {
  return Object.keys(membersOf(operation['responses'])).some((status) => status.startsWith('2'));
}

/** One method of a path: what it takes, and what it answers if all is well. */
function operationOf(method: string, operation: Json): string {
  const parameters = listOf(operation['parameters']).map(membersOf);
  const inside = (place: string): string => {
    const members = parameters
      .filter((each) => each['in'] === place)
      .map(({ name, schema, required }) =>
        memberOf({
          ...{ name: String(name), schema: membersOf(schema), isRequired: required === true, depth: 4 },
          mayBeUndefined: place === 'query' && required !== true,
        }),
      );
    if (members.length === 0) return '';
    const isNeeded = parameters.some((each) => each['in'] === place && each['required'] === true);
    return `      ${place === 'path' ? 'params' : place}${isNeeded ? '' : '?'}: {\n${members.join('')}      };\n`;
  };
  const body = mediaOf(operation['requestBody']);
  const responses = Object.entries(membersOf(operation['responses'])).map(
    ([status, each]) => [status, membersOf(each)] as const,
  );
  const fine = responses.filter(([status]) => status.startsWith('2'));
  const answers = new Set(
    fine.map(([, response]) => {
      const schema = mediaOf(response);
      return schema === undefined ? 'undefined' : typeOf(schema, 3);
    }),
  );
  const events = fine.map(([, response]) => response['x-events']).find((each) => each !== undefined);
  const told = Object.entries(membersOf(events)).map(([name, schema]) =>
    memberOf({ name, schema: membersOf(schema), isRequired: true, depth: 4 }),
  );
  return [
    `    /** ${[`${textOf(operation['summary'])}.`, textOf(operation['description'])].filter((each) => each !== '').join(' ')} */\n`,
    `    ${method.toUpperCase()}: {\n`,
    ...[inside('path'), inside('query')],
    body === undefined ? '' : `      body: ${typeOf(body, 3)};\n`,
    told.length > 0
      ? `      events: {\n${told.join('')}      };\n`
      : `      answer: ${[...answers].join(' | ') || 'undefined'};\n`,
    responses.some(([status]) => status === '304') ? '      unchanged: true;\n' : '',
    '    };\n',
  ].join('');
}

/** The schema of the first media type of a body or an answer. */
function mediaOf(of: unknown): Schema | undefined {
  const [media] = Object.values(membersOf(membersOf(of)['content']));
  return media === undefined ? undefined : membersOf(membersOf(media)['schema']);
}

type Member = {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  /** How far it is indented, two spaces each. */
  readonly depth: number;
  readonly mayBeUndefined?: boolean;
};

function memberOf({ name, schema, isRequired, depth, mayBeUndefined = false }: Member): string {
  const space = '  '.repeat(depth);
  const { description } = schema;
  const told = typeof description === 'string' ? `${space}/** ${description.replaceAll('*/', '* /')} */\n` : '';
  const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`;
  const type = `${typeOf(schema, depth)}${mayBeUndefined ? ' | undefined' : ''}`;
  return `${told}${space}${key}${isRequired ? '' : '?'}: ${type};\n`;
}

/** Keywords that say something about values which TypeScript has no type for, or that are words for people. */
const UNTYPED = new Set([
  ...['description', 'examples', 'format', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems'],
  ...['maxItems', 'contentEncoding', 'propertyNames'],
]);
const TYPED = new Set([
  ...['$ref', 'anyOf', 'type', 'properties', 'required', 'items', 'additionalProperties', 'enum', 'const'],
]);

function typeOf(schema: Schema, depth: number): string {
  const unknown = Object.keys(schema).filter((keyword) => !UNTYPED.has(keyword) && !TYPED.has(keyword));
  if (unknown.length > 0)
    throw new Error(`${unknown.join(', ')} has no type: say in test/support/client-schema.ts what it becomes`);
  const { $ref, anyOf, enum: listed, const: fixed, type } = schema;
  if (typeof $ref === 'string') return `Schemas['${$ref.replace('#/components/schemas/', '')}']`;
  if (fixed !== undefined) return literal(fixed);
  if (Array.isArray(listed)) return listed.map(literal).join(' | ');
  if (Array.isArray(anyOf)) return [...new Set(anyOf.map((each) => typeOf(membersOf(each), depth)))].join(' | ');
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each }, depth)).join(' | ');
  switch (type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array': {
      const items = membersOf(schema['items']);
      const isUnion = ['anyOf', 'enum', 'type'].some((keyword) => Array.isArray(items[keyword]));
      return isUnion ? `(${typeOf(items, depth)})[]` : `${typeOf(items, depth)}[]`;
    }
    case 'object':
      return objectOf(schema, depth);
    default:
      return 'unknown';
  }
}

function objectOf(schema: Schema, depth: number): string {
  const required = listOf(schema['required']);
  const members = Object.entries(membersOf(schema['properties'])).map(([name, each]) =>
    memberOf({ name, schema: membersOf(each), isRequired: required.includes(name), depth: depth + 1 }),
  );
  const space = '  '.repeat(depth);
  if (members.length > 0) return `{\n${members.join('')}${space}}`;
  const others = schema['additionalProperties'];
  if (others === undefined || others === false) return 'Record<string, never>';
  const names = membersOf(schema['propertyNames'])['enum'];
  const keys = Array.isArray(names) ? names.map(literal).join(' | ') : 'string';
  const value = typeof others === 'object' ? typeOf(membersOf(others), depth) : 'unknown';
  const record = `Record<${keys}, ${value}>`;
  return Array.isArray(names) && required.length === 0 ? `Partial<${record}>` : record;
}

/** A value as TypeScript writes it. */
function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function membersOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
