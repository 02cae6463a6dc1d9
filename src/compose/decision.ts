// The listeners that answer the questions of other proxies, assembled from the configuration, and assembled anew when that changes.
// They share routes, ledger and claims with the proxy of this program, if there is one.
import type { Config, DecisionConfig } from '../config/config.ts';
import { decisionName } from '../config/front.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import { LISTENER_REFUSALS } from '../domain/problem.ts';
import type { Snapshot } from '../domain/routing/snapshot.ts';
import { clientAddress } from '../gateway/client-group.ts';
import { refusalForms } from '../gateway/decision/answer-form.ts';
import { createDecisionHandler, type DecisionHandler } from '../gateway/decision/decision-handler.ts';
import { createDecisionMetrics, type DecisionMetrics } from '../gateway/decision/decision-metrics.ts';
import { rulesOf } from '../gateway/decision/dialect-rules.ts';
import { createRepeatedQuestions } from '../gateway/decision/repeated-questions.ts';
import { createCompiler, readsAlike } from '../gateway/routes/snapshot-compiler.ts';
import { createCurrent, type CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import type { Rails } from '../gateway/rails/rails.ts';
import type { Telemetry } from '../gateway/telemetry.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import { createTrust } from '../gateway/trust.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Listener } from '../host/server.ts';
import { createWriteBatch } from '../host/write-batch.ts';
import { servedRoutes } from './served-routes.ts';
import { assembleJudging, createFrontListener } from './judging.ts';
import { pathOptions } from './part.ts';
import type { Payments } from './payments.ts';
import type { SellFor } from './selling-part.ts';
import type { OwnTrial } from './trial.ts';

export type DecisionsPart = {
  readonly listeners: readonly (readonly [name: string, listener: Listener])[];
  /** Assembles for a new configuration; what is returned puts it in force and cannot fail. */
  readonly prepare: (config: Config, discovery: Discovery | undefined) => () => void;
  /** What the first listener in force would write to clients that reach its proxy under `origin`. */
  readonly trial: (origin: string) => OwnTrial;
};

