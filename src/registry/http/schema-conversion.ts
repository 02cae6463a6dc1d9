// Converts the schemas that validate into JSON Schema for the OpenAPI document. Bodies are described as they are sent: a
// member with a default may be left out. The default stands in words, because generators of clients take a `default` for a
// promise that the member is always there, and then require it.
import { z } from 'zod';
import { describedAs, documented } from './schemas.ts';

export type Json = Readonly<Record<string, unknown>>;

const COMPONENTS = '#/components/schemas/';

const CONVERSION = {
  io: 'input',
  metadata: documented,
  override: ({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: object }): void => {
    Object.assign(jsonSchema, describedAs.get(zodSchema));
    if (!('default' in jsonSchema)) return;
    const { default: left, ...rest } = jsonSchema;
    const words = `Left out: ${JSON.stringify(left)}.`;
    const description =
      'description' in rest && typeof rest.description === 'string' ? `${rest.description} ${words}` : words;
    delete jsonSchema.default;
    Object.assign(jsonSchema, { description });
  },
} as const;

/** All schemas that the document names, by their id. */
export function componentsOf(): Json {
  const { schemas } = z.toJSONSchema(documented, { ...CONVERSION, uri: (id) => `${COMPONENTS}${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutDialect(schema)]));
}

export function writtenSchema(schema: z.ZodType): Json {
  return withoutDialect(z.toJSONSchema(schema, CONVERSION));
}

function withoutDialect({ $schema: _dialect, $id: _id, id: _name, ...schema }: Json): Json {
  return schema;
}

/** Schema as an operation holds it: a reference if it is a component or a list of one, else written out. */
export function schemaOf(schema: z.ZodType): Json {
  const id = documented.get(schema)?.id;
  if (id !== undefined) return { $ref: `${COMPONENTS}${id}` };
  if (schema instanceof z.ZodArray && schema.element instanceof z.ZodType)
    return { type: 'array', items: schemaOf(schema.element) };
  return writtenSchema(schema);
}
