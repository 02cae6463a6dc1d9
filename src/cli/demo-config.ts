// The configuration of the demo: everything in one process on loopback, on its favourite ports if they are free.
import { createServer } from 'node:net';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { resolveSecrets } from '../config/first-start.ts';
import type { QuickData } from '../config/quick.ts';
import { validate } from '../config/validate.ts';
import { createRandom } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';

/** An address without an owner: money sent there in earnest would be lost, so the demo stays on test networks. */
export const PAY_TO = '0x000000000000000000000000000000000000dEaD';
export const FAVOURITE_PORTS = { proxy: 8402, registry: 8403, admin: 9402 };

/** A way to pay that the demo offers. */
export type DemoWay = {
  /** Name in the configuration. */
  readonly network: string;
  readonly payTo: string;
  readonly facilitator: string;
  readonly rpcUrl: string | undefined;
};

export type DemoOptions = {
  readonly folder: string;
  readonly upstream: string;
  readonly routes: readonly object[];
  /** The file of the API's OpenAPI document; undefined: it has none here. */
  readonly openapi: string | undefined;
  readonly ways: readonly DemoWay[];
};

type DemoConfig = { readonly config: Config; readonly data: QuickData } | { readonly problems: readonly string[] };

export type Ports = Readonly<Record<'proxy' | 'registry' | 'admin', number>>;

/** Finds which of the `wanted` ports are free; 0 stands in place of one that is taken. */
export async function freePorts({ proxy, registry, admin }: Ports): Promise<Ports> {
  const free = async (port: number): Promise<number> => ((await isFree(port)) ? port : 0);
  return { proxy: await free(proxy), registry: await free(registry), admin: await free(admin) };
}

export function demoConfig(
  { folder, upstream, routes, openapi, ways }: DemoOptions,
  ports: Ports,
  log: Log,
): DemoConfig {
  const at = (port: number): string => `127.0.0.1:${port}`;
  const data = {
    proxy: {
      listen: at(ports.proxy),
      upstream,
      undeclared_methods: 'pay',
      timeouts: { drain_delay: '0s', drain: '2s' },
    },
    registry: { listen: at(ports.registry), store: `sqlite:${path.join(folder, 'tollgate.db')}` },
    admin: { listen: at(ports.admin) },
    receivers: [
      {
        id: 'default',
        accepts: ways.map(({ network, payTo, facilitator, rpcUrl }) => ({
          network,
          pay_to_address: payTo,
          facilitators: [facilitator],
          ...(rpcUrl === undefined ? {} : { rpc_url: rpcUrl }),
        })),
      },
    ],
    routes,
    discovery: openapi === undefined ? {} : { openapi, contact: 'owner@example.com' },
  };
  const result = validate({
    data,
    issues: [],
    fromEnvironment: () => false,
    file: undefined,
    folder,
    networks: NETWORKS,
    env: {},
  });
  if (!result.ok)
    return {
      problems: result.issues.map(({ path: [section, ...rest], message }) =>
        section === 'proxy' && rest[0] === 'upstream'
          ? `--upstream: ${message}`
          : `--${section === 'routes' ? 'route' : String(section)} ${rest.join('.')}: ${message}`,
      ),
    };
  const resolved = resolveSecrets(result.config, { random: createRandom(), log });
  if (!resolved.ok) throw new Error(resolved.problem);
  return { config: resolved.config, data };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .on('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
