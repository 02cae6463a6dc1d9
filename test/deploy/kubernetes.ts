// The parts of Kubernetes objects that the manifests are checked for, as schemas, and how a workload hangs together:
// which configuration, which secrets and which folders its Tollgate sees.
import { z } from 'zod';
import { readYaml, type Mounted } from './support.ts';

const metadata = z.object({ name: z.string(), labels: z.record(z.string(), z.string()).default({}) });
const probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.union([z.string(), z.number()]) }),
  periodSeconds: z.number(),
  timeoutSeconds: z.number().default(1),
  failureThreshold: z.number(),
});

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  restartPolicy: z.string().optional(),
  // The image's own entrypoint and command are what runs.
  command: z.undefined().optional(),
  args: z.undefined().optional(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: probe.optional(),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
  lifecycle: z
    .object({
      preStop: z.object({
        sleep: z.object({ seconds: z.number() }).optional(),
        exec: z.object({ command: z.array(z.string()) }).optional(),
      }),
    })
    .optional(),
  resources: z.looseObject({ requests: z.record(z.string(), z.string()) }).optional(),
  securityContext: z.looseObject({}).default({}),
  volumeMounts: z
    .array(z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) }))
    .default([]),
});
export type Container = z.output<typeof container>;

const podSpec = z.looseObject({
  terminationGracePeriodSeconds: z.number(),
  automountServiceAccountToken: z.boolean(),
  securityContext: z.looseObject({}),
  topologySpreadConstraints: z
    .array(
      z.strictObject({
        maxSkew: z.number(),
        topologyKey: z.string(),
        whenUnsatisfiable: z.enum(['ScheduleAnyway', 'DoNotSchedule']),
        labelSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
      }),
    )
    .default([]),
  initContainers: z.array(container).default([]),
  containers: z.array(container),
  volumes: z.array(
    z.looseObject({
      name: z.string(),
      configMap: z.object({ name: z.string() }).optional(),
      secret: z.object({ secretName: z.string(), defaultMode: z.number() }).optional(),
      emptyDir: z.looseObject({}).optional(),
    }),
  ),
});

const workload = z.object({
  kind: z.enum(['Deployment', 'StatefulSet']),
  apiVersion: z.literal('apps/v1'),
  metadata,
  spec: z.looseObject({
    replicas: z.number(),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    template: z.object({ metadata: metadata.omit({ name: true }), spec: podSpec }),
    volumeClaimTemplates: z.array(z.looseObject({ metadata })).default([]),
  }),
});
export type Workload = z.output<typeof workload>;

const service = z.object({
  kind: z.literal('Service'),
  apiVersion: z.literal('v1'),
  metadata,
  spec: z.looseObject({
    selector: z.record(z.string(), z.string()),
    ports: z.array(z.object({ name: z.string(), port: z.number(), targetPort: z.number() })),
  }),
});
export type Service = z.output<typeof service>;

const networkPolicy = z.object({
  kind: z.literal('NetworkPolicy'),
  apiVersion: z.literal('networking.k8s.io/v1'),
  metadata,
  spec: z.looseObject({
    podSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    policyTypes: z.array(z.string()),
    ingress: z.array(
      z.object({ from: z.array(z.unknown()).optional(), ports: z.array(z.object({ port: z.number() })) }),
    ),
  }),
});

const budget = z.object({
  kind: z.literal('PodDisruptionBudget'),
  apiVersion: z.literal('policy/v1'),
  metadata,
  spec: z.strictObject({
    maxUnavailable: z.number(),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
  }),
});

const configMap = z.object({
  kind: z.literal('ConfigMap'),
  apiVersion: z.literal('v1'),
  metadata,
  data: z.record(z.string(), z.string()),
});
const secret = z.object({
  kind: z.literal('Secret'),
  apiVersion: z.literal('v1'),
  metadata,
  stringData: z.record(z.string(), z.string()),
});

const object = z.discriminatedUnion('kind', [workload, service, networkPolicy, budget, configMap, secret]);

export type Manifest = {
  readonly workload: Workload;
  readonly tollgate: Container;
  readonly services: readonly Service[];
  readonly policy: z.output<typeof networkPolicy>;
  readonly budgets: readonly z.output<typeof budget>[];
  readonly configMap: z.output<typeof configMap>;
  readonly secret: z.output<typeof secret>;
};

/** A manifest of one workload; throws where an object is of a kind or a form that is not checked here. */
export function readManifest(file: string): Manifest {
  const objects = readYaml(file).map((document) => object.parse(document));
  const only = <T>(found: readonly T[], what: string): T => {
    const [first, ...more] = found;
    if (first === undefined || more.length > 0) throw new Error(`${file}: not exactly one ${what}`);
    return first;
  };
  const main = only(
    objects.filter((item): item is Workload => item.kind === 'Deployment' || item.kind === 'StatefulSet'),
    'workload',
  );
  const { initContainers, containers } = main.spec.template.spec;
  return {
    workload: main,
    tollgate: only(
      [...initContainers, ...containers].filter(({ name }) => name === 'tollgate'),
      'container tollgate',
    ),
    services: objects.filter((item) => item.kind === 'Service'),
    policy: only(
      objects.filter((item) => item.kind === 'NetworkPolicy'),
      'NetworkPolicy',
    ),
    budgets: objects.filter((item) => item.kind === 'PodDisruptionBudget'),
    configMap: only(
      objects.filter((item) => item.kind === 'ConfigMap'),
      'ConfigMap',
    ),
    secret: only(
      objects.filter((item) => item.kind === 'Secret'),
      'Secret',
    ),
  };
}

/** Where the volume of the Secret is mounted, with `values` in the place of what the Secret holds. */
export function secretMount(
  { workload, tollgate, secret }: Manifest,
  values: Readonly<Record<string, string>>,
): Mounted {
  const volume = workload.spec.template.spec.volumes.find((item) => item.secret?.secretName === secret.metadata.name);
  const mount = tollgate.volumeMounts.find(({ name }) => name === volume?.name);
  const files = Object.entries(secret.stringData).map(([key, held]) => [key, values[key] ?? held]);
  return { folder: mount?.mountPath ?? '/nowhere', files: Object.fromEntries(files) };
}

/** Folders that Tollgate may write to: what is neither a ConfigMap nor a Secret, nor mounted read-only. */
export function writableFolders({ workload, tollgate }: Manifest): string[] {
  const { volumes } = workload.spec.template.spec;
  const writable = new Set([
    ...volumes.filter(({ emptyDir }) => emptyDir !== undefined).map(({ name }) => name),
    ...workload.spec.volumeClaimTemplates.map((claim) => claim.metadata.name),
  ]);
  return tollgate.volumeMounts
    .filter(({ name, readOnly }) => writable.has(name) && !readOnly)
    .map(({ mountPath }) => mountPath);
}
