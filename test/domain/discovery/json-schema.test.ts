import { validateDiscoveryExtension } from '@x402/extensions/bazaar';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { takes } from '../../../src/domain/discovery/json-schema.ts';

/** What the reference says, which asks ajv. */
function reference(schema: unknown, info: unknown): boolean {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  try {
    return validateDiscoveryExtension({ info, schema } as never).valid;
  } finally {
    warn.mockRestore();
  }
}

/** As text: an object with such a member would be taken for a promise. */
const CONDITIONAL: unknown = JSON.parse('{"if":{"type":"string"},"then":{"minLength":1},"else":{"minimum":1}}');

const CASES: readonly (readonly [schema: unknown, taken: readonly unknown[], refused: readonly unknown[]])[] = [
  [true, [1, null, 'a'], []],
  [false, [], [1, null, 'a']],
  [{}, [1, null, 'a', [], {}], []],
  [{ type: 'string' }, ['', 'a'], [1, null, [], {}]],
  [{ type: 'integer' }, [0, -3, 2.0], [1.5, '1', true]],
  [{ type: ['number', 'null'] }, [1.5, null], ['', false]],
  [{ type: 'object' }, [{}], [[], null]],
  [{ enum: ['a', { b: [1] }] }, ['a', { b: [1] }], ['b', { b: 1 }]],
  [{ const: { a: 1, b: 2 } }, [{ b: 2, a: 1 }], [{ a: 1 }]],
  [{ const: null }, [null], [0]],
  [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, 'x'], [0.9, 3]],
  [{ multipleOf: 0.5 }, [1.5, 'x'], [1.2]],
  [{ minLength: 2, maxLength: 2 }, ['ab', '😀😀', 1], ['a', 'abc']],
  [{ pattern: '^a.c$' }, ['abc', 'a😀c', 1], ['ab']],
  [{ items: { type: 'number' }, minItems: 1, maxItems: 2 }, [[1], [1, 2], 'x'], [[], [1, 2, 3], ['a']]],
  [{ prefixItems: [{ type: 'string' }], items: false }, [['a'], []], [['a', 1], [1]]],
  [
    { uniqueItems: true },
    [[1, '1', { a: 1 }]],
    [
      [1, 1],
      [{ a: 1 }, { a: 1 }],
    ],
  ],
  [{ contains: { const: 1 }, minContains: 1, maxContains: 2 }, [[1], [1, 2, 1]], [[], [1, 1, 1]]],
  [{ properties: { a: { type: 'string' } }, required: ['a'] }, [{ a: '' }, { a: '', b: 1 }, 'x'], [{}, { a: 1 }]],
  [
    { properties: { a: {} }, patternProperties: { '^x': { type: 'number' } }, additionalProperties: false },
    [{ a: 1, xy: 2 }],
    [{ b: 1 }, { x: '' }],
  ],
  [{ additionalProperties: { type: 'number' } }, [{ a: 1 }], [{ a: '' }]],
  [
    { propertyNames: { maxLength: 1 }, minProperties: 1, maxProperties: 2 },
    [{ a: 1 }],
    [{}, { ab: 1 }, { a: 1, b: 1, c: 1 }],
  ],
  [{ dependentRequired: { a: ['b'] } }, [{ b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1], [0, 3]],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, ['', null], [1]],
  [{ oneOf: [{ minimum: 1 }, { maximum: 2 }] }, [0, 3], [1.5]],
  [{ not: { type: 'string' } }, [1], ['']],
  [CONDITIONAL, ['a', 1], ['', 0]],
  [
    { type: 'string', example: 5, xml: {}, 'x-own': [], format: 'city', discriminator: { propertyName: 'a' } },
    ['a'],
    [1],
  ],
];

