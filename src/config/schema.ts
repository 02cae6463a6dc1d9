// The configuration: every key with its schema, default, name in the program and sentence, and whether it needs a
// restart, and no other key. The program works with the schema's output. Rules about two keys stand in combinations.ts.
import { z } from 'zod';
import { assertionSection } from './assertion.ts';
import { decisionList } from './decision-keys.ts';
import { discoverySection } from './discovery.ts';
import { choice, count, countOr, duration, flag, listen, optionalDuration, secret } from './fields.ts';
import { MOST_WORKERS } from '../host/worker-count.ts';
import { key, section } from './keys.ts';
import { otlpSection } from './otlp.ts';
import { pageSection } from './page.ts';
import { proxySection } from './proxy-keys.ts';
import { receiverSchema } from './receivers.ts';
import { registrySection, syncSection } from './registry-keys.ts';
import { configRouteSchema } from './route-keys.ts';
import { sellingSection } from './selling.ts';
import { store } from './store.ts';
import { webhooksSection } from './webhooks.ts';

/** A week: long enough that no charge is lost that was not looked at yet. */
const RETENTION_MS = 7 * 86_400_000;

/** The whole configuration. `folder`: relative paths are relative to it. */
export function createConfigSchema(folder: string) {
  const charges = section({
    secrets: key(
      'secrets',
      z.array(secret()).min(1, 'is empty; write at least one secret').optional(),
      'Secrets of the quotes in 402 responses. The first one signs, all of them verify. Every replica needs the same ones.',
    ),
    store: key(
      'store',
      store(folder).optional(),
      'A ledger of its own, or on the database of the registry the same one. Left out: the ledger of the registry.',
      'restart',
    ),
    quote_ttl: key('quoteTtlMs', duration(1000, 24 * 3_600_000).prefault('300s'), 'How long a quoted price holds.'),
    keep_response: key(
      'keepResponseBytes',
      count(0, 16_777_216).default(65_536),
      'Most bytes of a paid response that Tollgate keeps until the client has it.',
    ),
    max_unsettled_per_payer: key(
      'maxUnsettledPerPayer',
      count(1, 10_000).default(64),
      'Most payments of one wallet on one network whose outcome is still unknown.',
    ),
    retention: key(
      'retentionMs',
      optionalDuration(RETENTION_MS).optional(),
      'How long Tollgate keeps charges that are over. Left out or off: for ever.',
    ),
  });

  return section({
    proxy: key('proxy', proxySection.optional(), 'Takes requests, lets them pay, and forwards them.'),
    decision: key(
      'decision',
      decisionList.optional(),
      'Answers the questions of a proxy that forwards by itself: a section, or a list of them.',
    ),
    registry: key('registry', registrySection(folder).optional(), 'Keeps routes and charges.'),
    sync: key('sync', syncSection(folder).optional(), 'Follows a registry elsewhere.'),
    admin: key(
      'admin',
      section({
        listen: key('listen', listen().prefault('127.0.0.1:9402'), 'Serves /metrics, /livez and /readyz.', 'restart'),
      }).prefault({}),
      'For operators.',
    ),
    charges: key('charges', charges.prefault({}), 'Settings of every payment.'),
    receivers: key(
      'receivers',
      z.array(receiverSchema).default([]),
      'The wallets that get the money, each with one or several ways to pay (`accepts`).',
    ),
    routes: key(
      'routes',
      z.array(configRouteSchema.transform((route) => ({ ...route, source: 'config' as const }))).default([]),
      'Routes that this file declares. A registry may have more.',
    ),
    selling: key('selling', sellingSection(folder).optional(), 'How routes are sold besides their price.'),
    assertion: key(
      'assertion',
      assertionSection.optional(),
      'A signed statement to your API of what let a request pass. Left out: none.',
    ),
    page: key('page', pageSection(folder).prefault({}), 'The page that a browser shows for a paid URL.'),
    x402: key(
      'x402',
      section({ v1: key('v1', flag().default(false), 'True: clients of x402 version 1 can pay too.') }).prefault({}),
      'The protocol of payments.',
    ),
    discovery: key(
      'discovery',
      discoverySection(folder).optional(),
      'Describes paid routes to facilitators, which list them for agents.',
    ),
    metrics: key(
      'metrics',
      section({
        max_routes: key(
          'maxRoutes',
          count(0, 100_000).default(1000),
          'Route ids with metrics of their own; further ones count as `other`.',
        ),
      }).prefault({}),
      'Metrics for Prometheus.',
    ),
    otlp: key('otlp', otlpSection.optional(), 'Traces of requests for OpenTelemetry. Left out: none.', 'restart'),
    log: key(
      'log',
      section({
        level: key(
          'level',
          choice(['debug', 'info', 'warn', 'error']).default('info'),
          'The lowest level of log lines that are written.',
        ),
        access: key('access', flag().default(true), 'True: one log line for each request.'),
        format: key(
          'format',
          choice(['auto', 'json', 'text']).default('auto'),
          '`auto`: text on a terminal, JSON lines elsewhere.',
        ),
      }).prefault({}),
      'The log.',
    ),
    webhooks: key(
      'webhooks',
      webhooksSection(),
      'Endpoints that events of charges and routes are sent to, if charges are kept here.',
    ),
    workers: key(
      'workers',
      countOr(1, MOST_WORKERS, 'auto').default(1),
      'Processes that serve clients, one for each core. `auto`: as many as the CPUs and the memory limit allow.',
      'restart',
    ),
  });
}
/** Sections of a checked configuration. */
export type ConfigSections = z.output<ReturnType<typeof createConfigSchema>>;
