// The proxy in processes of its own. This one keeps what exists once, binds the port and hands connections over. To its
// workers it is what a registry is to its sidecars. It takes connections once the first worker can answer.
import { fork, type ChildProcess } from 'node:child_process';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import type { AttentionFinding } from '../../domain/attention/attention.ts';
import { decisionName } from '../../config/front.ts';
import { dataFolderOf } from '../../config/data-folder.ts';
import type { FacilitatorHealths } from '../../domain/payment/service-health.ts';
import { workersOfRun } from '../../domain/payment/run-names.ts';
import { workerStore } from '../../domain/store-settings.ts';
import type { CurrentSnapshot } from '../../gateway/routes/current-snapshot.ts';
import type { Check } from '../../host/admin.ts';
import { systemSchedule, type Clock, type Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { RefusedRequest } from '../../gateway/refusals.ts';
import type { Telemetry } from '../../gateway/telemetry.ts';
import type { StoredLedger } from '../../registry/store/stored-ledger.ts';
import type { Tally } from '../../gateway/totals/tally.ts';
import { readReport } from './worker-report.ts';
import { createWorkerApi } from '../../registry/worker-api.ts';
import type { WorkerPlan } from '../../host/worker-count.ts';
import { createHandOver } from '../../workers/hand-over.ts';
import { createSupervisor, type Supervisor, type SupervisorEvents } from '../../workers/supervisor.ts';
import type { Settings } from '../settings.ts';
import type { DescriptionInForce, DiscoverySource } from '../discovery/discovery.ts';
import type { Publisher } from '../discovery/publisher.ts';
import { writeGiven, type WorkerConfig, type WorkerBootstrap, type Notice } from './worker-bootstrap.ts';
import { numberRoutes } from './worker-feed.ts';
import { newestOf, type RefusalFinder } from '../why.ts';
import { createWorkersTrial, joinHealths } from './worker-answers.ts';
import { createAsking } from './worker-questions.ts';
import { sumMetrics } from './worker-metrics.ts';
import { createWorkerReloads } from './worker-reloads.ts';
import type { Listen } from '../../config/addresses.ts';
import type { NamedListener } from '../part.ts';
import type { FrontPart } from '../front.ts';
import { shareOf } from './worker-shares.ts';
import { openWorkerSocket } from './worker-socket.ts';

const [FOLDER, ENDING] = import.meta.url.endsWith('.ts') ? ['../..', '.ts'] : ['.', '.js'];
const PROGRAM = new URL(`${FOLDER}/worker-process${ENDING}`, import.meta.url);
/** Time for the ends of connections that are on their way, and of processes. */
const END_MS = 2_000;
const LATE_CALL_MS = 1_000;

type WorkersDeps = {
  readonly settings: Settings;
  readonly current: CurrentSnapshot;
  readonly metrics: Metrics;
  readonly discovery: DiscoverySource;
  readonly publisher: Publisher;
  /** The ledger of this process, in whatever store. */
  readonly kept: StoredLedger | undefined;
  readonly routeLabel: Telemetry['label'];
  /** Takes what workers counted. */
  readonly tally: Pick<Tally, 'merge'>;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

type WorkersPart = {
  readonly front: FrontPart;
  readonly checks: readonly Check[];
  /** What needs somebody, as the workers say. */
  readonly findings: () => readonly AttentionFinding[];
  /** Whether a worker says that it could have a payment settled. */
  readonly isCallable: () => boolean;
  /** Finds refusals in all workers that answer in time. */
  readonly findRefusals: RefusalFinder;
  /** Health of the facilitators by the calls of all workers that answer in time. */
  readonly healths: () => Promise<FacilitatorHealths>;
  /** The text of a scrape, of this process and all workers. */
  readonly metricsText: Metrics['text'];
  readonly allStarted: () => Promise<void>;
};

export async function startWorkers(
  { count, oldSpaceMiB }: WorkerPlan,
  {
    settings,
    current,
    metrics,
    discovery,
    publisher,
    kept,
    routeLabel,
    tally,
    log,
    clock,
    random,
    version,
  }: WorkersDeps,
): Promise<WorkersPart> {
  const { config } = settings;
  const key = random(32).toString('base64url');
  const store = config.registry?.store ?? config.charges.store;
  const ownStore = kept && store && workerStore(store);
  const ledger = kept === undefined ? (config.sync ? 'registry' : 'none') : ownStore === undefined ? 'primary' : 'own';
  const api = createWorkerApi({
    ...{ routes: numberRoutes(current, random), key, clock, random, log },
    ledger: ledger === 'primary' ? kept : undefined,
  });
  const socket = await openWorkerSocket(dataFolderOf(config), api.handle);
  const configured = (next: Config): WorkerConfig => {
    return { config: { ...shareOf(next, count), registry: undefined } };
  };
  const given = (): WorkerBootstrap => ({
    ...configured(settings.config),
    description: forWorkers(discovery.inForce()),
    ...{ socketPath: socket.path, key, ledger, version, hasRoutes: current.snapshot !== undefined },
    publication: publisher.publication,
    store: ownStore,
  });
  // A registry elsewhere must not take them for processes of its own.
  const runs = kept === undefined ? `sidecar-${random(12).toString('hex')}.` : workersOfRun(kept.run);
  const supervisor = createSupervisor({
    count,
    fork: (worker) => startProcess(worker, oldSpaceMiB),
    nameRun: (worker, start) => `${runs}${worker}.${start}`,
    given: () => writeGiven(given()),
    ...{ clock, schedule: systemSchedule, log },
  });
  const notice = (noticed: Notice): void => supervisor.tell({ kind: 'notice', text: writeGiven(noticed) });
  discovery.onRead(() => notice({ description: forWorkers(discovery.inForce()) }));
  publisher.onPublished((publication) => notice({ publication }));
  current.onSwap((_next, before) => {
    if (before === undefined) notice({ routes: 'there' });
  });
  const reloads = createWorkerReloads(supervisor, systemSchedule);
  const asking = createAsking(supervisor, systemSchedule);
  const sums = sumMetrics(metrics, supervisor.lives, routeLabel);
  const listeners = listen(placesOf(config), supervisor, {
    ...{ log, clock },
    heard: (member, message) => {
      if (message.kind === 'prepared') reloads.prepared(member, message);
      if (message.kind === 'answer') asking.answered(member, message);
      if (message.kind === 'metrics') {
        // The last words of a worker that ended may come behind its end.
        const lives = supervisor.members().includes(member);
        const { families, counted } = readReport(message.report);
        sums.add(lives ? member.number : undefined, families);
        tally.merge(counted);
      }
    },
    died: (member, reason) => {
      reloads.died(member);
      asking.died(member);
      sums.forget(member.number);
      sums.restarted(reason);
      // A client that asks again is served at once. If this fails, the dead worker's leases run out. Twice: a call of
      // the worker may still be on its way.
      for (const ms of [0, LATE_CALL_MS])
        systemSchedule(ms, () => void kept?.endRun(member.run).catch(() => undefined));
    },
  });
  return {
    front: {
      listeners,
      trial: (origin) => createWorkersTrial(settings.config, origin, asking.askAny),
      prepare: (next) => reloads.prepare(writeGiven(configured(next))),
      close: async () => {
        await supervisor.end(0);
        api.close();
        await socket.close();
      },
    },
    checks: [{ name: 'workers', run: () => checkWorkers(supervisor, current) }],
    findings: () => supervisor.members().flatMap(({ says }) => saysFound(says)),
    isCallable: () => supervisor.members().some(({ says }) => saysPossible(says)),
    findRefusals: async (id) =>
      newestOf(
        (await asking.ask({ kind: 'refusals', id })).map((answer) => JSON.parse(answer) as readonly RefusedRequest[]),
      ),
    healths: async () => joinHealths(await asking.ask({ kind: 'healths' })),
    metricsText: sums.text,
    allStarted: supervisor.allStarted,
  };
}

/** Keeps from workers what makes the publication: it is made here alone. */
function forWorkers(description: DescriptionInForce): DescriptionInForce {
  return typeof description === 'object' ? { ...description, owner: '' } : description;
}

type HandOverDeps = Pick<SupervisorEvents, 'heard' | 'died'> & { readonly log: Log; readonly clock: Clock };

/** Place of a listener that workers serve. */
type Place = { readonly name: string; readonly listen: Listen; readonly connections: number };

function placesOf({ proxy, decision = [] }: Config): readonly Place[] {
  const sections = [
    ...(proxy === undefined ? [] : [{ name: 'proxy', section: proxy }]),
    ...decision.map(({ front }, index) => ({ name: decisionName(index), section: front })),
  ];
  return sections.map(({ name, section: { listen: place, limits } }) => ({
    name,
    listen: place,
    connections: limits.connections,
  }));
}

/** All listeners share the workers: the first that starts, or ends, does that for all of them. */
function listen(
  places: readonly Place[],
  supervisor: Supervisor,
  { heard, died, log, clock }: HandOverDeps,
): readonly NamedListener[] {
  const handOvers = places.map((place) => ({
    name: place.name,
    handOver: createHandOver({
      ...{ listener: place.name, listen: place.listen, members: supervisor.members, clock, schedule: systemSchedule },
      maxWaiting: place.connections,
    }),
  }));
  const able = (): void => {
    for (const { handOver } of handOvers) handOver.able();
  };
  let started: Promise<void> | undefined;
  let drained: Promise<void> | undefined;
  const drain = async (delayMs: number, totalMs: number): Promise<void> => {
    for (const member of supervisor.members()) if (member.life === 'ready') member.life = 'draining';
    supervisor.tell({ kind: 'drain' });
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delayMs, totalMs)));
    await Promise.all(handOvers.map(({ handOver }) => handOver.close()));
    const withinMs = Math.max(0, totalMs - delayMs);
    supervisor.tell({ kind: 'close', withinMs });
    await supervisor.end(withinMs + END_MS);
  };
  return handOvers.map(({ name, handOver }) => [
    name,
    {
      start: async () => {
        const bound = await handOver.bind();
        await (started ??= supervisor.start({ heard, died, able }));
        log.info('listening', { listener: name, address: bound.address, port: bound.port });
        return bound;
      },
      drain: (delayMs, totalMs) => (drained ??= drain(delayMs, totalMs)),
    },
  ]);
}

