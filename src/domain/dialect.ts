// The proxies that ask for decisions, by the names that configuration, log and ledger use.

export const DIALECTS = ['nginx', 'nginx_accel', 'caddy', 'traefik', 'envoy', 'haproxy'] as const;
export type Dialect = (typeof DIALECTS)[number];
