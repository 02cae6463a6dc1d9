// Turns a checked configuration file (snake_case, as the schema left it) into a Config (camelCase): the one place where
// keys change their names. Everything was judged before; nothing is refused here.
import { resolve } from 'node:path';
import type { Networks } from '../domain/network.ts';
import type { JwtConfig, LoadedConfig, StoreConfig } from './config.ts';
import { toReceiver } from './receivers.ts';
import { toUpstream, type ConfigInput } from './schema.ts';

export type Origin = Pick<LoadedConfig, 'file' | 'folder'>;

export function buildConfig(input: ConfigInput, origin: Origin, networks: Networks): LoadedConfig {
  const { admin, charges, log } = input;
  return {
    ...origin,
    shape: input.proxy === undefined ? 'registry' : input.registry === undefined ? 'sidecar' : 'all-in-one',
    proxy: input.proxy && buildProxy(input.proxy),
    registry: input.registry && {
      listen: input.registry.listen,
      store: toStore(input.registry.store, origin.folder),
      jwt: input.registry.jwt && toJwt(input.registry.jwt),
      apiKeys: input.registry.api_keys,
      corsOrigins: input.registry.cors_origins,
      limits: toRegistryLimits(input.registry.limits),
    },
    sync: input.sync && buildSync(input.sync, origin.folder),
    admin,
    charges: {
      secrets: charges.secrets,
      store: charges.store === undefined ? undefined : toStore(charges.store, origin.folder),
      quoteTtlMs: charges.quote_ttl,
      keepResponseBytes: charges.keep_response,
      maxUnsettledPerPayer: charges.max_unsettled_per_payer,
      retentionMs: charges.retention,
    },
    receivers: input.receivers.map((receiver) => toReceiver(receiver, networks)),
    routes: input.routes.map((route) => Object.assign(route, { source: 'config' as const })),
    x402: input.x402,
    metrics: { maxRoutes: input.metrics.max_routes },
    log,
  };
}

function buildProxy(proxy: NonNullable<ConfigInput['proxy']>): NonNullable<LoadedConfig['proxy']> {
  const { timeouts, limits } = proxy;
  return {
    listen: proxy.listen,
    upstream: toUpstream(proxy.upstream),
    hostHeader: proxy.host_header,
    publicUrl: proxy.public_url,
    hosts: proxy.hosts,
    trustedProxies: proxy.trusted_proxies,
    upstreamProfile: proxy.upstream_profile,
    encodedSlashes: proxy.encoded_slashes,
    doubleSlashes: proxy.double_slashes,
    undeclaredMethods: proxy.undeclared_methods,
    methods: proxy.methods,
    preflight: proxy.preflight,
    corsOrigins: proxy.cors_origins,
    customerHeader: proxy.customer_header,
    customerHeaderTrusted: proxy.customer_header_trusted,
    passPaymentHeaders: proxy.pass_payment_headers,
    timeouts: {
      connectMs: timeouts.connect,
      headersMs: timeouts.headers,
      idleMs: timeouts.idle,
      uploadMs: timeouts.upload,
      ...(timeouts.total === undefined ? {} : { totalMs: timeouts.total }),
      drainDelayMs: timeouts.drain_delay,
      drainMs: timeouts.drain,
    },
    limits: {
      targetBytes: limits.target,
      headerBytes: limits.headers,
      connections: limits.connections,
      inFlight: limits.in_flight,
      inFlightPerClient: limits.in_flight_per_client,
      payments: limits.payments,
      paymentsPerClient: limits.payments_per_client,
      refusedPaymentsPerClient: limits.refused_payments_per_client,
      challengesPerClient: {
        perMinute: limits.challenges_per_client.per_minute,
        burst: limits.challenges_per_client.burst,
        clients: limits.challenges_per_client.clients,
      },
    },
  };
}

function buildSync(sync: NonNullable<ConfigInput['sync']>, folder: string): NonNullable<LoadedConfig['sync']> {
  return {
    registryUrl: sync.registry_url,
    apiKey: sync.api_key,
    pollIntervalMs: sync.poll_interval,
    snapshotFile: resolve(folder, sync.snapshot_file),
    snapshotMaxAgeMs: sync.snapshot_max_age,
    emptyAfterMs: sync.empty_after,
    whenAbsent: sync.when_absent,
    listen: sync.listen,
  };
}

function toRegistryLimits(
  limits: NonNullable<ConfigInput['registry']>['limits'],
): NonNullable<LoadedConfig['registry']>['limits'] {
  return {
    bodyBytes: limits.body,
    routes: limits.routes,
    connections: limits.connections,
    eventStreams: limits.event_streams,
    eventStreamsPerKey: limits.event_streams_per_key,
    registrationsPerMinute: limits.registrations_per_minute,
  };
}

function toStore(value: string, folder: string): StoreConfig {
  return { kind: 'sqlite', file: resolve(folder, value.slice('sqlite:'.length)) };
}

function toJwt({
  secret,
  public_key: pem,
  jwks_url: url,
  issuer,
  audience,
}: NonNullable<NonNullable<ConfigInput['registry']>['jwt']>): JwtConfig {
  if (secret !== undefined) return { key: { kind: 'secret', secret }, issuer, audience };
  if (pem !== undefined) return { key: { kind: 'public_key', pem }, issuer, audience };
  return { key: { kind: 'jwks', url: url ?? '' }, issuer, audience };
}
