// How many routes a configuration makes public, and those of them that its description does not know.
import { afterAll, expect, test } from 'vitest';
import { createDiscoverySource, lookAtRoutes, readDiscovery } from '../../src/compose/discovery/discovery.ts';
import { createLog } from '../../src/host/log.ts';
import { route } from '../cases/routes.ts';
import { temporaryFolder } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);

const section = (text: string) => {
  const file = files.write('openapi.yaml', text);
  return {
    discovery: {
      openapi: { name: 'openapi.yaml', file },
      serviceName: undefined,
      tags: undefined,
      iconUrl: undefined,
      exclude: [],
      ...{ serve: true, contact: undefined, docsUrl: undefined, title: undefined, llms: undefined },
    },
  };
};
const NONE = 'openapi: 3.0.0\ninfo: {}\npaths: {}\n';
const routes = (count: number) => Array.from({ length: count }, (_, index) => route(`GET /p${index} 0.10`));

test('behaviour: up to 20 routes without an operation are named, of more the number is said; paused ones count for nothing', async () => {
  const read = await readDiscovery(section(NONE));
  if (read === undefined) throw new Error('nothing was read');
  const paused = route('GET /paused 0.10', { status: 'paused' });
  const few = await lookAtRoutes(read, [...routes(20), paused]);
  expect(few).toMatchObject({ publicRoutes: 20, pricedRoutes: 20, remarks: { length: 20 } });
  expect(few.remarks[0]).toBe('openapi.yaml:3: has no operation for GET /p0; its method and template alone are told');
  const many = await lookAtRoutes(read, routes(1_000));
  expect(many).toMatchObject({ publicRoutes: 1_000, pricedRoutes: 1_000, remarks: { length: 21 } });
  expect(many.remarks.at(-1)).toBe('openapi.yaml:3: has no operation for 980 more routes');
});

test('behaviour: a description that is read later replaces the one before, but for one that cannot be used', async () => {
  const lines: { readonly level: string; readonly msg: string }[] = [];
  const source = createDiscoverySource(
    createLog(
      'info',
      (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]),
      () => 0,
    ),
  );
  const weather = route('GET /weather 0.10');
  const inputs: unknown[] = [];
  const document = (days: number): string =>
    `openapi: 3.0.0\npaths: { /weather: { get: { parameters: [{ name: days, in: query, example: ${days} }] } } }\n`;
  for (const text of [document(1), 'openapi: {{', document(2), '', 'openapi: 2.0.0\n']) {
    const config = section(text);
    const discovery = source.of(config);
    const before = discovery?.listingOf(weather, 'GET', '/weather');
    expect(before === undefined).toBe(inputs.length === 0);
    const read = new Promise<void>((resolve) => source.onRead(resolve));
    source.begin(config);
    await read;
    const { info } = JSON.parse(discovery?.listingOf(weather, 'GET', '/weather')?.bazaar[0] ?? '{}') as {
      info: { input: { queryParams?: unknown } };
    };
    inputs.push(info.input.queryParams);
  }
  expect(inputs).toEqual([{ days: 1 }, { days: 1 }, { days: 2 }, { days: 2 }, { days: 2 }]);
  expect(lines.map(({ level }) => level)).toEqual(['info', 'warn', 'info', 'warn', 'warn']);
  expect(lines[2]).toMatchObject({ msg: 'the API description is in force', file: 'openapi.yaml', operations: 1 });
  expect(lines[4]?.msg).toBe(
    'openapi.yaml:1: is no OpenAPI document of version 3.0 or 3.1; what was read before is told',
  );
  expect(source.of({ discovery: undefined })).toBeUndefined();
  source.begin({ discovery: undefined });
  await source.tell([weather]);
  expect(lines).toHaveLength(5);
});

test('behaviour: the description that was asked for last is taken on if two are read at once', async () => {
  const lines: string[] = [];
  const source = createDiscoverySource(createLog('info', (line) => void lines.push(line), Date.now));
  const first = section(NONE);
  const second = {
    discovery: { ...first.discovery, openapi: { name: 'second.yaml', file: files.write('2.yaml', NONE) } },
  };
  const told = [first, second].map((config) => {
    source.begin(config);
    return source.tell([route('GET /p 0.10')]);
  });
  await Promise.all(told);
  expect(source.inForce()).toMatchObject({ name: 'second.yaml' });
  expect(lines.join()).not.toContain('openapi.yaml');
  expect(lines.filter((line) => line.includes('facilitators are told'))).toHaveLength(1);
});

test('behaviour: a description that cannot be used at all leaves methods and templates', async () => {
  const source = createDiscoverySource(createLog('error', () => undefined, Date.now));
  const config = section('openapi: {{');
  const discovery = source.of(config);
  source.begin(config);
  await source.tell([]);
  expect(source.inForce()).toBeUndefined();
  expect(JSON.parse(discovery?.listingOf(route('GET /p 0.10'), 'GET', '/p')?.bazaar[0] ?? '{}')).toMatchObject({
    info: { input: { type: 'http', method: 'GET' } },
    routeTemplate: '/p',
  });
});
