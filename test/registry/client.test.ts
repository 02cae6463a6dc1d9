// A client generated from the OpenAPI document, by the generator that most people use, compiles: with the least that a
// caller may send, and with what a caller reads. Compiled by the TypeScript of this repository, as strictly as its code.
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { API } from '../../src/registry/api.ts';
import { describeApi } from '../../src/registry/http/openapi-document.ts';
import { temporaryFolder } from './kit.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Beside it stands a TypeScript with the JavaScript API that the generator needs; ours is the one that compiles. */
const GENERATOR = join(ROOT, 'test/client/node_modules/openapi-typescript/bin/cli.js');
const COMPILER = join(ROOT, 'node_modules/typescript/bin/tsc');

const { folder, remove } = temporaryFolder();
afterAll(remove);
const run = promisify(execFile);

/** What the compiler says about `source`, a line a mistake. */
async function compile(source: string): Promise<string[]> {
  const place = join(folder, 'one');
  mkdirSync(place);
  try {
    writeFileSync(
      join(place, 'client.ts'),
      `import type { components, operations, paths } from '../types.d.ts';\n${source}`,
    );
    const config = {
      compilerOptions: {
        ...{ strict: true, noEmit: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        ...{ target: 'es2024', module: 'nodenext', allowImportingTsExtensions: true, types: [] },
      },
      files: ['client.ts'],
    };
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify(config));
    await run(process.execPath, [COMPILER, '--project', place, '--pretty', 'false']);
    return [];
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error)) throw error;
    return String(error.stdout).trim().split('\n');
  } finally {
    rmSync(place, { recursive: true });
  }
}

beforeAll(async () => {
  const document = join(folder, 'openapi.json');
  writeFileSync(document, JSON.stringify(describeApi(API, '1.2.3')));
  await run(process.execPath, [GENERATOR, document, '--output', join(folder, 'types.d.ts')]);
});

const USE = `
type Body<O extends { requestBody: { content: { 'application/json': unknown } } }> = O['requestBody']['content']['application/json'];
type Answer<O extends keyof operations, S extends keyof operations[O]['responses']> =
  operations[O]['responses'][S] extends { content: { 'application/json': infer A } } ? A : never;
type Problem = operations['createRoute']['responses'][409]['content']['application/problem+json'];
`;

test('behaviour: a client that sends the least that can be sent compiles, and so does one that reads every answer', async () => {
  const mistakes = await compile(`${USE}
export const made: Body<operations['createRoute']> = { route_pattern: '/a', method: 'GET', amount: '0.10' };
export const registered: Body<operations['registerRoute']> = { route_pattern: '/a', method: 'GET', amount: '0.10' };
export const patched: Body<operations['patchRoute']>[] = [{}, { amount: '2' }, { name: null, status: 'paused' }];
export const merged: operations['patchRoute']['requestBody']['content']['application/merge-patch+json'] = {};
export const wanted: operations['listRoutes']['parameters']['query'][] = [undefined, {}, { limit: 200, status: 'paused', q: 'x' }];
export const matching: operations['matchRoute']['parameters']['query'] = { path: '/a', method: 'GET' };
export const post: paths['/v1/protected-routes/routes/register']['post'] extends operations['registerRoute'] ? true : never = true;
export function read(
  route: Answer<'registerRoute', 200> & Answer<'registerRoute', 201> & Answer<'createRoute', 201> & Answer<'getRoute', 200>,
  set: Answer<'getRouteSet', 200>,
  list: Answer<'listRoutes', 200>,
  match: Answer<'matchRoute', 200>,
  charges: Answer<'listCharges', 200>,
  summary: Answer<'summariseCharges', 200>,
  changes: Answer<'listRouteChanges', 200>,
  why: Answer<'explainWhy', 200>,
  health: Answer<'getHealth', 200>,
  problem: Problem,
): void {
  const text: string[] = [route.id, route.amount, route.currency, route.created_at, health.version, problem.code, problem.detail];
  const nullable: (string | null)[] = [route.name, route.source, route.receiver_config_id, list.next_cursor];
  const state: 'active' | 'paused' = route.status;
  const flags: boolean[] = [route.allow_anonymous, match.matched, match.payment_required, match.ambiguous === true];
  const routes: (components['schemas']['Route'] | null)[] = [...set, ...list.data, match.route];
  for (const { pointer, detail } of problem.errors ?? []) text.push(pointer, detail);
  text.push(problem.existing_id ?? '', ...Object.values(match.params));
  for (const { payer, amount_atomic, transaction } of [...charges.data, ...why.charges]) text.push(payer, amount_atomic, transaction ?? '');
  for (const { amount, charges } of summary.data) text.push(amount, charges.toFixed());
  for (const { before, after } of changes.data) routes.push(before, after);
  void [nullable, state, flags];
}
`);
  expect(mistakes).toEqual([]);
});

// Without this a document that says nothing would pass: each of these lines has to be a mistake.
test('behaviour: a client that sends what the registry would refuse, or reads what might not be there, does not compile', async () => {
  const lines = [
    `export const unpriced: Body<operations['registerRoute']> = { route_pattern: '/a', method: 'GET' };`,
    `export const counted: Body<operations['patchRoute']> = { amount: 0.1 };`,
    `export const named: Body<operations['createRoute']> = { id: 'x', route_pattern: '/a', method: 'GET', amount: '1' };`,
    `export const page: operations['listRoutes']['parameters']['query'] = { limit: '5' };`,
    `export const unsaid: operations['matchRoute']['parameters']['query'] = { path: '/a' };`,
    `export const id = (match: Answer<'matchRoute', 200>): string => match.route.id;`,
    `export const name = (route: Answer<'getRoute', 200>): string => route.name;`,
    `export const cost = (route: Answer<'getRouteSet', 200>[number]): number => route.amount;`,
  ];
  expect(await compile(`${USE}${lines.map((line) => `// @ts-expect-error\n${line}`).join('\n')}`)).toEqual([]);
  expect(await compile(`${USE}${lines[0]}`)).toEqual([expect.stringContaining('client.ts')]);
});
