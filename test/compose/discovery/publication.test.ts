// The publication of a process: made in a thread from the routes in force, once for all changes that come together, and the
// one before is kept until there is another.
import { expect, onTestFinished, test } from 'vitest';
import {
  makePublication,
  publicationWarnings,
  publishingOf,
  type PublicationConfig,
} from '../../../src/compose/discovery/publication.ts';
import { readRoutes, writeRoutes } from '../../../src/compose/discovery/publication-wire.ts';
import { startPublisher, type OwnerInForce, type Publisher } from '../../../src/compose/discovery/publisher.ts';
import type { LoadedConfig } from '../../../src/config/config.ts';
import { renderPublication } from '../../../src/domain/discovery/publication.ts';
import { profileFolding } from '../../../src/domain/routing/profile.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { compileSnapshot, type Snapshot } from '../../../src/domain/routing/snapshot.ts';
import { createCurrent, type CurrentSnapshot } from '../../../src/gateway/routes/current-snapshot.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { createLog, type LogFields } from '../../../src/host/log.ts';
import { route } from '../../cases/routes.ts';
import { configOf } from '../../config/support.ts';
import { until } from '../../support/paid-tollgate.ts';

const CONFIG = `proxy: { upstream: "http://127.0.0.1:1" }
registry: {}
receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://127.0.0.1:1"] }]
discovery: { contact: owner@example.com }
`;

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') } as const;

const snapshotOf = (routes: readonly Route[], revision = 1): Snapshot =>
  compileSnapshot({ registryId: 'r', revision, routes }, PATHS);

function publishing(text = CONFIG): PublicationConfig {
  const found = publishingOf(configOf(text));
  if (found === undefined) throw new Error('nothing is published');
  return found;
}

test('behaviour: a route crosses to the thread and back as it is, whatever its pattern holds', () => {
  const routes = [
    { id: 'a', method: '*', pattern: '/with space/:x', isActive: true, isPayable: false },
    { id: 'b', method: 'GET', pattern: '/', isActive: false, isPayable: true },
  ];
  expect(readRoutes(writeRoutes(routes))).toEqual(routes);
  expect(readRoutes(writeRoutes([]))).toEqual([]);
});

test('behaviour: the thread makes what the routes in force say, of none and of more than cross at a time', async () => {
  const none = await makePublication(publishing(), undefined, snapshotOf([]));
  expect(none.report).toMatchObject({ operations: [], cut: 0, taken: [] });
  expect(publicationWarnings(none.report)).toEqual([
    '/openapi.json holds no operation: nothing that is sold can be told',
  ]);
  const routes = Array.from({ length: 1_000 }, (_, index) => route(`GET /p${index}/:x 0.10`));
  const other = route('GET /dear 0.10', { receiverConfigId: 'nobody' });
  const { report, publication } = await makePublication(publishing(), undefined, snapshotOf([...routes, other]));
  expect([report.operations.length, report.leftOutCounts]).toEqual([1_000, { unpayable: 1 }]);
  expect(publicationWarnings(report)).toEqual(
    expect.arrayContaining([
      'left out of /openapi.json (no receiver here can take its price): GET /dear',
      expect.stringMatching(/^\/openapi\.json has \d+ bytes; crawlers read the first 65536/),
    ]),
  );
  expect(JSON.parse(renderPublication(publication, 'https://a.example').openapi)).toMatchObject({
    info: { title: 'a.example', contact: { email: 'owner@example.com' } },
  });
});

test('behaviour: what a document that is too large does without is named as a list', async () => {
  const { report } = await makePublication(publishing(), undefined, snapshotOf([route('GET /a 0.10')]));
  const without = { responses: true, bodies: true };
  expect(
    [{ without }, { without, cut: 1 }, { without, cut: 2 }].flatMap((less) =>
      publicationWarnings({ ...report, ...less }),
    ),
  ).toEqual([
    '/openapi.json would be larger than 1 MiB, so it is without schemas of responses, request bodies',
    '/openapi.json would be larger than 1 MiB, so it is without schemas of responses, request bodies, the last operation',
    '/openapi.json would be larger than 1 MiB, so it is without schemas of responses, request bodies, the last 2 operations',
  ]);
});

test('behaviour: two processes with the same routes in another order tell the same', async () => {
  const routes = Array.from({ length: 300 }, (_, index) => route(`GET /p${index}/:x 0.10`));
  const one = await makePublication(publishing(), undefined, snapshotOf(routes));
  const other = await makePublication(publishing(), undefined, snapshotOf(routes.toReversed()));
  expect(other.publication).toEqual(one.publication);
});

