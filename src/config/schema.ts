// The configuration: every key with its schema, default, name in the program and sentence, and whether it needs a
// restart, and no other key. The program works with the schema's output. Rules about two keys stand in combinations.ts.
import { z } from 'zod';
import { discoverySection } from './discovery.ts';
import { choice, count, countOr, duration, flag, listen, optionalDuration, secret } from './fields.ts';
import { MOST_WORKERS } from '../host/worker-count.ts';
import { key, section } from './keys.ts';
import { pageSection } from './page.ts';
import { proxySection } from './proxy-keys.ts';
import { receiverSchema } from './receivers.ts';
import { registrySection, syncSection } from './registry-keys.ts';
import { configRouteSchema } from './routes.ts';
import { store } from './store.ts';

/** A week: long enough that no charge is lost that was not looked at yet. */
const RETENTION_MS = 7 * 86_400_000;

/** The whole configuration. `folder`: relative paths are relative to it. */
export function createConfigSchema(folder: string) {
  const charges = section({
    secrets: key(
      'secrets',
      z.array(secret()).min(1, 'is empty; write at least one secret').optional(),
      'Sign what a 402 quotes: the first signs, all verify; the same on every replica.',
    ),
    store: key(
      'store',
      store(folder).optional(),
      'A ledger beside that of the registry, or, on its database, the same; left out, that of the registry.',
      'restart',
    ),
    quote_ttl: key(
      'quoteTtlMs',
      duration(1000, 24 * 3_600_000).prefault('300s'),
      'How long a quoted price is honoured.',
    ),
    keep_response: key(
      'keepResponseBytes',
      count(0, 16_777_216).default(65_536),
      'Bytes of a paid response that are kept until it was handed over.',
    ),
    max_unsettled_per_payer: key(
      'maxUnsettledPerPayer',
      count(1, 10_000).default(64),
      'Payments of one wallet on one network whose end is not known yet.',
    ),
    retention: key(
      'retentionMs',
      optionalDuration(RETENTION_MS).optional(),
      'How long charges are kept that are over; left out or off, for ever.',
    ),
  });

  return section({
    proxy: key('proxy', proxySection.optional(), 'Takes requests, lets them pay, and forwards them.'),
    registry: key('registry', registrySection(folder).optional(), 'Keeps routes and charges.'),
    sync: key('sync', syncSection(folder).optional(), 'Follows a registry elsewhere.'),
    admin: key(
      'admin',
      section({
        listen: key('listen', listen().prefault('127.0.0.1:9402'), '/metrics, /livez and /readyz.', 'restart'),
      }).prefault({}),
      'For operators.',
    ),
    charges: key('charges', charges.prefault({}), 'What holds for every payment.'),
    receivers: key(
      'receivers',
      z.array(receiverSchema).default([]),
      'Where money goes, each in one way or several (`accepts`); all-in-one.yaml explains the keys.',
    ),
    routes: key(
      'routes',
      z.array(configRouteSchema.transform((route) => ({ ...route, source: 'config' as const }))).default([]),
      'The routes of this file; a registry has further ones.',
    ),
    page: key('page', pageSection(folder).prefault({}), 'What people see who open a paid address in a browser.'),
    x402: key(
      'x402',
      section({ v1: key('v1', flag().default(false), 'Serve clients of x402 version 1 too.') }).prefault({}),
      'The protocol of payments.',
    ),
    discovery: key(
      'discovery',
      discoverySection(folder).optional(),
      'Tells facilitators what is paid for, so that they can list it for agents.',
    ),
    metrics: key(
      'metrics',
      section({
        max_routes: key('maxRoutes', count(0, 100_000).default(1000), 'Route ids that metrics tell apart.'),
      }).prefault({}),
      'What Prometheus is told.',
    ),
    log: key(
      'log',
      section({
        level: key('level', choice(['debug', 'info', 'warn', 'error']).default('info'), 'What is logged.'),
        access: key('access', flag().default(true), 'One line for each request.'),
        format: key(
          'format',
          choice(['auto', 'json', 'text']).default('auto'),
          '`auto`: text on a terminal, JSON lines elsewhere.',
        ),
      }).prefault({}),
      'The log.',
    ),
    workers: key(
      'workers',
      countOr(1, MOST_WORKERS, 'auto').default(1),
      'Processes that serve clients, for as many cores; `auto`: as the CPUs and the memory limit of this process allow.',
      'restart',
    ),
  });
}
/** What a checked configuration becomes. */
export type ConfigSections = z.output<ReturnType<typeof createConfigSchema>>;
