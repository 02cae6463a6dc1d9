// The proxy part: everything a request meets, assembled from the configuration, and assembled anew when that changes.
// Requests that are under way end with what they began with; the next one meets the new assembly whole.
import type { Config, ProxyConfig } from '../config/config.ts';
import { LISTENER_REFUSALS } from '../domain/problem.ts';
import { createOffers } from '../domain/payment/offer.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import { createPaymentRequired } from '../domain/payment/payment-required.ts';
import { createQuotes } from '../domain/payment/quote.ts';
import { createAdmission } from '../gateway/admission.ts';
import { clientAddress } from '../gateway/client-group.ts';
import { createClientSemaphores } from '../gateway/client-semaphores.ts';
import { createHandler, type Handler } from '../gateway/handler.ts';
import type { OwnResponses } from '../gateway/outcome.ts';
import type { PaymentHandler } from '../gateway/pay/pay.ts';
import { createPage, type Page } from '../gateway/page/document.ts';
import { createPaywall } from '../gateway/paywall.ts';
import { createPublicDocuments, type PublicationInForce } from '../gateway/public-documents.ts';
import { createTrust } from '../gateway/trust.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import { isPaidInBrowser, NETWORKS, type Rails } from '../gateway/rails/rails.ts';
import type { Telemetry } from '../gateway/telemetry.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import type { Clock, Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import type { Log } from '../host/log.ts';
import { createWriteBatch } from '../host/write-batch.ts';
import { createListener, type Listener } from '../host/server.ts';
import { createPool } from '../http/pool.ts';
import { settleBy } from '../domain/selling/plan.ts';
import { readCaller } from '../gateway/caller.ts';
import { assertFor } from './assertion.ts';
import type { SellFor } from './selling.ts';
import { createTrial, type OwnTrial } from './trial.ts';
import { matchRules, pathOptions, receiversById, type Part } from './part.ts';
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
  /** Rails write ways to pay in a 402, and say in which order. */
  readonly rails: Pick<Rails, 'requirement' | 'isCallable' | 'revision'>;
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
  const { listen, limits, timeouts } = proxy;
  const listener = createListener(
    {
      name: 'proxy',
      listen,
      limits: { headers: limits.headerBytes, connections: limits.connections },
      timeouts,
      refusals: LISTENER_REFUSALS,
      log: deps.log,
    },
    handler,
  );
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
  const { current, telemetry, tracing, payFor, rails, log, clock, random } = deps;
  const networks = { find: NETWORKS.find, isPaidInBrowser };
  const { quoteTtlMs } = config.charges;
  const page = config.page.enabled ? createPage({ section: config.page, networks, quoteTtlMs }) : undefined;
  const upstream = new URL(proxy.upstream.origin);
  const { undeclaredMethods, methods, targetBytes } = matchRules(config);
  const paywall = createPaywall({
    createPay: (answers) => payFor?.(config)(answers),
    quotes: createQuotes({
      secrets: config.charges.secrets,
      ttlMs: quoteTtlMs,
      nonce: createTokens(random, 12, 'base64url'),
    }),
    paymentRequired: createPaymentRequired({ v1: config.x402.v1, ...rails }),
    listingOf: discovery?.listingOf,
    page: page && (deps.aroundPage?.(page) ?? page),
    corsOrigins: proxy.corsOrigins,
    allowedHeaders: [...new Set([...config.selling.customers.values()].flatMap(({ header }) => header || []))],
    methods,
  });
  const paths = pathOptions(config);
  const writeBatch = createWriteBatch();
  const { timeouts } = proxy;
  const pool = createPool({ upstream, timeouts, maxSockets: MAX_SOCKETS, writeBatch, now: clock.monotonic });
  const transport = tracing === undefined ? pool : tracing.transport(pool, upstream);
  const trusts = createTrust(proxy.trustedProxies);
  const { plans } = config.selling;
  const offer = createOffers(receiversById(config), paths.plans && settleBy(plans));
  const policy = { undeclaredMethods, preflight: proxy.preflight, v1: config.x402.v1 };
  const customerHeader = proxy.customerHeader.toLowerCase();
  const sell = deps.sellFor(config, proxy, {
    rules: { policy, caller: (req) => readCaller(req.rawHeaders, customerHeader) },
    offerFor: ({ route }) => offer(route),
    ...{ paywall, seesResponses: true },
  });
  const handler = createHandler({
    options: {
      target: { limit: targetBytes, methods, ...paths },
      policy,
      customerHeader,
      maxInFlight: proxy.limits.inFlight,
    },
    routes: servedRoutes(config, current),
    documents: publishingOf(config) && createPublicDocuments(deps.published),
    ...{ offer, plans, sell },
    placeOf: createClientSemaphores(proxy.limits.inFlightPerClient, trusts),
    admission: createAdmission(proxy.limits, trusts, clock.monotonic),
    paywall,
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
    tracing: tracing?.requests({ methods, clientOf: (req) => clientAddress(req, trusts) }),
    clock,
    random,
    log,
  });
  return {
    handler,
    trial: createTrial({ paywall, offer, now: clock.now }),
    close: transport.close,
  };
}
