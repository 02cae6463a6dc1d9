// One Tollgate process of the simulation: the real journey of a payment and the real reconciler, over a model of
// everything outside. A crash ends it in the middle of whatever it does; another one starts in its place.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import type { Way } from '../../../src/domain/payment/way.ts';
import { findServices, type Offer } from '../../../src/domain/payment/offer.ts';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { createLedger, type Ledger, type LedgerRules } from '../../../src/domain/payment/ledger.ts';
import { createTakeReport } from '../../../src/gateway/decision/failure-report.ts';
import { createRepeatedQuestions } from '../../../src/gateway/decision/repeated-questions.ts';
import { createQuotes } from '../../../src/domain/payment/quote.ts';
import type { RequestFacts } from '../../../src/gateway/outcome.ts';
import { createPaywall, type Paywall } from '../../../src/gateway/paywall.ts';
import { createLeases } from '../../../src/gateway/pay/lease.ts';
import { createReplays, createResponseMemory } from '../../../src/gateway/pay/kept-responses.ts';
import type { CreateRepeats } from '../../../src/gateway/pay/repeats.ts';
import { createSeenPayments } from '../../../src/gateway/pay/seen-payments.ts';
import { createPay } from '../../../src/gateway/pay/pay.ts';
import { createSettleModes } from '../../../src/gateway/pay/settler.ts';
import type { Rail } from '../../../src/gateway/rails/rail.ts';
import { createReconcile } from '../../../src/gateway/reconcile.ts';
import type { Log } from '../../../src/host/log.ts';
import type { MemoryLedger } from '../../support/memory-ledger.ts';
import type { ModelChain } from './chain.ts';
import { createDecision, type Asking, type Decided, type Question } from './decision.ts';
import { createModelRail, type ModelFacilitator } from './facilitator.ts';
import { answer, relayPaid, type Connection, type Reply } from './relay.ts';
import { reachStore } from './remote.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Watch } from './watch.ts';
import type { Weather } from './weather.ts';

export type World = {
  readonly scheduler: Scheduler;
  readonly weather: Weather;
  readonly durable: MemoryLedger;
  readonly chain: ModelChain;
  readonly facilitator: ModelFacilitator;
  readonly watch: Watch;
  readonly offer: Offer;
  readonly bug: Bug | undefined;
};

export type Bug = {
  readonly ledger?: (ledger: Ledger, at: { readonly world: World; readonly actor: Actor }) => Ledger;
  readonly rail?: (rail: Rail, at: { readonly world: World; readonly actor: Actor }) => Rail;
  readonly rules?: LedgerRules;
  /** A connection that cannot be had counts as had. */
  readonly settlesAnyway?: true;
};

export type Request = {
  readonly method: string;
  readonly target: string;
  readonly credential: string | undefined;
  readonly key: PaymentKey | undefined;
};

/** An allow whose request got no usable answer. */
export type ReportedAllow = { readonly method: string; readonly target: string; readonly chargeId: string };

export type Process = {
  readonly actor: Actor;
  readonly handle: (request: Request) => { readonly connection: Connection; readonly reply: Promise<Reply> };
  /** Answers a question of a front. */
  readonly decide: (question: Question) => { readonly asking: Asking; readonly decided: Promise<Decided> };
  /** Takes the report of a front; resolves when it was answered, or the process is gone. */
  readonly report: (about: ReportedAllow) => Promise<void>;
  readonly reconcile: () => Promise<unknown>;
  readonly crash: () => void;
};

/** What a request could know of its payment when it last asked anybody. */
type Context = { mayMove: boolean; isAway: boolean; wasToldOfEnd: boolean };

const SECRETS = ['a secret of the simulation, long enough'];
const LEASE_MS = 10_000;
const AWAY = { code: 'upstream_unreachable', detail: 'model' } as const;
/** Few, so that a process forgets some of what it met. */
const SEEN = 2;

