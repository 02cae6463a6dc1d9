// The proxy part: everything a request meets, assembled from the configuration, and assembled anew when that changes.
// Requests that are under way end with what they began with; the next one meets the new assembly whole.
import type { Config, ProxyConfig } from '../config/config.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import { clientAddress } from '../gateway/client-group.ts';
import { createHandler, type Handler } from '../gateway/handler.ts';
import type { OwnResponses } from '../gateway/outcome.ts';
import type { PaymentHandler } from '../gateway/pay/pay.ts';
import { createPage, type Page } from '../gateway/page/document.ts';
import { createPublicDocuments, type PublicationInForce } from '../gateway/public-documents.ts';
import { createTrust } from '../gateway/trust.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import { isPaidInBrowser, NETWORKS, type Rails } from '../gateway/rails/rails.ts';
import type { Telemetry } from '../gateway/telemetry.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { createWriteBatch } from '../host/write-batch.ts';
import type { Listener } from '../host/server.ts';
import { createPool } from '../http/pool.ts';
import { assertFor } from './assertion-signing.ts';
import type { SellFor } from './selling-part.ts';
import { assembleJudging, createFrontListener } from './judging.ts';
import type { OwnTrial } from './trial.ts';
import type { Part } from './part.ts';
import { publishingOf } from './discovery/publication.ts';
import { servedRoutes } from './served-routes.ts';

export type ProxyPart = Part & {
  readonly listener: Listener;
  /** What the proxy in force would write to clients that reach it under `origin`. */
  readonly trial: (origin: string) => OwnTrial;
  /** Assembles for a new configuration; what is returned puts it in force and cannot fail. */
  readonly prepare: (config: Config, proxy: ProxyConfig, discovery: Discovery | undefined) => () => void;
};

/** Wrapper of the page, from the program that starts it: no configuration can give it. */
export type PageWrapper = (page: Page) => Page;

type ProxyDeps = {
  readonly current: CurrentSnapshot;
  readonly telemetry: Telemetry;
  /** Tracing, if requests are traced. */
  readonly tracing: Tracing | undefined;
  /** Makes payments under a configuration; undefined if nothing could write them down. */
  readonly payFor: ((config: Config) => (answers: OwnResponses) => PaymentHandler) | undefined;
  /** Makes what sells by plans under a configuration. */
  readonly sellFor: SellFor;
  readonly drawsPasses: boolean;
  /** Rails write ways to pay in a 402, and say in which order. */
  readonly rails: Pick<Rails, 'requirement' | 'isCallable' | 'revision' | 'read'>;
  /** Publication of what is sold. */
  readonly published: PublicationInForce;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly aroundPage?: PageWrapper | undefined;
};

/** Connections to the upstream at most; further requests wait for one. */
const MAX_SOCKETS = 10_000;

export function startProxy(
  config: Config,
  proxy: ProxyConfig,
  discovery: Discovery | undefined,
  deps: ProxyDeps,
): ProxyPart {
  let assembled = assemble(config, proxy, discovery, deps);
  // The listener reads it for each request.
  const handler = { ...assembled.handler };
  const listener = createFrontListener('proxy', proxy, handler, deps);
  return {
    listener,
    prepare: (next, section, found) => {
      const prepared = assemble(next, section, found, deps);
      return () => {
        // The old connections to the upstream end by themselves once they are idle.
        assembled = prepared;
        Object.assign(handler, prepared.handler);
      };
    },
    trial: (origin) => assembled.trial(origin),
    close: () => assembled.close(),
  };
}

function assemble(
  config: Config,
  proxy: ProxyConfig,
  discovery: Discovery | undefined,
  deps: ProxyDeps,
): { handler: Handler; trial: (origin: string) => OwnTrial; close: () => Promise<void> } {
  const { current, telemetry, tracing, payFor, log, clock, random } = deps;
  const networks = { find: NETWORKS.find, isPaidInBrowser };
  const { quoteTtlMs } = config.charges;
  const page = config.page.enabled ? createPage({ section: config.page, networks, quoteTtlMs }) : undefined;
  const upstream = new URL(proxy.upstream.origin);
  const trusts = createTrust(proxy.trustedProxies);
  const judging = assembleJudging(
    config,
    {
      ...{ front: proxy, discovery, trusts, seesResponses: true },
      createPay: (answers) => payFor?.(config)(answers),
      page: page && (deps.aroundPage?.(page) ?? page),
    },
    deps,
  );
  const { paywall, target } = judging;
  const writeBatch = createWriteBatch();
  const { timeouts } = proxy;
  const pool = createPool({ upstream, timeouts, maxSockets: MAX_SOCKETS, writeBatch, now: clock.monotonic });
  const transport = tracing === undefined ? pool : tracing.transport(pool, upstream);
  const handler = createHandler({
    ...judging,
    maxInFlight: proxy.limits.inFlight,
    routes: servedRoutes(config, current),
    documents: publishingOf(config) && createPublicDocuments(deps.published),
    context: {
      ...{ transport, writeBatch, telemetry, clock, log, upstream, refuse: paywall.refuse },
      // A URL works it out whenever it is asked.
      host: proxy.hostHeader === 'preserve' ? undefined : upstream.host,
      publicUrl: proxy.publicUrl,
      passPaymentHeaders: proxy.passPaymentHeaders,
      assert: assertFor(config, proxy, { clock, random }),
      customerHeaderTrusted: proxy.customerHeaderTrusted,
      idleMs: timeouts.idleMs,
    },
    trusts: proxy.trustedProxies.length === 0 ? undefined : trusts,
    telemetry,
    tracing: tracing?.requests({ methods: target.methods, clientOf: (req) => clientAddress(req, trusts) }),
    clock,
    random,
    log,
  });
  return {
    handler,
    trial: judging.trial,
    close: transport.close,
  };
}