/** Schema of what a worker that runs `says`. */
const saying = z.object({ possible: z.boolean(), findings: z.array(z.unknown()) });

function saysPossible(says: string): boolean {
  return says !== '' && saying.parse(JSON.parse(says)).possible;
}

/** What a worker of the same program says that it found. */
function saysFound(says: string): readonly AttentionFinding[] {
  return says === '' ? [] : (saying.parse(JSON.parse(says)).findings as readonly AttentionFinding[]);
}

/** Once there are routes, a worker without them counts as missing: it may still say that there are none. */
function checkWorkers(
  supervisor: Supervisor,
  { snapshot }: Pick<CurrentSnapshot, 'snapshot'>,
): { readonly ok: boolean; readonly detail: string } {
  const lives = supervisor.lives();
  const needsRoutes = snapshot !== undefined;
  const haveAll = lives.every(({ wasReady, wasComplete }) => (needsRoutes ? wasComplete : wasReady));
  const missing = lives
    .filter(({ life, isComplete }) => life !== 'ready' || (needsRoutes && !isComplete))
    .map(({ worker }) => worker);
  const ready = lives.length - missing.length;
  const detail = missing.length === 0 ? `all ${ready} workers are ready` : `not ready: ${missing.join(', ')}`;
  return { ok: haveAll && ready > 0, detail };
}

/** Secrets of the environment are none of its business; what Node and the system's libraries read is. */
function startProcess(worker: number, oldSpaceMiB: number | undefined): ChildProcess {
  const limit = oldSpaceMiB === undefined ? [] : [`--max-old-space-size=${oldSpaceMiB}`];
  const execArgv = [...process.execArgv, ...limit];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => SHARED.test(name)));
  return fork(PROGRAM, [String(worker)], { env, execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

const SHARED =
  /^(NODE_.*|UV_.*|PATH|HOME|USER|TZ|LANG|LC_.*|TMPDIR|TERM|NO_COLOR|SSL_CERT_(FILE|DIR)|(https?|no)_proxy|RES_OPTIONS|LOCALDOMAIN)$/i;