export function startProcess(world: World, name: string): Process {
  const { scheduler, weather, durable, chain, facilitator, watch, offer, bug } = world;
  const { draw } = scheduler;
  const actor: Actor = { name, alive: true };
  const connections = new Set<{ broken: () => void }>();
  const requests = new AsyncLocalStorage<Context>();
  const touched = (key: PaymentKey): void => {
    const request = requests.getStore();
    if (request !== undefined) request.mayMove = watch.mayMove(key);
  };
  const skewMs = draw.below(8_000) - 4_000;
  const clock = { now: () => scheduler.now() + skewMs, monotonic: scheduler.now };
  const random = (size: number): Buffer => Buffer.from(Array.from({ length: size }, () => draw.below(256)));
  const newId = (): string => random(16).toString('hex');
  const log = silent((level, what) => scheduler.say(`${name}: ${level}: ${what}`));
  const where = draw.below(2) === 0 ? 'own' : 'registry';
  const store = reachStore(scheduler, durable, weather, watch, actor, touched, where);
  const plainLedger = createLedger(store, SPELLING, bug?.rules);
  const plainRail = createModelRail(scheduler, chain, facilitator, weather, actor, touched);
  const ledger: Ledger = bug?.ledger?.(plainLedger, { world, actor }) ?? plainLedger;
  const watchedRail: Rail = {
    ...plainRail,
    settle: (...given) => {
      if (requests.getStore()?.isAway === true) watch.violated('a payment is settled, and its request cannot be sent');
      return plainRail.settle(...given);
    },
    look: async (...given) => {
      const seen = await plainRail.look(...given);
      const request = requests.getStore();
      if (request !== undefined && seen.kind === 'impossible') request.wasToldOfEnd = true;
      return seen;
    },
  };
  const rail: Rail = bug?.rail?.(watchedRail, { world, actor }) ?? watchedRail;
  const chargeLog = { changed: () => undefined, counted: () => undefined };
  const quotes = createQuotes({ secrets: SECRETS, ttlMs: 300_000, nonce: () => random(12).toString('base64url') });
  const modes = createSettleModes(clock.monotonic, 10);
  const responses = {
    memory: createResponseMemory(),
    replays: createReplays((ms, run) => scheduler.timer(actor, 'forgets a response', ms, run), clock.monotonic),
  };
  const options = {
    keepResponseBytes: 1_000,
    maxUnsettledPerPayer: 4,
    leaseMs: LEASE_MS,
    ownAuthorities: undefined,
    enoughToServeFirstMs: 70_000,
    services: (way: Way) => findServices(new Map([[offer.receiver.id, offer.receiver]]), way),
    nameOf: () => 'USDC on a model',
    support: undefined,
  };
  const leases = createLeases({
    ledger,
    schedule: (ms, run) => scheduler.timer(actor, 'renews its leases', ms, run),
    newId,
    monotonic: clock.monotonic,
    leaseMs: LEASE_MS,
  });
  const pause = (ms: number): Promise<void> => scheduler.point(actor, 'paused', ms);
  const paywallWith = (createRepeats: CreateRepeats | undefined): Paywall =>
    createPaywall({
      createPay: (answers) =>
        createPay({
          ...{
            ...answers,
            rail,
            ledger,
            seenPayments: createSeenPayments(SEEN),
            quotes,
            chargeLog,
            modes,
            leases,
            responses,
          },
          ...{ log, clock, newId, options, pause, createRepeats },
        }),
      quotes,
      listingOf: undefined,
      page: undefined,
      paymentRequired: () => ({ body: '', bodyBytes: 0, header: '', accepts: undefined, ways: [] }),
      corsOrigins: [],
      methods: new Set(['GET', 'POST']),
    });
  const paywall = paywallWith(undefined);
  const decisionPaywall = paywallWith(createRepeatedQuestions({ repeated: () => undefined }));
  const takeReport = createTakeReport({ rail, ledger, chargeLog, options, newId, pause, log });
  const reconcile = createReconcile({
    rail,
    ledger,
    ranUnpaid: modes.ranUnpaid,
    chargeLog,
    log,
    clock,
    random,
  });

  const serve = async (request: Request, connection: Connection): Promise<void> => {
    const { method, target, credential, key } = request;
    const context: Context = { mayMove: false, isAway: false, wasToldOfEnd: false };
    const asked: RequestFacts = {
      requestId: 'request',
      method,
      path: target,
      target,
      publicOrigin: 'http://api',
      origin: undefined,
      nowMs: clock.now(),
      conditionalWrite: false,
      left: () => connection.gone,
      customerTrusted: false,
      notePayer: () => undefined,
      asksForPage: () => false,
      connect: async () => {
        await scheduler.point(actor, 'connects to the upstream', weather.delay());
        context.isAway = weather.happens('upstream_away');
        return context.isAway && bug?.settlesAnyway !== true ? AWAY : undefined;
      },
    };
    const caller = { customerId: undefined, credential: undefined };
    const outcome = await requests.run(context, async () =>
      paywall.perform(
        credential === undefined
          ? { kind: 'demand', offer, caller, because: 'payment_required' }
          : { kind: 'verify', route: offer.route, offer, caller, credential: { version: 2, value: credential } },
        asked,
      ),
    );
    const forbid402 = (status: number, reason: string | undefined): void => forbid(context, key, status, reason);
    if (outcome.kind === 'response') {
      forbid402(outcome.response.status, outcome.reason);
      const replay =
        outcome.outcome === 'paid' && outcome.chargeId !== undefined
          ? {
              watch,
              id: outcome.chargeId,
              from: outcome.delivered === undefined ? ('memory' as const) : ('ledger' as const),
            }
          : undefined;
      await answer(
        scheduler,
        actor,
        connection,
        outcome.response,
        outcome.chargeId,
        (whole) => outcome.delivered?.(whole),
        replay,
      );
      return;
    }
    if (outcome.kind === 'gone' || outcome.kind === 'granted') return;
    const { paid } = outcome;
    await relayPaid(
      { scheduler, weather, watch, actor },
      {
        ...paid,
        beforeResponse: (head) =>
          requests.run(context, async () => {
            const verdict = await paid.beforeResponse(head);
            if (verdict.kind === 'replace') forbid402(verdict.response.status, 'settlement_refused');
            return verdict;
          }),
      },
      connection,
    );
  };

  const hasEnded = (key: PaymentKey): boolean =>
    durable.all().some(({ payment, state }) => payment.unique === key.unique && state === 'delivered');
  const forbid = (
    { mayMove, wasToldOfEnd }: Context,
    key: PaymentKey | undefined,
    status: number,
    reason: string | undefined,
  ): void => {
    if (status !== 402 || key === undefined || !mayMove) return;
    if (reason === 'payment_already_used' && hasEnded(key)) return;
    // The chain said to this very request that it never will move: the ledger may be away when it is told.
    if (wasToldOfEnd && watch.isOver(key)) return;
    watch.violated(`402 ${reason ?? ''} for ${key.unique.slice(-4)}, whose money moved or may move`);
  };
  const decision = createDecision({
    ...{ scheduler, weather, watch, actor, offer, now: clock.now, takeReport },
    perform: decisionPaywall.perform,
    within: (task) => requests.run({ mayMove: false, isAway: false, wasToldOfEnd: false }, task),
    seen: (key, status, reason) => {
      const context = requests.getStore();
      if (context !== undefined) forbid(context, key, status, reason);
    },
  });
  /** Runs what ends with this process. */
  const open = <T>(broken: T, work: (tell: (end: T) => void) => Promise<void>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<T>();
    const each = { broken: () => resolve(broken) };
    connections.add(each);
    work(resolve).catch((error: unknown) => {
      watch.violated(`a question failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
      resolve(broken);
    });
    // Who joined another question waits on when its own work is done.
    return promise.finally(() => connections.delete(each));
  };

  return {
    actor,
    decide: (question) => {
      const asking: Asking = { gone: false, reply: () => undefined };
      const decided = open<Decided>({ kind: 'broken' }, (tell) => {
        asking.reply = tell;
        return decision.ask(question, asking);
      });
      return { asking, decided };
    },
    report: (about) => open<void>(undefined, (tell) => decision.report(about).then(tell)),
    handle: (request) => {
      let tell: (reply: Reply) => void = () => undefined;
      const reply = new Promise<Reply>((resolve) => {
        tell = resolve;
      });
      const connection: Connection = { gone: false, reply: (said) => tell(said) };
      const each = { broken: () => tell({ kind: 'broken' }) };
      connections.add(each);
      serve(request, connection)
        .catch((error: unknown) => {
          watch.violated(`a request failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
          tell({ kind: 'broken' });
        })
        .finally(() => connections.delete(each));
      return { connection, reply };
    },
    reconcile,
    crash: () => {
      scheduler.say(`${name} CRASHES`);
      scheduler.crash(actor);
      for (const { broken } of connections) broken();
    },
  };
}

function silent(say: (level: string, what: string) => void): Log {
  const at =
    (level: string) =>
    (msg: string, fields?: Readonly<Record<string, unknown>>): void =>
      say(level, `${msg} ${fields === undefined ? '' : Object.values(fields).map(String).join(' ').slice(0, 160)}`);
  return { debug: () => undefined, info: () => undefined, warn: at('warn'), error: at('error'), enabled: () => true };
}
