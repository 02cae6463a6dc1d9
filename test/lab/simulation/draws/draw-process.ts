// One process that draws on passes: the real books, leases and draws over a ledger that is reached through a network, between model
// clients and a model upstream. A crash ends it in the middle of whatever it does.
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  createLedger,
  LedgerUnavailable,
  type Ledger,
  type LedgerRules,
} from '../../../../src/domain/payment/ledger.ts';
import type { Charge } from '../../../../src/domain/payment/charge.ts';
import { parsePrice } from '../../../../src/domain/payment/money.ts';
import { makeOffer } from '../../../../src/domain/payment/offer.ts';
import { renderProblem } from '../../../../src/domain/problem.ts';
import type { Meter } from '../../../../src/domain/selling/meter/meter.ts';
import type { DrawChange } from '../../../../src/domain/selling/pass-book.ts';
import {
  passIdOf,
  soldPassOf,
  writePassInSale,
  type PassInSale,
  type SoldPass,
} from '../../../../src/domain/selling/pass.ts';
import { drawnBy, firstUseOf } from '../../../../src/domain/selling/pass-opening.ts';
import type { PassLedger } from '../../../../src/domain/selling/pass-store.ts';
import type { SalesPlan } from '../../../../src/domain/selling/plan.ts';
import { SPELLING } from '../../../../src/gateway/rails/rails.ts';
import type { End, GrantedOutcome, RequestFacts } from '../../../../src/gateway/outcome.ts';
import { createReplays, createResponseMemory } from '../../../../src/gateway/pay/kept-responses.ts';
import { createLeases, LEASE_MS } from '../../../../src/gateway/pay/lease.ts';
import { createMetering, type MeterRequests } from '../../../../src/gateway/selling/metering.ts';
import { boughtUse, type BoughtUse } from '../../../../src/gateway/selling/passes/bought-use.ts';
import { createKeptUses } from '../../../../src/gateway/selling/passes/kept-uses.ts';
import { createPassBooks } from '../../../../src/gateway/selling/passes/pass-books.ts';
import { ledgerAway } from '../../../../src/gateway/selling/passes/pass-problems.ts';
import type { Log } from '../../../../src/host/log.ts';
import { claimOf, proofOf, ROUTE_ID } from '../../../cases/claims.ts';
import { RECEIVERS } from '../../../cases/receivers.ts';
import { route } from '../../../cases/routes.ts';
import type { MemoryLedger } from '../../../support/memory-ledger.ts';
import type { PassRules } from '../../../support/memory-passes.ts';
import { reachStore } from '../remote.ts';
import type { Actor, Scheduler } from '../scheduler.ts';
import type { Weather } from '../weather.ts';
import type { DrawingRequest, DrawRules } from './draw-rules.ts';
import { dueFor, someResponse } from './metered-responses.ts';

/** A mistake that somebody could make. */
export type DrawBug = {
  readonly ledger?: (ledger: PassLedger, at: DrawWorld & { readonly actor: Actor }) => PassLedger;
  readonly books?: PassRules;
  readonly charges?: LedgerRules;
  readonly meter?: (meter: MeterRequests) => MeterRequests;
};

export type DrawWorld = {
  readonly scheduler: Scheduler;
  readonly weather: Weather;
  readonly durable: MemoryLedger;
  readonly rules: DrawRules;
  readonly bug: DrawBug | undefined;
  /** Meter of the plan; undefined: it has none. */
  readonly meter: Meter | undefined;
};

export type DrawReply = { readonly status: number; readonly code: string | undefined } | 'broken';
export type DrawConnection = { gone: boolean };

export type DrawRequest = {
  readonly pass: Pick<SoldPass, 'passId' | 'kind'>;
  readonly key: string | undefined;
  readonly target: string;
  readonly amount: string;
};

export type DrawProcess = {
  readonly actor: Actor;
  readonly draw: (request: DrawRequest, connection: DrawConnection) => Promise<DrawReply>;
  /** Buys a pass, and has the use of the request that buys; the pass, if it was sold as far as is known here. */
  readonly buy: (n: number, sale: PassInSale, price: string) => Promise<SoldPass | undefined>;
  readonly crash: () => void;
};