/** Nothing of these is a schema, or one that can be judged here. */
const UNUSABLE: readonly unknown[] = [
  null,
  'string',
  [],
  { type: 'file' },
  { type: [] },
  { type: ['string', 'string'] },
  { required: true },
  { required: ['a', 'a'] },
  { properties: [] },
  { properties: { a: 'string' } },
  { minimum: '0' },
  { exclusiveMinimum: true },
  { minLength: -1 },
  { multipleOf: 0 },
  { pattern: '(' },
  { pattern: '\\-' },
  { items: [{}] },
  { enum: [] },
  { enum: 'a' },
  { allOf: [] },
  { examples: { a: 1 } },
  { title: 1 },
  { nullable: true },
  { id: 'a' },
  { $id: 'https://example.com/a' },
  { $ref: 'https://example.com/a' },
  { unevaluatedProperties: false },
  { properties: { constructor: { type: 'string' } } },
  { properties: { inner: { properties: { inner: { type: 'file' } } } } },
];

describe('takes', () => {
  for (const [schema, taken, refused] of CASES) {
    test(`behaviour: the schema ${JSON.stringify(schema)} takes what the reference takes`, () => {
      expect(taken.filter((value) => !takes(schema, value))).toEqual([]);
      expect(refused.filter((value) => takes(schema, value))).toEqual([]);
      if (typeof schema === 'boolean') return;
      expect(taken.filter((value) => !reference(schema, value))).toEqual([]);
      expect(refused.filter((value) => reference(schema, value))).toEqual([]);
    });
  }

  test.each(UNUSABLE.map((schema) => [schema]))('refuses: the schema %j takes nothing', (schema) => {
    for (const value of [null, 1, 'a', [], {}]) expect(takes(schema, value)).toBe(false);
  });

  test('attack: a value that is taken here is taken by the reference, whatever the schema says', () => {
    const name = fc.constantFrom('a', 'b', 'type', 'toString', 'constructor', '__proto__', 'é');
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>(null, true, 0, 1, 2.5, -1, 'a', 'ab', '', '😀'),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(name, tie('any'), { maxKeys: 3 }),
      ),
    })).any;
    const number = fc.constantFrom<unknown>(0, 1, 2, 0.5, -1, '1', true);
    const { schema } = fc.letrec((tie) => {
      const one = tie('schema');
      const list = fc.array(one, { maxLength: 3 });
      return {
        schema: fc.oneof(
          { maxDepth: 4 },
          fc.boolean(),
          fc
            .record(
              {
                type: fc.constantFrom<unknown>(
                  'string',
                  'number',
                  'integer',
                  'object',
                  'array',
                  'null',
                  ['string', 'object'],
                  'any',
                ),
                enum: fc.array(value, { maxLength: 3 }),
                const: value,
                properties: fc.dictionary(name, one, { maxKeys: 3 }),
                required: fc.array(name, { maxLength: 2 }),
                additionalProperties: one,
                patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$', '['), one, { maxKeys: 2 }),
                propertyNames: one,
                items: fc.oneof(one, list),
                prefixItems: list,
                contains: one,
                minContains: number,
                uniqueItems: fc.constantFrom<unknown>(true, false, 1),
                minItems: number,
                maxLength: number,
                pattern: fc.constantFrom<unknown>('a', '^.$', '(', 1),
                minimum: number,
                exclusiveMaximum: number,
                multipleOf: number,
                allOf: list,
                anyOf: list,
                oneOf: list,
                not: one,
                if: one,
                met: one,
                else: one,
                nullable: fc.boolean(),
                dependentRequired: fc.dictionary(name, fc.array(name, { maxLength: 2 }), { maxKeys: 2 }),
                unevaluatedProperties: one,
                example: value,
                examples: value,
                id: fc.constant('a'),
                $comment: fc.constantFrom<unknown>('a', 1),
              },
              { requiredKeys: [] },
            )
            .map((all) => Object.fromEntries(Object.entries(all).slice(0, 5))),
        ),
      };
    });
    let taken = 0;
    fc.assert(
      fc.property(schema, value, (candidate, each) => {
        const plain = JSON.parse(JSON.stringify({ candidate, each }).replaceAll('"met":', '"then":'));
        if (!takes(plain.candidate, plain.each)) return;
        taken++;
        if (typeof plain.candidate === 'object') expect(reference(plain.candidate, plain.each)).toBe(true);
      }),
      // What a slow machine does not get to, others do.
      { numRuns: 1000, interruptAfterTimeLimit: 30_000 },
    );
    expect(taken).toBeGreaterThan(50);
  });
});
