// Configurations of parts that share one PostgreSQL.
import { PAY_TO, SETTLE_MS } from './world.ts';

const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
const API_KEY = 'an-api-key-of-the-test';

/** `webhooks`: that section, or nothing. */
export type RegistryParts = { readonly port: number; readonly store: string; readonly webhooks?: string };

/** What a proxy has, whoever keeps its routes. */
export type ProxyParts = {
  readonly port: number;
  readonly upstream: string;
  readonly rpcUrl: string;
  readonly facilitator: number;
  readonly workers?: number;
  /** How long it serves on while it is already not ready. */
  readonly drainDelay?: string;
  /** The section `selling`, or nothing. */
  readonly selling?: string;
};

const ADMIN = 'admin: { listen: 127.0.0.1:0 }';
const ROUTES = ['routes:', '  - { method: "*", route_pattern: "/paid/*", amount: "0.10" }'];

export function registryConfig(parts: RegistryParts): string {
  return [registry(parts), ADMIN, ...ROUTES, parts.webhooks ?? ''].join('\n');
}

/** Without a `store` its charges are in the registry's ledger. */
export function sidecarConfig(
  parts: ProxyParts & {
    readonly registry: number;
    readonly snapshot: string;
    readonly store: string | undefined;
  } & Pick<RegistryParts, 'webhooks'>,
): string {
  const { registry, snapshot, store, webhooks } = parts;
  return [
    ...proxy(parts, store === undefined ? '' : `, store: ${store}`),
    `sync: { registry_url: "http://127.0.0.1:${registry}", api_key: ${API_KEY}, snapshot_file: ${snapshot} }`,
    ...(store === undefined || webhooks === undefined ? [] : [webhooks]),
  ].join('\n');
}

/** `registry`: its port; left out: any. */
export function allInOneConfig(parts: ProxyParts & { readonly store: string; readonly registry?: number }): string {
  const { store, registry: port = 0 } = parts;
  return [...proxy(parts, ''), registry({ port, store }), ...ROUTES].join('\n');
}

function registry({ port, store }: RegistryParts): string {
  return `registry: { listen: 127.0.0.1:${port}, store: ${store}, jwt: { secret: ${SECRET} }, api_keys: [{ name: k, key: ${API_KEY}, scopes: [sdk, ledger] }] }`;
}

function proxy(parts: ProxyParts, charges: string): string[] {
  const { port, upstream, rpcUrl, facilitator, workers, drainDelay, selling = '' } = parts;
  return [
    `proxy: { listen: 127.0.0.1:${port}, upstream: ${upstream}, public_url: "https://api.example.com", timeouts: { drain_delay: ${drainDelay ?? '0s'}, drain: 10s } }`,
    ADMIN,
    ...(workers === undefined ? [] : [`workers: ${workers}`]),
    'x402: { v1: true }',
    `charges: { secrets: [${SECRET}], max_unsettled_per_payer: 10000${charges} }`,
    'receivers:',
    `  - { id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", rpc_url: ${rpcUrl},`,
    `      facilitators: [{ url: "http://127.0.0.1:${facilitator}", timeouts: { verify: 2s, settle: ${SETTLE_MS}ms } }] }`,
    selling,
  ];
}