type DecisionsDeps = {
  readonly current: CurrentSnapshot;
  readonly telemetry: Telemetry;
  /** Tracing, if requests are traced. */
  readonly tracing: Tracing | undefined;
  readonly metrics: Metrics;
  /** Takes payments; undefined if nothing could write them down. */
  readonly payments: Pick<Payments, 'payFor' | 'takeReportFor'> | undefined;
  readonly rails: Pick<Rails, 'requirement' | 'isCallable' | 'revision' | 'read'>;
  /** Sells routes with a plan. */
  readonly sellFor: SellFor;
  readonly drawsPasses: boolean;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

export function startDecisions(config: Config, discovery: Discovery | undefined, deps: DecisionsDeps): DecisionsPart {
  const metrics = createDecisionMetrics(deps.metrics);
  const all = (config.decision ?? []).map((section, index) => {
    const paths = followPaths(config, section, deps);
    const assembled = (next: Config, own: DecisionConfig, found: Discovery | undefined): Assembly =>
      assemble(next, own, found, { ...deps, decisionMetrics: metrics, routes: paths.routes });
    // The listener reads it for each question.
    const first = assembled(config, section, discovery);
    const handler = { ...first.handler };
    const name = decisionName(index);
    const listener = createFrontListener(name, section.front, handler, {
      ...{ log: deps.log, refusals: refusalForms(LISTENER_REFUSALS, rulesOf(section.dialect)) },
    });
    return { name, listener, handler, trial: { try: first.trial }, paths, assembled };
  });
  return {
    listeners: all.map(({ name, listener }) => [name, listener]),
    trial: (origin) => {
      const [first] = all;
      if (first === undefined) throw new Error('there is no decision listener');
      return first.trial.try(origin);
    },
    prepare: (next, found) => {
      const prepared = all.map((each, index) => {
        const section = next.decision?.[index];
        return { ...each, section, made: section && each.assembled(next, section, found) };
      });
      return () => {
        for (const { handler, trial, made, section, paths } of prepared) {
          if (made === undefined || section === undefined) continue;
          paths.follow(next, section);
          Object.assign(handler, made.handler);
          trial.try = made.trial;
        }
      };
    },
  };
}

type Assembly = { readonly handler: DecisionHandler; readonly trial: (origin: string) => OwnTrial };

type AssemblyDeps = DecisionsDeps & {
  readonly decisionMetrics: DecisionMetrics;
  readonly routes: { readonly snapshot: Snapshot | undefined };
};

function assemble(
  config: Config,
  section: DecisionConfig,
  discovery: Discovery | undefined,
  deps: AssemblyDeps,
): Assembly {
  const { telemetry, tracing, payments, log, clock, random, decisionMetrics, routes } = deps;
  const { front, secret, secretHeader, trustedPeers, pass, pathPrefix } = section;
  const trusts = createTrust(trustedPeers);
  const createRepeats = createRepeatedQuestions(decisionMetrics);
  const judging = assembleJudging(
    config,
    {
      ...{ front, discovery, trusts, page: undefined, seesResponses: false },
      createPay: (answers) => payments?.payFor(config, { front, createRepeats })(answers),
    },
    deps,
  );
  const handler = createDecisionHandler({
    ...judging,
    options: {
      rules: rulesOf(section.dialect),
      peers: { trusts, secret, secretHeader: secretHeader.toLowerCase() },
      ...{ pass, pathPrefix },
      ...{ answerWithinMs: section.answerWithinMs, repeatWindowMs: section.repeatWindowMs },
      allowHeaders: new Set(section.allowHeaders.map((name) => name.toLowerCase())),
      publicUrl: front.publicUrl,
      customerHeaderTrusted: front.customerHeaderTrusted,
      maxInFlight: front.limits.inFlight,
    },
    routes: servedRoutes({ sync: config.sync, front, selling: config.selling }, routes),
    takeReport: payments?.takeReportFor(config),
    telemetry,
    tracing: tracing?.requests({
      methods: judging.target.methods,
      clientOf: (req) => clientAddress(req, trusts),
    }),
    // Proxies hand on what their clients say: who asks is believed no more than at the proxy of this program.
    trustsFlag: createTrust(config.proxy?.trustedProxies ?? []),
    metrics: decisionMetrics,
    writeBatch: createWriteBatch(),
    schedule: systemSchedule,
    ...{ clock, random, log },
  });
  return { handler, trial: judging.trial };
}

type FollowedPaths = {
  readonly routes: { readonly snapshot: Snapshot | undefined };
  /** Reads paths as another section says from now on. */
  readonly follow: (config: Config, section: DecisionConfig) => void;
};

/**
 * The routes in force, for paths as the listener reads them. Most read them as the process does; for one that does not, they are
 * compiled once more.
 */
function followPaths(
  { selling }: Config,
  { front: first }: DecisionConfig,
  { current, log }: Pick<DecisionsDeps, 'current' | 'log'>,
): FollowedPaths {
  let paths = pathOptions({ front: first, selling });
  const own = createCurrent();
  const compiler = createCompiler(own, () => paths, log);
  const isOwn = (snapshot: Snapshot): boolean => readsAlike(snapshot.paths, paths);
  const load = (snapshot: Snapshot): void => {
    if (!isOwn(snapshot)) compiler.load(snapshot);
  };
  current.onSwap(load);
  if (current.snapshot !== undefined) load(current.snapshot);
  return {
    routes: {
      get snapshot() {
        const { snapshot } = current;
        if (snapshot === undefined || isOwn(snapshot)) return snapshot;
        return own.snapshot !== undefined && isOwn(own.snapshot) ? own.snapshot : undefined;
      },
    },
    follow: (config, { front }) => {
      paths = pathOptions({ front, selling: config.selling });
      if (current.snapshot !== undefined) load(current.snapshot);
    },
  };
}