export const PLAN_ID = 'model';
/** Id of every request that buys. */
export const BUYS = 'buys';
const ROUTE = route('* /r 0.10', { id: ROUTE_ID });
const METHOD = 'POST';
const SLOW_MS = 40_000;
/** Time that a call of the ledger may take. */
const CALL_MS = 5_000;
const LATE_MS = 15_000;

export function startDrawProcess(world: DrawWorld, name: string): DrawProcess {
  const { scheduler, weather, durable, rules, bug } = world;
  const { draw } = scheduler;
  const plan = { id: PLAN_ID, meter: world.meter } as SalesPlan;
  const actor: Actor = { name, alive: true };
  const requests = new AsyncLocalStorage<DrawingRequest>();
  const waiting = new Set<() => void>();
  const skewMs = draw.below(8_000) - 4_000;
  const clock = { now: () => scheduler.now() + skewMs, monotonic: scheduler.now };
  let ids = 0;
  const newId = (): string => `${name.replaceAll(' ', '-')}-${++ids}`;
  const schedule = (ms: number, run: () => void): (() => void) => scheduler.timer(actor, 'a timer', ms, run);
  const log = tell((text, fields) => {
    scheduler.say(`${name}: ${text}`);
    // Nothing could be told to the ledger for most of a minute.
    if (text.startsWith('what became of a use')) rules.excused(String(fields['use_id']));
  });
  const reached = reachPasses(world, actor, requests);
  const ledger = bug?.ledger?.(reached, { ...world, actor }) ?? reached;
  const plainMeter = createMetering({ metrics: { meter: () => undefined }, log });
  const meter = bug?.meter?.(plainMeter) ?? plainMeter;
  const leases = createLeases({ ledger, schedule, newId, monotonic: clock.monotonic, leaseMs: LEASE_MS });
  const books = createPassBooks({
    ...{ ledger, leases, newId, clock, schedule, log },
    revocations: { has: () => false },
    wouldCharge: (_route, _method, { status }) => status < 400,
    meter,
    // No answer is kept: the books alone know a use that comes again.
    keptUses: createKeptUses({
      ...{ memory: createResponseMemory(), replays: createReplays(schedule, clock.monotonic), keepBytes: () => 0 },
    }),
    metrics: { passUsed: () => undefined, passDrawn: () => undefined },
  });
  const store = reachStore(
    scheduler,
    durable,
    weather,
    NO_WATCH,
    actor,
    () => undefined,
    draw.chance(0.5) ? 'own' : 'registry',
  );
  let opened: Ledger | undefined;
  /** The ledger of charges: few processes sell anything. */
  const charges = (): Ledger => (opened ??= createLedger(store, SPELLING));

  const endedBy = (end: End, useId: string): End => {
    if (end.kind !== 'delivered' && end.kind !== 'replaced') rules.excused(useId);
    return end;
  };

  /** What exchange.ts does with a request that was let through. `metered`: the meter of its use; undefined: it takes its price. */
  const relay = async (
    { beforeResponse, done: ended, hearer }: Pick<GrantedOutcome, 'beforeResponse' | 'done' | 'hearer'>,
    { useId, metered }: { readonly useId: string; readonly metered: Meter | undefined },
    connection: DrawConnection,
  ): Promise<DrawReply> => {
    const request = requests.getStore();
    if (request === undefined) throw new Error(`${useId} has no request`);
    // What is to be taken once the response is over, if its end says it.
    let due: bigint | undefined;
    const done = (end: End): void => {
      if (due !== undefined) request.takes = due;
      ended(endedBy(end, useId));
    };
    const fault = { code: 'upstream_unreachable', detail: 'model' } as const;
    const leave = (status: number | undefined, headSent: boolean, asked: boolean): DrawReply => {
      done({ kind: 'client_gone', status, headSent, failed: false, upload: 'whole', asked, kept: undefined });
      return 'broken';
    };
    const fail = (status: number | undefined, asked: boolean): DrawReply => {
      done({ kind: 'failed', headersSent: status !== undefined, status, asked, ...fault });
      return status === undefined ? { status: 502, code: 'upstream_unreachable' } : 'broken';
    };
    await scheduler.point(actor, 'sends to the upstream', weather.delay());
    if (connection.gone) return leave(undefined, false, false);
    if (weather.happens('upstream_fails')) return fail(undefined, false);
    rules.asked(request, useId);
    await scheduler.point(actor, 'hears of the upstream', draw.chance(0.1) ? draw.below(SLOW_MS) : weather.delay());
    if (connection.gone) return leave(undefined, false, true);
    if (weather.happens('upstream_fails')) return fail(undefined, true);
    const status = weather.happens('upstream_fails') ? 500 : 200;
    const response = metered && someResponse(draw, metered);
    const saysAtEnd = status === 200 && metered !== undefined && metered.source.kind !== 'header';
    if (status === 200 && !saysAtEnd)
      request.takes = metered ? dueFor(metered, response?.costs, request.price) : request.price;
    const verdict = await beforeResponse({ status, headers: response?.headers ?? [] });
    if (verdict.kind === 'again') throw new Error('no draw asks the upstream anew');
    if (verdict.kind === 'replace') {
      const { status: own } = verdict.response;
      await scheduler.point(actor, `answers ${own}`);
      done({ kind: 'replaced', status: own, upstreamMs: 0 });
      return { status: own, code: own === 503 ? 'ledger_unavailable' : 'pass_in_use' };
    }
    if (saysAtEnd) due = dueFor(metered, undefined, request.price);
    if (connection.gone) return leave(status, false, true);
    if (saysAtEnd) {
      const [first, ...rest] = response?.pieces ?? [];
      const hear = (piece: Buffer | undefined): void => {
        if (piece === undefined) return;
        hearer?.data(piece);
        // Its memory is another's from here on.
        piece.fill(0);
      };
      hear(first);
      await scheduler.point(actor, 'streams', draw.chance(0.1) ? draw.below(SLOW_MS) : weather.delay());
      if (weather.happens('upstream_fails')) return fail(status, true);
      if (connection.gone) return leave(status, true, true);
      for (const piece of rest) hear(piece);
      hearer?.end(response?.trailers ?? []);
      due = dueFor(metered, response?.costs, request.price);
    }
    await scheduler.point(actor, 'hands the last byte over', weather.delay());
    if (!saysAtEnd && weather.happens('upstream_fails')) return fail(status, true);
    if (connection.gone) return leave(status, true, true);
    if (status === 200) rules.delivered(request, useId, saysAtEnd);
    done({ kind: 'delivered', status, upstreamMs: 0, kept: undefined });
    return { status, code: undefined };
  };

  const serve = async ({ pass, key, target, amount }: DrawRequest, connection: DrawConnection): Promise<DrawReply> => {
    const request = requests.getStore();
    const facts = { requestId: newId(), method: METHOD, target, nowMs: clock.now() } as RequestFacts;
    const price = parsePrice(amount);
    if (price === undefined || request === undefined) throw new Error(`${amount} is no price`);
    const ruling = await books.drawFrom(
      { ...pass, token: 'model' },
      {
        ...{ route: ROUTE, plan, request: facts },
        rawHeaders: key === undefined ? [] : ['Idempotency-Key', key],
        offer: () => makeOffer(ROUTE, RECEIVERS, { price }),
      },
      (refusal) => renderProblem(refusal),
    );
    if (ruling.kind === 'next') {
      rules.demanded(request);
      return { status: 402, code: ruling.because };
    }
    if (ruling.kind === 'judged') {
      const refusal = ruling.verdict.kind === 'refuse' ? ruling.verdict.problem : undefined;
      const status = refusal === undefined ? 402 : renderProblem(refusal).status;
      if (status === 400) rules.violated(`a request is malformed: ${refusal?.detail}`);
      return { status, code: refusal?.code };
    }
    if (ruling.kind === 'answered') throw new Error('an answer was kept');
    const useId = ruling.permit.headers[ruling.permit.headers.indexOf('Tollgate-Use-Id') + 1] ?? '';
    return relay(ruling.granted, { useId, metered: pass.kind === 'credit' ? plan.meter : undefined }, connection);
  };

  /** Says something to the ledger of charges until it answers. */
  const insist = async <T>(task: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await task();
      } catch (error) {
        if (!(error instanceof LedgerUnavailable)) throw error;
        await scheduler.point(actor, 'says it again', 500);
      }
    }
  };
  const buy: DrawProcess['buy'] = async (n, sale, price) => {
    const settles = draw.pick(['before_forward', 'before_response'] as const);
    const owner = leases.newOwner();
    const request = requests.getStore();
    if (request !== undefined) rules.owned(request, owner);
    const claim = claimOf(n, {
      pass: writePassInSale(sale),
      settle: settles,
      price: { amount: price, currency: 'USD' },
    });
    const changeId = newId();
    const claimed = await insist(() =>
      charges().claim(claim, { owner, leaseMs: LEASE_MS, maxUnsettledPerPayer: 9, changeId }),
    );
    if (claimed.kind !== 'claimed') return undefined;
    const advance = (event: Parameters<Ledger['advance']>[1]): ReturnType<Ledger['advance']> => {
      const actorOf = { owner, changeId: newId() };
      return insist(() => charges().advance(claim.id, event, actorOf));
    };
    const settle = async (): Promise<Charge | undefined> => {
      const started = await advance({ kind: 'settle_started', via: 'model', leaseMs: LEASE_MS });
      if (started.kind !== 'ok') return undefined;
      const settled = await advance({ kind: 'settled', proof: proofOf(claim), leaseMs: LEASE_MS });
      rules.booksHold();
      return settled.kind === 'ok' ? settled.charge : undefined;
    };
    const useOf = (charge: Charge): BoughtUse | undefined =>
      boughtUse({ openFirstUse: books.openFirstUse, meter }, { owner, plan, facts: { requestId: BUYS } }, charge);
    const name = {
      useId: firstUseOf(passIdOf(claim.id)),
      metered: sale.kind === 'credit' && sale.isMetered === true ? plan.meter : undefined,
    };
    const connection = { gone: false };
    if (weather.happens('client_leaves'))
      void scheduler
        .point(actor, 'the client that buys leaves', draw.below(draw.pick([50, 500, 20_000])))
        .then(() => (connection.gone = true));

    /** What pass-sale.ts does with a charge that is settled. */
    const sellAndForward = async (): Promise<SoldPass | undefined> => {
      const charge = await settle();
      const sold = charge && soldPassOf(charge);
      const use = charge && useOf(charge);
      if (sold === undefined || use === undefined) return undefined;
      use.open(sold);
      const beforeResponse: GrantedOutcome['beforeResponse'] = async (head) => {
        if (head.status < 500) await use.take(head);
        else use.giveBack();
        return { kind: 'stream', headers: [] };
      };
      await relay({ hearer: use.hearer, beforeResponse, done: use.done }, name, connection);
      return sold;
    };
    /** What settler.ts does with a charge that is settled by the response. */
    const forwardAndSell = async (): Promise<SoldPass | undefined> => {
      const use = useOf(claimed.charge);
      if (use === undefined) {
        const charge = await settle();
        return charge && soldPassOf(charge);
      }
      let sold: SoldPass | undefined;
      const beforeResponse: GrantedOutcome['beforeResponse'] = async (head) => {
        if (head.status >= 400) return { kind: 'stream', headers: [] };
        const charge = await settle();
        sold = charge && soldPassOf(charge);
        if (sold === undefined) return { kind: 'replace', response: renderProblem(ledgerAway()) };
        use.open(sold);
        await use.take(head);
        return { kind: 'stream', headers: [] };
      };
      await relay({ hearer: use.hearer, beforeResponse, done: use.done }, name, connection);
      return sold;
    };
    const pass = await (settles === 'before_forward' ? sellAndForward() : forwardAndSell());
    if (pass !== undefined) await advance({ kind: 'delivered', partial: false });
    return pass;
  };

  /** Runs what ends with this process. */
  const open = <T>(price: bigint, broken: T, task: () => Promise<T>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<T>();
    const end = (): void => resolve(broken);
    waiting.add(end);
    requests.run(rules.begin(price), task).then(resolve, (error: unknown) => {
      rules.violated(`a request failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
      end();
    });
    return promise.finally(() => waiting.delete(end));
  };
  return {
    actor,
    draw: (request, connection) =>
      open<DrawReply>(drawnBy(request.pass, request.amount), 'broken', () => serve(request, connection)),
    buy: (n, sale, price) =>
      open<SoldPass | undefined>(drawnBy(sale, sale.first), undefined, () => buy(n, sale, price)),
    crash: () => {
      scheduler.say(`${name} CRASHES`);
      scheduler.crash(actor);
      rules.crashed(name);
      for (const end of waiting) end();
    },
  };
}

/** Passes as one process has them: each call takes effect at one moment and is answered at another, or lost, or made twice. */
function reachPasses(
  { scheduler, durable, weather, rules }: DrawWorld,
  asker: Actor,
  requests: AsyncLocalStorage<DrawingRequest>,
): PassLedger {
  const { draw } = scheduler;
  const { passes } = durable;
  const network = { name: `${asker.name}'s network`, alive: true };
  const call = async <T>(label: string, effect: () => Promise<T>): Promise<T> => {
    const [there, back] = [
      weather.delay() + (weather.happens('ledger_lost') ? draw.below(LATE_MS) : 0),
      weather.delay(),
    ];
    // Its caller does not wait for it any more, and it arrives all the same.
    if (there > CALL_MS) {
      void scheduler.point(network, `delivers ${label} late`, there).then(effect);
      await scheduler.point(asker, `gives up: ${label}`, CALL_MS);
      throw new LedgerUnavailable('no answer');
    }
    await scheduler.point(asker, `ledger: ${label}`, there);
    if (weather.happens('ledger_lost')) throw new LedgerUnavailable('no answer');
    const result = await effect();
    if (weather.happens('ledger_doubled'))
      void scheduler.point(network, `delivers ${label} again`, weather.delay()).then(effect);
    const isLost = back > CALL_MS || weather.happens('ledger_answer_lost');
    await scheduler.point(asker, isLost ? `hears nothing: ${label}` : `ledger did: ${label}`, Math.min(back, CALL_MS));
    if (isLost) throw new LedgerUnavailable('no answer');
    return result;
  };
  const change = async (wanted: DrawChange): Promise<Awaited<ReturnType<PassLedger['change']>>> => {
    const request = requests.getStore();
    if (request !== undefined && wanted.kind === 'reserve') rules.owned(request, wanted.owner);
    const result = await call(`${wanted.kind} ${wanted.useId}`, async () => {
      const before = new Map(passes.draws().map((each) => [each.id, each]));
      const said = await passes.change(wanted);
      scheduler.say(`ledger: ${wanted.kind} ${wanted.useId} is ${said.kind}`);
      rules.changed(wanted, said, before);
      return said;
    });
    rules.heard(wanted, result);
    return result;
  };
  return {
    ...passes,
    run: asker.name,
    change,
    renew: (run, ids, leaseMs) => call('renew uses', () => passes.renew(run, ids, leaseMs)),
  };
}

const NO_WATCH = {
  written: () => undefined,
  settledAt: () => undefined,
  reported: () => undefined,
  replayed: () => undefined,
};

function tell(say: (text: string, fields: Readonly<Record<string, unknown>>) => void): Log {
  const at = (msg: string, fields: Readonly<Record<string, unknown>> = {}): void => say(msg, fields);
  return { debug: () => undefined, info: () => undefined, warn: at, error: at, enabled: () => true };
}
