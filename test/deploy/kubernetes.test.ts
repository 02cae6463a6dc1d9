// The Kubernetes manifests against the program: their configurations load, and ports, probes, folders, users and times
// are those that Tollgate really has. Nothing here talks to a cluster.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { COMMANDS } from '../../src/cli/commands.ts';
import type { LoadedConfig } from '../../src/config/config.ts';
import { isWildcard } from '../../src/config/addresses.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { createAdmin } from '../../src/host/admin.ts';
import { createMetrics } from '../../src/host/metrics.ts';
import { startProcess, temporaryFolder } from '../support/process.ts';
import { startUpstream } from '../support/upstream.ts';
import { readManifest, secretMount, writableFolders, type Manifest } from './kubernetes.ts';
import {
  drainMs,
  finalStage,
  imageEnvironment,
  loadMounted,
  NODE,
  packageFile,
  readText,
  readYaml,
  VALUES,
} from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const FILES = [
  ['config/kubernetes/sidecar.yaml', 'sidecar'],
  ['config/kubernetes/registry.yaml', 'registry'],
  ['config/kubernetes/postgres/all-in-one.yaml', 'all-in-one'],
  ['config/kubernetes/postgres/registry.yaml', 'registry'],
] as const;
const SECRETS = {
  'api-key': VALUES.TOLLGATE_API_KEY,
  'charge-secrets': `${VALUES.TOLLGATE_CHARGE_SECRET}\n`,
  'jwt-secret': VALUES.TOLLGATE_JWT_SECRET,
  'db-password': VALUES.POSTGRES_PASSWORD,
};
/** Nothing but the database itself can tell that it is wrong. */
const UNCHECKED: ReadonlySet<string> = new Set(['db-password']);

function configText({ configMap }: Manifest): string {
  const text = configMap.data['tollgate.yaml'];
  if (text === undefined) throw new Error('the ConfigMap holds no tollgate.yaml');
  return text;
}

/** The configuration as the container sees it once a user filled in what is marked EDIT. */
function configOf(manifest: Manifest): LoadedConfig {
  const env = Object.fromEntries(manifest.tollgate.env.map(({ name, value }) => [name, value]));
  const text = configText(manifest).replace('"0x..."', `"${VALUES.PAY_TO}"`);
  const result = loadMounted(text, [secretMount(manifest, SECRETS)], env);
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.config;
}

