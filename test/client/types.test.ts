// The types of `tollgate/client`: programs that must compile, and lines each of which must not. Compiled by the TypeScript of this
// repository, once as for a browser and once as for Node, as strictly as its code.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { API } from '../../src/registry/api.ts';
import { describeApi } from '../../src/registry/http/openapi-document.ts';
import { callOf, exampleOf, operationsOf } from '../../src/desk/views/reference/api-document.ts';
import { temporaryFolder } from '../registry/kit.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const COMPILER = path.join(ROOT, 'node_modules/typescript/bin/tsc');
const CLIENT = path.join(ROOT, 'src/client/client.ts');

const { folder, remove } = temporaryFolder();
afterAll(remove);
const run = promisify(execFile);

const PLACES = {
  browser: { lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] },
  node: { lib: ['es2022'], types: ['node'], typeRoots: [path.join(ROOT, 'node_modules/@types')] },
};

/** What the compiler says about `source`, a line a mistake. */
async function compile(source: string, place: keyof typeof PLACES): Promise<string[]> {
  const own = path.join(folder, `${place}-${source.length}`);
  mkdirSync(own);
  writeFileSync(
    path.join(own, 'use.mts'),
    `import { createTollgate, TollgateError, type Schemas } from '${CLIENT}';\n${source}`,
  );
  const strict = { strict: true, noEmit: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
  const compilerOptions = {
    ...{ ...strict, ...PLACES[place], target: 'es2022', module: 'nodenext', allowImportingTsExtensions: true },
    ...{ verbatimModuleSyntax: true, noUnusedLocals: false },
  };
  writeFileSync(path.join(own, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.mts'] }));
  try {
    await run(process.execPath, [COMPILER, '--project', own, '--pretty', 'false']);
    return [];
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error)) throw error;
    return String(error.stdout).trim().split('\n');
  }
}

const CREATED = `
const tollgate = createTollgate({ baseUrl: 'https://registry.example.com', token: async () => 'a token' });
void TollgateError;
`;
const USE = `${CREATED}
export async function use(id: string, signal: AbortSignal): Promise<(string | number | null)[]> {
  const told: (string | number | null)[] = [];
  const { data, error, response } = await tollgate.GET('/v1/billing/protected-routes/{id}', { params: { id }, signal });
  if (error) return [error.code, error.detail, error.existing_id ?? '', response.status];
  const state: 'active' | 'paused' = data.status;
  told.push(state, data.id, data.name);
  const unchanged = await tollgate.GET('/v1/billing/protected-routes/{id}', { params: { id }, headers: { 'If-None-Match': '"a"' } });
  if (!unchanged.error) told.push(unchanged.data?.amount ?? null);
  const made = await tollgate.POST('/v1/billing/protected-routes', { body: { route_pattern: '/a', method: 'GET', amount: '1' } });
  const route: Schemas['Route'] | undefined = made.data;
  told.push(route?.currency ?? null);
  await tollgate.PATCH('/v1/billing/protected-routes/{id}', { params: { id }, body: { name: null }, headers: { 'If-Match': '"a"' } });
  const gone: undefined = (await tollgate.DELETE('/v1/api-keys/{id}', { params: { id } })).data;
  void gone;
  const health = await tollgate.GET('/v1/health');
  told.push(health.data?.version ?? null);
  const csv = await tollgate.GET('/v1/billing/charges.csv', { query: { from: '2026-01-01', to: '2026-02-01', status: 'settled' } });
  told.push(csv.data?.toUpperCase() ?? null);
  for await (const page of tollgate.pages('/v1/billing/charges', { query: { limit: 200 } }))
    for (const charge of page.data) told.push(charge.payer, charge.amount_atomic);
  for await (const page of tollgate.pages('/v1/billing/protected-routes')) told.push(page.data.length, page.next_cursor);
  for await (const event of tollgate.events('/v1/billing/charges/events', { query: { route_id: id }, signal })) {
    if (event.type === 'charge') told.push(event.id, event.data.status);
    if (event.type === 'skipped') told.push(event.data.count);
  }
  for await (const event of tollgate.events('/v1/protected-routes/events'))
    if (event.type === 'head') told.push(event.data.digest);
  return told;
}
`;

test('behaviour: a program that reads what there may be compiles, in a browser and under Node', async () => {
  expect(await Promise.all([compile(USE, 'browser'), compile(USE, 'node')])).toEqual([[], []]);
});

// Without this a client that is typed as anything would pass: each of these lines has to be a mistake.
test('behaviour: a path that is not there, a missing or misspelt option, and a read of what may be absent do not compile', async () => {
  const lines = [
    `tollgate.GET('/v1/billing/protected-rotes');`,
    `tollgate.POST('/v1/health');`,
    `tollgate.PATCH('/v1/billing/protected-routes', { body: {} });`,
    `tollgate.GET('/v1/billing/protected-routes/{id}');`,
    `tollgate.GET('/v1/billing/protected-routes/{id}', { params: { ID: 'x' } });`,
    `tollgate.GET('/v1/billing/protected-routes', { query: { stauts: 'active' } });`,
    `tollgate.GET('/v1/billing/protected-routes', { query: { status: 'stopped' } });`,
    `tollgate.GET('/v1/billing/protected-routes', { body: {} });`,
    `tollgate.GET('/v1/billing/charges.csv', { query: { from: '2026-01-01' } });`,
    `tollgate.POST('/v1/billing/protected-routes', { body: { route_pattern: '/a', method: 'GET' } });`,
    `tollgate.POST('/v1/billing/protected-routes', { body: { route_pattern: '/a', method: 'GET', amount: 0.1 } });`,
    `tollgate.POST('/v1/billing/protected-routes');`,
    `tollgate.GET('/v1/billing/charges/events');`,
    `tollgate.pages('/v1/health');`,
    `tollgate.pages('/v1/billing/charges', { query: { limit: '5' } });`,
    `tollgate.events('/v1/billing/charges');`,
    `export const unread = async (): Promise<string> => (await tollgate.GET('/v1/health')).data.version;`,
    `export const named = async (): Promise<string | undefined> => (await tollgate.GET('/v1/health')).data?.verson;`,
    `export const cleared = async (id: string): Promise<string> => { const { data, error } = await tollgate.GET('/v1/billing/charges/{id}', { params: { id } }); if (error) return ''; return data.transaction; };`,
    `export const wrong = async (): Promise<string> => (await tollgate.GET('/v1/health')).error?.code === 'no_such_code' ? '' : '';`,
    `export const unchanged = async (id: string): Promise<string> => { const { data, error } = await tollgate.GET('/v1/billing/protected-routes/{id}', { params: { id }, headers: { 'If-None-Match': '"a"' } }); if (error) return ''; return data.amount; };`,
    `createTollgate({ token: 'x' });`,
    `createTollgate({ baseUrl: '/', tokn: 'x' });`,
  ];
  expect(await compile(CREATED + lines.map((line) => `// @ts-expect-error\n${line}`).join('\n'), 'browser')).toEqual(
    [],
  );
  expect(await compile(`${CREATED}${lines[0]}`, 'node')).toEqual([expect.stringContaining('use.mts')]);
});

test('behaviour: every call that the reference of the desk shows is a program that compiles', async () => {
  const document = JSON.parse(JSON.stringify(describeApi(API, '1.2.3'))) as Record<string, unknown>;
  const all = operationsOf(document).flatMap(({ operations }) => operations);
  const calls = all.flatMap((each) => callOf(each, each.body === null ? null : exampleOf(each.body, document)) ?? []);
  expect(calls.length).toBeGreaterThan(30);

  const uses = calls.map((call, at) => `export async function call${at}(): Promise<void> {\n${call}\n}`);
  expect(await compile(`${CREATED}\n${uses.join('\n')}`, 'browser')).toEqual([]);
});
