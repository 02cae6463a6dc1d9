// The chart against the plain manifests of config/kubernetes: what helm rendered is kept beside this file and compared with
// them everywhere, and a real helm renders it anew where there is one (`npm run test:helm`; `-- -u` writes what it renders).
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { findHelm } from '../support/helm.ts';
import { packageFile, readText, readYaml, ROOT } from './support.ts';

const CHART = 'config/helm';
const RENDERED = 'test/deploy/helm-rendered';
const helm = findHelm();

/** The plain manifest, what is kept of the chart, and the words with which helm renders it. */
const SHAPES = [
  { plain: 'sidecar.yaml', kept: 'sidecar.rendered', release: 'my-api', set: [] },
  { plain: 'registry.yaml', kept: 'registry.rendered', release: 'tollgate-registry', set: ['shape=registry'] },
  { plain: 'postgres/all-in-one.yaml', kept: 'all-in-one.rendered', release: 'my-api', set: ['shape=all-in-one'] },
  {
    plain: 'postgres/registry.yaml',
    kept: 'registry-postgres.rendered',
    release: 'tollgate-registry',
    set: ['shape=registry', 'store=postgres'],
  },
] as const;

const render = (release: string, set: readonly string[]): string =>
  helm?.('template', release, path.join(ROOT, CHART), ...set.flatMap((each) => ['--set', each])) ?? '';

const files = (): readonly string[] =>
  readdirSync(path.join(ROOT, CHART), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\w+$/.test(name))
    .toSorted();

/** Everything that decides what is rendered. */
const chartHash = (): string => {
  const hash = createHash('sha256');
  for (const name of files()) hash.update(`${name}\n${readText(`${CHART}/${name}`)}\n`);
  return hash.digest('hex');
};

const object = z.looseObject({ kind: z.string(), metadata: z.looseObject({ name: z.string() }) });
const configMap = z.object({ data: z.object({ 'tollgate.yaml': z.string() }) });

/** Objects by kind and name. A configuration counts by what it says, not by how it is written. */
function objectsOf(documents: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(
    documents.map((document) => {
      const { kind, metadata } = object.parse(document);
      const held = kind === 'ConfigMap' ? configMap.parse(document).data['tollgate.yaml'] : undefined;
      const said = held === undefined ? document : { ...object.parse(document), data: parse(held) as unknown };
      return [`${kind} ${metadata.name}`, said];
    }),
  );
}

describe.each(SHAPES)('$kept', ({ plain, kept, release, set }) => {
  test('behaviour: the chart renders the objects of a plain manifest, with the same configuration', () => {
    const rendered = objectsOf(readYaml(`${RENDERED}/${kept}`));
    expect(Object.keys(rendered).length).toBeGreaterThan(5);
    expect(rendered).toEqual(objectsOf(readYaml(`config/kubernetes/${plain}`)));
  });

  test.skipIf(helm === undefined)(
    'behaviour: what is kept of the chart is what helm renders (skipped without helm)',
    async () => {
      await expect(render(release, set)).toMatchFileSnapshot(path.join(ROOT, RENDERED, kept));
    },
  );
});

test('behaviour: what is kept was rendered from the chart as it is', async () => {
  const file = path.join(ROOT, RENDERED, 'chart.sha256');
  if (helm !== undefined) await expect(`${chartHash()}\n`).toMatchFileSnapshot(file);
  expect(readText(`${RENDERED}/chart.sha256`).trim(), 'run `npm run test:helm -- -u`').toBe(chartHash());
});

