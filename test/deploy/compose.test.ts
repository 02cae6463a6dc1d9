// config/compose.yaml and the Prometheus beside it against the program: each service's configuration loads with the
// environment that it is given, and names, ports and times fit together.
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from '../cli/support.ts';
import { createDemoApi } from '../../src/cli/demo-api.ts';
import type { LoadedConfig } from '../../src/config/config.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { drainMs, imageEnvironment, loadMounted, packageFile, readText, readYaml, ROOT, VALUES } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const compose = z
  .strictObject({
    name: z.string(),
    'x-tollgate': z.unknown(),
    services: z.record(
      z.string(),
      z.looseObject({
        image: z.string(),
        build: z.string().optional(),
        environment: z.record(z.string(), z.string()).default({}),
        volumes: z.array(z.string()).default([]),
        ports: z.array(z.string()).default([]),
        entrypoint: z.array(z.string()).default([]),
        command: z.array(z.string()).default([]),
        stop_grace_period: z.string().optional(),
        network_mode: z.string().optional(),
        profiles: z.array(z.string()).default([]),
        deploy: z.strictObject({ replicas: z.number() }).optional(),
        healthcheck: z.looseObject({}).optional(),
        depends_on: z
          .union([z.array(z.string()), z.record(z.string(), z.object({ condition: z.string() }))])
          .default([]),
        read_only: z.boolean().default(false),
        cap_drop: z.array(z.string()).default([]),
        security_opt: z.array(z.string()).default([]),
      }),
    ),
    volumes: z.record(z.string(), z.null()),
  })
  .parse(readYaml('config/compose.yaml')[0]);

type Service = (typeof compose.services)[string];

function serviceNamed(name: string): Service {
  const service = compose.services[name];
  if (service === undefined) throw new Error(`compose.yaml has no service ${name}`);
  return service;
}

/** `${NAME:?advice}` and `${NAME:-default}` filled in, as compose does. */
function filled(environment: Record<string, string>): Record<string, string> {
  const values: Record<string, string> = VALUES;
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value
        .replace(/\$\{(\w+):\?[^}]*\}/g, (_all, variable: string) => values[variable] ?? '')
        .replace(/\$\{(\w+):-([^}]*)\}/g, (_all, variable: string, otherwise: string) => values[variable] ?? otherwise),
    ]),
  );
}

function configOf(name: string): LoadedConfig {
  const { volumes, environment } = serviceNamed(name);
  const mount = volumes
    .map((volume) => volume.split(':'))
    .find(([, target]) => target === imageEnvironment()['TOLLGATE_CONFIG']);
  const text = readText(path.join('config', mount?.[0] ?? 'nothing'));
  const result = loadMounted(text, [], filled(environment));
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.config;
}

const seconds = (text: string | undefined): number => Number(/^(\d+)s$/.exec(text ?? '')?.[1]) * 1000;

