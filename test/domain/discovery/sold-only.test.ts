// Whatever the routes, exclusions and documents are: only what is sold is told. No operation of an excluded, paused or free
// route, and no component that only such an operation uses, is ever in a document.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { covers } from '../../../src/domain/discovery/exclusion.ts';
import { profileFolding } from '../../../src/domain/routing/profile.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { compileSnapshot } from '../../../src/domain/routing/snapshot.ts';
import { route } from '../../cases/routes.ts';
import { patternOf } from './kit.ts';
import { publishText } from './publish-kit.ts';

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') } as const;
const LITERALS = ['a', 'b', 'a.json', 'B'];

const literal = fc.constantFrom(...LITERALS);
const method = fc.constantFrom('GET', 'POST', 'DELETE');
const pattern = fc
  .tuple(fc.array(fc.oneof(literal, fc.constantFrom(':x', ':y')), { maxLength: 3 }), fc.boolean())
  .filter(
    ([segments]) =>
      new Set(segments.filter((each) => each.startsWith(':'))).size ===
      segments.filter((each) => each.startsWith(':')).length,
  )
  .map(([segments, wild]) => `/${[...segments, ...(wild ? ['*'] : [])].join('/')}`);
const rules = fc.uniqueArray(
  fc.record({
    method: fc.oneof(method, fc.constant('*')),
    pattern,
    cents: fc.integer({ min: 10, max: 99 }),
    status: fc.constantFrom<Route['status']>('active', 'active', 'paused'),
    payable: fc.boolean(),
  }),
  { selector: (rule) => `${rule.method} ${patternOf(rule.pattern).key}`, maxLength: 8 },
);
/** `own`: components that one operation alone uses, in a chain. */
const operations = fc.uniqueArray(
  fc.record({
    method,
    path: fc
      .array(fc.oneof(literal, fc.constantFrom('{p}', '{q}', '{p}.json')), { minLength: 1, maxLength: 3 })
      .filter(
        (segments) =>
          new Set(segments).size === segments.length && !(segments.includes('{p}') && segments.includes('{p}.json')),
      )
      .map((segments) => `/${segments.join('/')}`),
    own: fc.integer({ min: 0, max: 2 }),
    shares: fc.boolean(),
  }),
  { selector: (each) => `${each.method} ${each.path.replaceAll(/\{.\}/g, '{}')}`, maxLength: 8 },
);

type Operation = { readonly method: string; readonly path: string; readonly own: number; readonly shares: boolean };

/** Each part of it names the operations that it belongs to: `op3!` and `of3!`. */
function documentOf(all: readonly Operation[]): string {
  const reference = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
  const paths: Record<string, Record<string, object>> = {};
  const schemas: Record<string, object> = {
    Shared: { description: 'shared', properties: { deep: reference('Deep') } },
    Deep: {},
  };
  for (const [index, { method: verb, path, own, shares }] of all.entries()) {
    for (let step = 1; step <= own; step++)
      schemas[`Of${index}x${step}`] = {
        description: `of${index}!`,
        ...(step < own ? { properties: { next: reference(`Of${index}x${step + 1}`) } } : {}),
      };
    const schema = own > 0 ? reference(`Of${index}x1`) : shares ? reference('Shared') : {};
    (paths[path] ??= {})[verb.toLowerCase()] = {
      summary: `op${index}!`,
      operationId: `id${index}!`,
      'x-internal-note': 'never',
      responses: { 200: { description: 'OK', content: { 'application/json': { schema, 'x-internal': 'never' } } } },
    };
  }
  return JSON.stringify({ openapi: '3.1.0', info: { title: 'T', version: '1' }, paths, components: { schemas } });
}

const filled = (path: string): string => path.replaceAll(/\{[^}]*\}/g, 'filled9');
const asPattern = (path: string): string => path.replaceAll(/\{([^}]*)\}[^/]*/g, ':$1');

test('behaviour: a publication tells only what is sold, whatever routes, exclusions and document are', () => {
  fc.assert(
    fc.property(rules, operations, fc.array(pattern, { maxLength: 2 }), (given, all, exclude) => {
      const routes: Route[] = given.map((rule) =>
        route(`${rule.method} ${rule.pattern} 0.${rule.cents}`, { status: rule.status }),
      );
      const payable = new Set(routes.filter((_, index) => given[index]?.payable));
      const { resolve } = compileSnapshot({ registryId: '', revision: 0, routes }, PATHS);
      const { text, llms, document } = publishText(documentOf(all), routes, exclude, (each) => payable.has(each));

      const sold = new Set<number>();
      for (const [path, methods] of Object.entries(document.paths))
        for (const [verb, operation] of Object.entries(methods)) {
          // A request that a client would make of it pays just that.
          const resolution = resolve(verb.toUpperCase(), filled(path));
          const match = resolution.ok ? resolution.match : undefined;
          if (match?.kind !== 'route') throw new Error(`${verb} ${path} is told and free`);
          expect([match.route.status, match.route.amount, payable.has(match.route)]).toEqual([
            'active',
            operation['x-payment-info'].price.amount,
            true,
          ]);
          expect(exclude.filter((each) => covers(patternOf(each), patternOf(asPattern(path))))).toEqual([]);
          const index = /^op(\d+)!$/.exec(String(operation['summary']))?.[1];
          if (index !== undefined) sold.add(Number(index));
        }

      expect(text).not.toMatch(/x-internal|never/);
      for (const [index, operation] of all.entries()) {
        const told = sold.has(index);
        for (const mark of [`op${index}!`, `id${index}!`]) expect([mark, text.includes(mark)]).toEqual([mark, told]);
        expect(text.includes(`of${index}!`)).toBe(told && operation.own > 0);
        if (!told) expect(llms).not.toContain(`op${index}!`);
        // What is sold under its own path is told.
        const resolution = resolve(operation.method, filled(operation.path));
        const match = resolution.ok ? resolution.match : undefined;
        const isSold =
          match?.kind === 'route' &&
          payable.has(match.route) &&
          match.route.status === 'active' &&
          exclude.length === 0 &&
          (match.route.method === '*' || match.route.method === operation.method);
        if (isSold && covers(patternOf(match.route.pattern), patternOf(asPattern(operation.path))))
          expect(told).toBe(true);
      }
      const shared = all.some(({ own, shares }, index) => sold.has(index) && own === 0 && shares);
      for (const name of ['"Shared"', '"Deep"']) expect(text.includes(name)).toBe(shared);
    }),
    { numRuns: 600 },
  );
});