describe.each(FILES)('%s', (file, shape) => {
  const manifest = readManifest(file);
  const { workload, tollgate, services, policy, budgets, configMap } = manifest;
  const pod = workload.spec.template.spec;
  const config = configOf(manifest);
  const listeners = Object.entries({
    proxy: config.proxy?.listen,
    registry: config.registry?.listen,
    admin: config.admin.listen,
  }).flatMap(([name, listen]) => (listen === undefined ? [] : [{ name, ...listen }]));
  const portOf = (name: string | number): number | undefined =>
    tollgate.ports.find((port) => port.name === name || port.containerPort === name)?.containerPort;

  test('behaviour: the configuration of a manifest loads, and what it warns of is what its comments say', () => {
    expect(config.shape).toBe(shape);
    expect(configWarnings(config, NETWORKS)).toEqual([
      ...(shape === 'registry' ? [] : [expect.stringContaining('without `public_url` and `hosts`')]),
      ...(shape === 'sidecar' ? [expect.stringContaining('sync.insecure')] : []),
    ]);
  });

  test('refuses: to start a manifest as it comes, for the sake of what is marked EDIT and nothing else', () => {
    const result = loadMounted(configText(manifest), [secretMount(manifest, {})]);
    expect(result.ok).toBe(false);
    if (result.ok) return;
    const lines = configText(manifest).split('\n');
    for (const { line, path, message } of result.problems) {
      const written = lines[line - 1] ?? '';
      const [, key] = /_file: \S*\/([\w-]+)/.exec(written) ?? [];
      const marked = key === undefined ? written.includes('# EDIT') : manifest.secret.stringData[key] === 'EDIT';
      expect.soft(marked, `${path}: ${message}`).toBe(true);
    }
    const files = Object.keys(manifest.secret.stringData).filter((name) => !UNCHECKED.has(name));
    expect(result.problems.length).toBe(files.length + (config.proxy === undefined ? 0 : 1));
  });

  test('behaviour: every listener has its container port, and binds where others reach it', () => {
    expect(tollgate.ports.map(({ name, containerPort }) => `${name} ${containerPort}`).toSorted()).toEqual(
      listeners.map(({ name, port }) => `${name} ${port}`).toSorted(),
    );
    expect(listeners.filter(({ host }) => !isWildcard(host))).toEqual([]);
  });

  test('behaviour: probes ask what the admin listener answers', async () => {
    const { startupProbe, livenessProbe, readinessProbe } = tollgate;
    const asked = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet);
    expect(asked.map((get) => get?.path)).toEqual(['/livez', '/livez', '/readyz']);
    for (const get of asked) expect(portOf(get?.port ?? '')).toBe(config.admin.listen.port);
    for (const path of ['/livez', '/readyz', '/metrics']) expect(await adminStatus(path)).toBe(200);
    expect(await adminStatus('/healthz')).toBe(404);
  });

  test('behaviour: a slow moment does not restart a pod, a slow start neither', () => {
    const patience = (probe: typeof tollgate.livenessProbe): number =>
      (probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0);
    expect(patience(tollgate.livenessProbe)).toBeGreaterThanOrEqual(30);
    // A database that is away holds up no answer to this one.
    expect(patience(tollgate.startupProbe)).toBe(60);
    expect(patience(tollgate.readinessProbe)).toBeLessThanOrEqual(15);
  });

  test('behaviour: the configuration is mounted where the image looks for it, as a folder, so that a change arrives', () => {
    const volume = pod.volumes.find((item) => item.configMap?.name === configMap.metadata.name);
    const mount = tollgate.volumeMounts.find(({ name }) => name === volume?.name);
    expect(`${mount?.mountPath}/${Object.keys(configMap.data)[0]}`).toBe(imageEnvironment()['TOLLGATE_CONFIG']);
    expect(mount).not.toHaveProperty('subPath');
  });

  test('behaviour: a pod keeps its data in a volume that may be written, and every volume is there', () => {
    const store = config.registry?.store;
    const kept = [store?.kind === 'sqlite' ? store.file : undefined, config.sync?.snapshotFile].filter(
      (name) => name !== undefined,
    );
    expect(kept.length).toBe(store?.kind === 'postgres' ? 0 : 1);
    for (const name of kept) {
      expect(
        writableFolders(manifest).some((folder) => name.startsWith(`${folder}/`)),
        name,
      ).toBe(true);
    }
    const volumes = [
      ...pod.volumes.map(({ name }) => name),
      ...workload.spec.volumeClaimTemplates.map((claim) => claim.metadata.name),
    ];
    expect(tollgate.volumeMounts.map(({ name }) => name).toSorted()).toEqual(volumes.toSorted());
  });

  test('behaviour: a container runs as the user of the image, may write nothing but volumes and gain nothing', () => {
    const user = finalStage().find(({ name }) => name === 'USER')?.value;
    const context = { ...pod.securityContext, ...tollgate.securityContext };
    expect(context).toMatchObject({
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(`${String(context['runAsUser'])}:${String(context['runAsGroup'])}`).toBe(user);
    expect(String(context['fsGroup'])).toBe(user?.split(':')[1]);
    expect(pod.automountServiceAccountToken).toBe(false);
    for (const { secret } of pod.volumes) if (secret) expect(secret.defaultMode & 0o007).toBe(0);
  });

  test('behaviour: services and the network policy lead to the ports of a pod and nowhere else', () => {
    const labels = workload.spec.template.metadata.labels;
    for (const selector of [
      ...services.map(({ spec }) => spec.selector),
      policy.spec.podSelector.matchLabels,
      workload.spec.selector.matchLabels,
    ]) {
      expect(labels).toMatchObject(selector ?? { nothing: 'selected' });
    }
    const served = [config.proxy?.listen.port, config.registry?.listen.port].filter((port) => port !== undefined);
    expect(services.flatMap(({ spec }) => spec.ports.map(({ targetPort }) => targetPort))).toEqual([
      ...served,
      config.admin.listen.port,
    ]);
    expect(policy.spec.policyTypes).toEqual(['Ingress']);
    const open = policy.spec.ingress.filter(({ from }) => from === undefined).flatMap(({ ports }) => ports);
    const closed = policy.spec.ingress.filter(({ from }) => from !== undefined).flatMap(({ ports }) => ports);
    expect([open, closed]).toEqual([served.map((port) => ({ port })), [{ port: config.admin.listen.port }]]);
  });

  test('behaviour: several pods are taken away one at a time, and they stand apart', () => {
    const { replicas } = workload.spec;
    const labels = workload.spec.template.metadata.labels;
    expect(replicas > 1).toBe(config.registry?.store.kind !== 'sqlite');
    if (shape === 'all-in-one') expect(replicas).toBe(3);
    expect(budgets.map(({ spec }) => spec)).toEqual(
      replicas > 1 ? [{ maxUnavailable: 1, selector: { matchLabels: labels } }] : [],
    );
    expect(pod.topologySpreadConstraints.map(({ topologyKey, labelSelector }) => [topologyKey, labelSelector])).toEqual(
      replicas > 1
        ? ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((key) => [key, { matchLabels: labels }])
        : [],
    );
    if (replicas > 1) expect(workload.spec['strategy']).toEqual({ rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
  });

  test('behaviour: the first lines of a manifest run commands of this program, in the container that has it', () => {
    const [first = ''] = readText(file).split('\napiVersion');
    const lines = [...first.matchAll(/kubectl exec (\S+)( -c tollgate)? -- tollgate (\w+)/g)];
    for (const [, name = '', container, command] of lines) {
      const kind = workload.kind === 'Deployment' ? `deploy/${workload.metadata.name}` : `${workload.metadata.name}-0`;
      expect([name, container !== undefined]).toEqual([kind, pod.containers[0]?.name !== 'tollgate']);
      expect(COMMANDS.map((each) => each.name)).toContain(command);
    }
    expect(lines.length > 1).toBe(config.registry !== undefined);
    if (config.registry?.store.kind === 'postgres') expect(first).toContain('tollgate routes delete ID');
  });

  test('behaviour: the image is this version, and says what it needs', () => {
    expect(tollgate.image).toBe(`tollgate:${packageFile.version}`);
    expect(tollgate.resources?.requests).toHaveProperty('memory');
    expect(tollgate.resources).not.toHaveProperty('limits.cpu');
  });

  test('behaviour: Kubernetes waits for the drain', () => {
    const grace = pod.terminationGracePeriodSeconds * 1000;
    const own = config.proxy === undefined ? 5_000 : drainMs(config.proxy.timeouts);
    expect(grace).toBeGreaterThan(own);
    if (config.proxy === undefined) return;
    const slept = (pod.containers[0]?.lifecycle?.preStop.sleep?.seconds ?? 0) * 1000;
    expect(slept).toBeGreaterThan(config.proxy.timeouts.drainDelayMs);
    expect(grace).toBeGreaterThanOrEqual(slept + config.proxy.timeouts.drainMs);
  });
});

describe('the sidecar', () => {
  const manifest = readManifest('config/kubernetes/sidecar.yaml');
  const folder = temporaryFolder();
  afterAll(folder.remove);

  test.each(['sidecar.yaml', 'postgres/all-in-one.yaml'])(
    'behaviour: the sidecar container of %s is a native one, an init container that stays, and ends in the same way',
    (file) => {
      const { workload, tollgate } = readManifest(`config/kubernetes/${file}`);
      const { initContainers } = workload.spec.template.spec;
      expect(initContainers.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([['tollgate', 'Always']]);
      expect(tollgate.lifecycle).toEqual(manifest.tollgate.lifecycle);
    },
  );

  test.each(['registry.yaml', 'postgres/registry.yaml'])('behaviour: the sidecar’s registry is that of %s', (file) => {
    const url = new URL(configOf(manifest).sync?.registryUrl ?? '');
    const [service] = readManifest(`config/kubernetes/${file}`).services;
    expect([url.hostname, Number(url.port)]).toEqual([service?.metadata.name, service?.spec.ports[0]?.port]);
  });

  test('behaviour: the preStop of the sidecar makes a running Tollgate drain and ends with it', async () => {
    const [program, flag, script = ''] = manifest.tollgate.lifecycle?.preStop.exec?.command ?? [];
    expect([program, flag]).toEqual([shebang(), '-e']);
    const upstream = await startUpstream();
    const file = folder.write(
      'tollgate.yaml',
      `proxy: { listen: "127.0.0.1:0", upstream: "${upstream.url}", timeouts: { drain_delay: 0s, drain: 5s } }
registry: { listen: "127.0.0.1:0", store: "sqlite:t.db" }
admin: { listen: "127.0.0.1:0" }
`,
    );
    const running = await startProcess({ args: ['serve', '-c', file] });
    // As the kubelet runs it, but for the number of the process, which is 1 in a container.
    const hook = spawn(NODE, ['-e', script.replace('process.kill(1,', `process.kill(${running.pid},`)]);
    try {
      expect(await running.exited).toBe(0);
      expect(running.lines.map(({ msg }) => msg)).toContain('draining');
      expect(hook.exitCode, 'the hook waits until the container takes it along').toBe(null);
    } finally {
      hook.kill('SIGKILL');
      await running.kill();
      await upstream.close();
    }
  });
});

test('behaviour: servicemonitor.yaml finds the metrics of all manifests', () => {
  const monitor = z
    .object({
      apiVersion: z.literal('monitoring.coreos.com/v1'),
      kind: z.literal('ServiceMonitor'),
      spec: z.object({
        selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
        endpoints: z.array(
          z.looseObject({ port: z.string(), path: z.string(), relabelings: z.array(z.record(z.string(), z.string())) }),
        ),
      }),
    })
    .parse(readYaml('config/kubernetes/servicemonitor.yaml')[0]);
  const [endpoint] = monitor.spec.endpoints;
  for (const [file] of FILES) {
    const found = readManifest(file).services.filter(({ metadata }) =>
      Object.entries(monitor.spec.selector.matchLabels).every(([name, value]) => metadata.labels[name] === value),
    );
    expect(found.flatMap(({ spec }) => spec.ports.map(({ name }) => name))).toEqual([endpoint?.port]);
  }
  expect(endpoint?.path).toBe('/metrics');
  expect(endpoint?.relabelings).toEqual([{ targetLabel: 'job', replacement: 'tollgate' }]);
  expect(readText('config/prometheus/alerts.yml')).toContain('job="tollgate"');
});

/** The interpreter that the Dockerfile writes into the program, which is where the image has Node. */
function shebang(): string | undefined {
  return /#!(\S+?)(?: [^|]*)?\|/.exec(readText('Dockerfile'))?.[1];
}

async function adminStatus(path: string): Promise<number> {
  const server = createServer(createAdmin(createMetrics(), []));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  try {
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.status;
  } finally {
    server.close();
  }
}
