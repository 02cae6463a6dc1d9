// The types of `tollgate/client` against the document: they are made of it, so they are equal.
import { expect, test } from 'vitest';
import { readClientSchema, renderClientSchema } from '../support/client-schema.ts';

test('behaviour: the client’s types are those of the document (npm run map writes src/client/schema.ts)', () => {
  const [made, stands] = [renderClientSchema().split('\n'), readClientSchema().split('\n')];
  const missing = made.filter((line) => !stands.includes(line)).slice(0, 5);
  expect(missing.map((line) => `src/client/schema.ts lacks \`${line.trim()}\`: run npm run map`)).toEqual([]);
  expect(stands).toEqual(made);
});

test('refuses: a schema with a keyword that the types know nothing of, by name', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', dependentRequired: {} } } };
  expect(() => renderClientSchema({ components: { schemas: { A: schema } }, paths: {} })).toThrow(/^dependentRequired/);
});