test('behaviour: the chart is of this version, and its values are those that its schema knows', () => {
  expect(readYaml(`${CHART}/Chart.yaml`)).toEqual([
    expect.objectContaining({
      apiVersion: 'v2',
      name: 'tollgate',
      version: packageFile.version,
      appVersion: packageFile.version,
    }),
  ]);
  const values = z.record(z.string(), z.unknown()).parse(readYaml(`${CHART}/values.yaml`)[0]);
  const schema = z
    .looseObject({ additionalProperties: z.literal(false), properties: z.record(z.string(), z.unknown()) })
    .parse(JSON.parse(readText(`${CHART}/values.schema.json`)));
  expect(Object.keys(values).toSorted()).toEqual(
    Object.keys(schema.properties)
      .filter((name) => name !== 'global')
      .toSorted(),
  );
  // What a template reads stands in the values.
  const templates = files().filter((name) => name.startsWith('templates/'));
  const read = templates.flatMap((name) => [...readText(`${CHART}/${name}`).matchAll(/\.Values\.(\w+)(?:\.(\w+))?/g)]);
  expect(read.length).toBeGreaterThan(20);
  for (const [whole, name = '', member] of read) {
    expect(values, whole).toHaveProperty(name);
    if (member !== undefined) expect(values[name], whole).toHaveProperty(member);
  }
});

describe.skipIf(helm === undefined)('a real helm (skipped where there is none)', () => {
  const documents = (text: string): readonly unknown[] => parseAllDocuments(text).map((each) => each.toJS() as unknown);
  const objects = (...set: readonly string[]): Record<string, unknown> => objectsOf(documents(render('mine', set)));
  const refused = (...set: readonly string[]): string => {
    try {
      render('mine', set);
      return '';
    } catch (error) {
      return String(error);
    }
  };

  test('behaviour: helm lint has nothing to say against any shape', () => {
    for (const { set } of SHAPES) {
      const words = set.flatMap((each) => ['--set', each]);
      expect(helm?.('lint', '--strict', path.join(ROOT, CHART), ...words)).toContain(
        '1 chart(s) linted, 0 chart(s) failed',
      );
    }
  });

  test('behaviour: values reach what they are about', () => {
    const some = objects(
      ...['api.port=8080', 'config.proxy.undeclared_methods=refuse', 'replicas=5', 'existingSecret=theirs'],
      ...['image.repository=registry.example.com/tollgate', `image.digest=sha256:${'a'.repeat(64)}`],
      ...[
        'serviceMonitor.enabled=true',
        'networkPolicy.enabled=false',
        'api.container.env[0].name=A',
        'api.container.env[0].value=b',
      ],
    );
    expect(some['ConfigMap mine-tollgate']).toMatchObject({
      data: { proxy: { upstream: 'http://127.0.0.1:8080', undeclared_methods: 'refuse', listen: '0.0.0.0:8402' } },
    });
    expect(some['Deployment mine']).toMatchObject({
      spec: {
        replicas: 5,
        template: {
          spec: {
            initContainers: [{ image: `registry.example.com/tollgate@sha256:${'a'.repeat(64)}` }],
            containers: [
              { name: 'api', env: [{ name: 'A', value: 'b' }], lifecycle: { preStop: { sleep: { seconds: 15 } } } },
            ],
            volumes: expect.arrayContaining([
              { name: 'secrets', secret: { secretName: 'theirs', defaultMode: 288 } },
            ]) as unknown,
          },
        },
      },
    });
    expect(Object.keys(some).toSorted()).toEqual(
      [
        ...['ConfigMap mine-tollgate', 'Deployment mine', 'PodDisruptionBudget mine', 'Service mine'],
        ...['Service mine-tollgate-metrics', 'ServiceMonitor mine-tollgate'],
      ].toSorted(),
    );
    const [plain] = readYaml('config/kubernetes/servicemonitor.yaml') as [{ spec: { endpoints: unknown } }];
    expect(some['ServiceMonitor mine-tollgate']).toMatchObject({
      spec: {
        endpoints: plain.spec.endpoints,
        selector: {
          matchLabels: { 'app.kubernetes.io/name': 'mine', 'app.kubernetes.io/component': 'tollgate-metrics' },
        },
      },
    });
  });

  test('refuses: values that would share a file among pods, and those that nobody knows', () => {
    expect(refused('shape=registry', 'replicas=2')).toContain('a registry on SQLite is one pod');
    expect(refused('shape=all-in-one', 'store=sqlite')).toContain('shape all-in-one needs store: postgres');
    expect(refused('shape=proxy')).toMatch(/shape/);
    expect(refused('replica=2')).toMatch(/replica/);
    expect(refused('image.digest=latest')).toMatch(/digest/);
  });
});