type Followed = {
  readonly publisher: Publisher;
  readonly current: CurrentSnapshot;
  readonly lines: readonly LogFields[];
  readonly published: string[];
  /** How often it was its turn to make one. */
  readonly turns: () => number;
  /** How long each turn was waited for. */
  readonly waits: readonly number[];
};

function follow(
  owner: () => OwnerInForce = () => undefined,
  settings: { config: LoadedConfig } = { config: configOf(CONFIG) },
): Followed {
  const lines: LogFields[] = [];
  const published: string[] = [];
  let ran = 0;
  const waits: number[] = [];
  const current = createCurrent();
  const publisher = startPublisher({
    settings: settings as never,
    ...{ current, owner, clock: systemClock },
    schedule: (ms, run) => {
      waits.push(ms);
      const timer = setTimeout(() => {
        run();
        ran++;
      }, ms);
      return () => clearTimeout(timer);
    },
    log: createLog(
      'debug',
      (line) => void lines.push(JSON.parse(line) as LogFields),
      () => 0,
    ),
  });
  publisher.onPublished(({ rest }) => void published.push(rest));
  onTestFinished(publisher.close);
  return { publisher, current, lines, published, turns: () => ran, waits };
}

test('behaviour: changes that come together are told at once, and one that changes nothing not at all', async () => {
  const { publisher, current, published } = follow();
  const first = route('GET /a 0.10');
  for (let revision = 1; revision <= 5; revision++)
    current.swap(snapshotOf([{ ...first, amount: `0.1${revision}` }], revision));
  await until('the last price', async () => published.at(-1)?.includes('"0.15"'));
  expect(published).toHaveLength(1);
  current.swap(snapshotOf([{ ...first, amount: '0.15' }], 6));
  publisher.refresh();
  current.swap(snapshotOf([{ ...first, amount: '0.16' }], 7));
  publisher.refresh();
  await until('another price', async () => published.at(-1)?.includes('"0.16"'));
  expect(published.filter((rest) => rest.includes('"0.15"'))).toHaveLength(1);
});

test('behaviour: nothing is told before the description was read, and then with it', async () => {
  let owner: OwnerInForce = 'unread';
  const { publisher, current, published, turns } = follow(() => owner);
  current.swap(snapshotOf([route('GET /a 0.10')]));
  publisher.refresh();
  await until('its turn', async () => turns() > 0);
  expect([published, publisher.publication]).toEqual([[], undefined]);
  owner = undefined;
  publisher.wake();
  await until('what is sold', async () => published.length === 1);
});

test('behaviour: a document that cannot be made leaves the one before, and the log says so', async () => {
  let owner: OwnerInForce;
  const { publisher, current, published, lines } = follow(() => owner);
  current.swap(snapshotOf([route('GET /a 0.10')]));
  await until('what is sold', async () => published.length === 1);
  owner = { json: '{ no JSON' };
  publisher.refresh();
  await until('the failure', async () =>
    lines.some(({ msg }) => msg === 'what is sold could not be written down; what was told before stays'),
  );
  expect(publisher.publication?.rest).toBe(published[0]);
  owner = undefined;
  current.swap(snapshotOf([route('GET /b 0.10')], 2));
  publisher.refresh();
  await until('the next', async () => published.at(-1)?.includes('"/b"'));
});

test('behaviour: a change rests after the one before, a new configuration does not, whenever it comes', async () => {
  const settings = { config: configOf(CONFIG) };
  const { publisher, current, published, turns, waits } = follow(() => undefined, settings);
  current.swap(snapshotOf([route('GET /a 0.10')]));
  await until('what is sold', async () => published.length === 1);
  current.swap(snapshotOf([route('GET /a 0.20')], 2));
  expect(waits.at(-1)).toBeGreaterThan(waits[0] ?? 0);
  publisher.refresh();
  expect(waits.at(-1)).toBe(waits[0]);
  await until('its turn', async () => turns() === 2);
  // It is being made with the configuration before.
  settings.config = configOf(CONFIG.replace('contact:', 'exclude: [/a], contact:'));
  publisher.refresh();
  await until('the exclusion', async () => published.at(-1) === '"paths":{}');
  expect(waits.at(-1)).toBe(waits[0]);
});