describe.each([
  ['registry', 'registry'],
  ['tollgate', 'sidecar'],
  ['replica', 'all-in-one'],
])('the service %s', (name, shape) => {
  const service = serviceNamed(name);
  const config = configOf(name);

  test('behaviour: the configuration of a service in compose.yaml loads', () => {
    expect(config.shape).toBe(shape);
    expect(configWarnings(config, NETWORKS)).toEqual([
      ...(shape === 'registry' ? [] : [expect.stringContaining('without `public_url` and `hosts`')]),
      ...(shape === 'sidecar' ? [expect.stringContaining('sync.insecure')] : []),
      ...(shape === 'all-in-one' ? [expect.stringContaining('registry.store.tls')] : []),
    ]);
  });

  test('refuses: to start a service of compose.yaml without what a user has to choose, and the first lines say how', () => {
    const needed = Object.values(service.environment).flatMap((value) => /^\$\{(\w+):\?/.exec(value)?.[1] ?? []);
    expect(needed.length).toBeGreaterThan(2);
    const exported = readText('config/compose.yaml')
      .split('\n')
      .filter((line) => line.startsWith('#   export'))
      .join(' ');
    for (const variable of needed) expect(exported).toContain(`${variable}=`);
    for (const [key, value] of Object.entries(service.environment)) {
      if (/SECRET|KEY/.test(key)) expect(value).toMatch(/^\$\{\w+:\?/);
    }
  });

  test('behaviour: a service of compose.yaml keeps its data in its volume, the rest may not be written', () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    const kept = config.registry?.store.name ?? config.sync?.snapshotFile ?? '';
    if (config.registry?.store.kind === 'postgres') return;
    // The image leads this folder to /data.
    expect(kept).toMatch(/^\/etc\/tollgate\/data\//);
    const volume = service.volumes.map((item) => item.split(':')).find(([, target]) => target === '/data');
    expect(Object.keys(compose.volumes)).toContain(volume?.[0]);
  });

  test('behaviour: a service of compose.yaml is this version, built here, published where it listens, and has time to drain', () => {
    expect(service.image).toBe(`tollgate:${packageFile.version}`);
    expect(existsSync(path.join(ROOT, 'config', service.build ?? 'nothing', 'Dockerfile'))).toBe(true);
    const port = config.proxy?.listen.port ?? config.registry?.listen.port;
    expect(service.ports.map((item) => Number(item.split(':').at(-1)))).toEqual([port]);
    const drain = config.proxy === undefined ? 5_000 : drainMs(config.proxy.timeouts);
    expect(seconds(service.stop_grace_period)).toBeGreaterThan(drain);
  });
});

test('behaviour: after `up` the curls of the first lines meet what they say, and a container reaches this machine', async () => {
  const text = readText('config/compose.yaml');
  const curls = [...text.matchAll(/^# +curl -i http:\/\/localhost:8402(\/\S*) +# (\w+)/gm)].map(
    ([, target = '', answer]) => [target, answer] as const,
  );
  expect(curls.map(([, answer]) => answer)).toEqual(['free', '402']);
  for (const [target, answer] of curls) {
    const io = fakeIo({ folder: path.join(ROOT, 'config'), env: VALUES });
    const code = await runCommandLine(['match', 'GET', target, '-c', 'registry.yaml'], COMMANDS, io);
    expect([target, code, io.stderr()]).toEqual([target, answer === '402' ? 0 : 1, '']);
  }
  const commands = [...text.matchAll(/exec \w+ tollgate (\w+)/g)].map(([, name]) => name);
  expect(commands).toEqual(['token', 'keys', 'why']);
  for (const name of commands) expect(COMMANDS.map((command) => command.name)).toContain(name);
  expect(serviceNamed('tollgate')).toMatchObject({
    environment: { UPSTREAM: expect.stringMatching(/^\$\{UPSTREAM:-/) },
    extra_hosts: ['host.docker.internal:host-gateway'],
  });
});

test('behaviour: the profile postgres is three all-in-ones, the database that they name, and nothing that needs it otherwise', async () => {
  const profiled = Object.entries(compose.services).filter(([, { profiles }]) => profiles.length > 0);
  expect(profiled.map(([name, { profiles }]) => [name, profiles])).toEqual(
    ['replica', 'replica-api', 'postgres'].map((name) => [name, ['postgres']]),
  );
  const replica = serviceNamed('replica');
  const [first = 0, last = 0] = (replica.ports[0]?.split(':')[0] ?? '').split('-').map(Number);
  expect([replica.deploy?.replicas, last - first + 1]).toEqual([3, 3]);
  expect(replica.depends_on).toEqual({
    postgres: { condition: 'service_healthy' },
    'replica-api': { condition: 'service_started' },
  });
  const store = configOf('replica').registry?.store;
  const database = serviceNamed('postgres');
  expect(store).toMatchObject({
    ...{ kind: 'postgres', host: 'postgres', port: 5432, tls: { mode: 'off' } },
    ...{ user: database.environment['POSTGRES_USER'], database: database.environment['POSTGRES_DB'] },
    password: { value: VALUES.POSTGRES_PASSWORD },
  });
  expect(database.environment['POSTGRES_PASSWORD']).toBe(replica.environment['POSTGRES_PASSWORD']);
  // A variable that must be there is asked for in every profile, also where nothing needs it.
  expect(database.environment['POSTGRES_PASSWORD']).toBe('${POSTGRES_PASSWORD:-}');
  const volumes = [database, replica].map(({ volumes: [volume = ''] }) => volume.split(':')[0]);
  expect(Object.keys(compose.volumes)).toContain(volumes[0]);
  expect(database).toMatchObject({
    ports: [],
    healthcheck: { test: expect.arrayContaining(['pg_isready']) as unknown },
  });

  const text = readText('config/compose.yaml');
  const [, port, target = ''] =
    /^# +curl -i http:\/\/localhost:(\d+)(\/\S*) +# 402, .* config\/postgres\.yaml say so/m.exec(text) ?? [];
  expect(Number(port) >= first && Number(port) <= last).toBe(true);
  const io = fakeIo({ folder: path.join(ROOT, 'config'), env: VALUES });
  const routes = configOf('replica').routes.map(({ route_pattern: pattern }) => pattern);
  expect(routes.some((pattern) => target.startsWith(pattern.replace('*', '')))).toBe(true);
  expect(await runCommandLine(['check', '-c', 'postgres.yaml'], COMMANDS, io)).toBe(0);
  expect(text).toMatch(/^# +export POSTGRES_PASSWORD=/m);
  expect(text).toMatch(/exec --index 2 replica tollgate keys create/);
  const upstream = filled(replica.environment)['UPSTREAM'];
  expect(upstream).toBe('http://replica-api:3000');
  expect(serviceNamed('replica-api')).toMatchObject({
    ports: [],
    command: [expect.stringContaining("listen(3000, '0.0.0.0')")],
  });
});

test('behaviour: the sidecar finds the registry, with a key that the registry knows', () => {
  const registry = configOf('registry');
  const sidecar = configOf('tollgate');
  const url = new URL(sidecar.sync?.registryUrl ?? '');
  expect([url.hostname, Number(url.port)]).toEqual(['registry', registry.registry?.listen.port]);
  const known = registry.registry?.apiKeys?.find(({ key }) => key === sidecar.sync?.apiKey);
  expect(known?.scopes).toEqual(['sdk', 'ledger']);
  expect(serviceNamed('tollgate').depends_on).toEqual({ registry: { condition: 'service_healthy' } });
});

test('behaviour: the API is where the sidecar looks for it, and nobody else reaches it', async () => {
  const api = serviceNamed('api');
  expect(api.network_mode).toBe('service:tollgate');
  expect(api.ports).toEqual([]);
  const [module, listen] =
    /^import \{ createDemoApi \} from '(.*)'; createDemoApi\(\)\.listen\((.*)\)$/
      .exec(api.command[0] ?? '')
      ?.slice(1) ?? [];
  expect(existsSync(path.join(ROOT, (module ?? '').replace('/app/dist/', 'src/cli/').replace(/\.js$/, '.ts')))).toBe(
    true,
  );
  const upstream = configOf('tollgate').proxy?.upstream;
  expect(listen).toBe(`${upstream?.port}, '${upstream?.host}'`);
  expect(api.entrypoint).toEqual(['/nodejs/bin/node', '--input-type=module', '--eval']);
  expect(createDemoApi()).toBeInstanceOf(createServer().constructor);
});

test('behaviour: Prometheus scrapes both, under the job that the alerts look for', () => {
  const { volumes } = serviceNamed('prometheus');
  expect(volumes).toContain('./prometheus:/etc/prometheus:ro');
  const config = z
    .looseObject({
      rule_files: z.array(z.string()),
      scrape_configs: z.array(
        z.object({ job_name: z.string(), static_configs: z.array(z.object({ targets: z.array(z.string()) })) }),
      ),
    })
    .parse(readYaml('config/prometheus/prometheus.yml')[0]);
  for (const file of config.rule_files) expect(existsSync(path.join(ROOT, 'config/prometheus', file))).toBe(true);
  const [job, ...more] = config.scrape_configs;
  expect([job?.job_name, more]).toEqual(['tollgate', []]);
  expect(job?.static_configs.flatMap(({ targets }) => targets)).toEqual(
    ['tollgate', 'registry'].map((name) => `${name}:${configOf(name).admin.listen.port}`),
  );
});
