// Tollgate as its users start it: built, `tollgate serve -c FILE`, with everything on that a production sidecar has on and
// the access log off. All in one process, its routes stand in the store before it starts; a sidecar gets them from the
// registry that it is given. `root` is the checkout to run, so that two revisions can be compared.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { NODE, runToEnd, SERVER_CORE, LOAD_CORE, startServer, type Server } from './process.ts';
import { profilingFlags } from './profile.ts';
import { programOf } from './program.ts';
import { SECRET } from './question.ts';

export type Tollgate = Server & { readonly root: string; readonly configFile: string };

export type TollgateOptions = {
  /** What it is called among others: the folder of its profile. */
  readonly label: string;
  readonly root: string;
  readonly routes: number;
  readonly upstreamPort: number;
  /** Where stores and configurations are made. */
  readonly folder: string;
  /** Where V8 writes a CPU profile at the end, or undefined. */
  readonly profiles: string | undefined;
  /** It tells what is sold. */
  readonly discovery?: boolean;
  /** It answers questions as well, as Caddy asks them. */
  readonly decision?: boolean;
  /** Further sections of its configuration. */
  readonly more?: string;
};

/** Receivers of the bench: nothing is paid in it, so its facilitator is never asked. */
export const PAY_TO = '0x1111111111111111111111111111111111111111';
export const NETWORK = 'base-sepolia';
const API_KEY = 'bench-key-0123456789';
const CHARGE_SECRET = 'bench-secret-0123456789-0123456789';

export async function startTollgate(options: TollgateOptions): Promise<Tollgate> {
  const seeded = await seed(options);
  const folder = mkdtempSync(path.join(options.folder, 'tollgate-'));
  cpSync(seeded, path.join(folder, 'data'), { recursive: true });
  const asked = options.decision === true ? ['decision'] : [];
  return serve(options, folder, REGISTRY, ['proxy', 'registry', 'admin', ...asked]);
}

/** Beside the registry at `registryPort` of this machine; its snapshot file is new. */
export function startSidecar(options: TollgateOptions, registryPort: number): Promise<Tollgate> {
  const folder = mkdtempSync(path.join(options.folder, 'sidecar-'));
  return serve(options, folder, syncFrom(registryPort), ['proxy', 'admin']);
}

async function serve(
  options: TollgateOptions,
  folder: string,
  routesFrom: string,
  listeners: readonly string[],
): Promise<Tollgate> {
  const configFile = path.join(folder, 'tollgate.yaml');
  writeFileSync(
    configFile,
    configuration(options.upstreamPort, routesFrom) +
      (options.discovery === true ? 'discovery: {}\n' : '') +
      (options.more ?? '') +
      (options.decision === true ? `decision: { listen: 127.0.0.1:0, dialect: caddy, secret: ${SECRET} }\n` : ''),
  );
  const profiling = profilingFlags(options.profiles, options.label);
  const server = await startServer(
    {
      name: `Tollgate with ${options.routes} routes`,
      file: NODE,
      args: [...profiling, ...programOf(options.root), 'serve', '-c', configFile],
      core: SERVER_CORE,
    },
    listeners,
  );
  return { ...server, root: options.root, configFile };
}

/** A token for the dashboard's endpoints, got as an operator gets it. */
export async function dashboardToken({ root, configFile }: Tollgate): Promise<string> {
  const args = [...programOf(root), 'token', '-c', configFile];
  return (await runToEnd({ name: 'tollgate token', file: NODE, args, core: LOAD_CORE })).trim();
}

const REGISTRY = `registry:
  listen: 127.0.0.1:0
  store: sqlite:data/tollgate.db
`;

function syncFrom(registryPort: number): string {
  return `sync:
  registry_url: http://127.0.0.1:${registryPort}
  api_key: ${API_KEY}
  snapshot_file: routes.json
charges:
  secrets: [${CHARGE_SECRET}]
`;
}

function configuration(upstreamPort: number, routesFrom: string): string {
  return `proxy:
  listen: 127.0.0.1:0
  upstream: http://127.0.0.1:${upstreamPort}
  timeouts: { drain_delay: 0s, drain: 2s }
${routesFrom}admin:
  listen: 127.0.0.1:0
receivers:
  - id: default
    network: ${NETWORK}
    pay_to_address: "${PAY_TO}"
    facilitators: [http://127.0.0.1:9]
log: { level: info, access: false }
`;
}

/** A data folder whose store holds the routes; made once for each checkout and number. */
async function seed({ root, routes, folder }: TollgateOptions): Promise<string> {
  const data = path.join(folder, `seed-${createHash('sha256').update(root).digest('hex').slice(0, 16)}-${routes}`);
  try {
    mkdirSync(data);
  } catch {
    return data;
  }
  const args = [path.join(import.meta.dirname, 'seed.ts'), root, path.join(data, 'tollgate.db'), String(routes)];
  await runToEnd({ name: `filling a store with ${routes} routes`, file: NODE, args, core: LOAD_CORE });
  return data;
}
