// The journey of a payment over a ledger in memory, with a rail that says what a test wants and time that it moves.
import { createQuotes } from '../../../src/domain/payment/quote.ts';
import type { Charge } from '../../../src/domain/payment/charge.ts';
import { LedgerUnavailable, type Ledger } from '../../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../../src/domain/payment/transition.ts';
import { makeOffer, type Offer, findServices, type Receiver } from '../../../src/domain/payment/offer.ts';
import type { Problem } from '../../../src/domain/problem.ts';
import type { Way } from '../../../src/domain/payment/way.ts';
import type { Outcome, PaidOutcome, RequestFacts } from '../../../src/gateway/outcome.ts';
import { createPaywall } from '../../../src/gateway/paywall.ts';
import { createReplays, createResponseMemory } from '../../../src/gateway/pay/kept-responses.ts';
import { createSeenPayments } from '../../../src/gateway/pay/seen-payments.ts';
import { createLeases, LEASE_MS } from '../../../src/gateway/pay/lease.ts';
import { createPay } from '../../../src/gateway/pay/pay.ts';
import { createSettleModes } from '../../../src/gateway/pay/settler.ts';
import { createReconcile } from '../../../src/gateway/reconcile.ts';
import type { UpstreamFault } from '../../../src/http/transport.ts';
import type {
  LookSubject,
  PartialLook,
  PresentedPayment,
  Rail,
  Refusal,
  Settlement,
  Verification,
} from '../../../src/gateway/rails/rail.ts';
import { RECEIVER, RECEIVERS, requirement, WAY } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';
import { createMemoryLedger, type MemoryLedger } from '../../support/memory-ledger.ts';

const SECRETS = ['a secret of this test, long enough to be one'];
const PAYER = `0x${'a'.repeat(40)}`;
const START_MS = 1_800_000_000_000;

export type RailScript = {
  /** What becomes of a credential of the first way when it is read. */
  readonly read?: (presented: PresentedPayment) => PresentedPayment | Refusal;
  readonly verify?: () => Promise<Verification> | Verification;
  readonly isCallable?: (way: Way) => boolean;
  /** After `sending` of the one facilitator said yes. */
  readonly settle?: (calls: number) => Promise<Settlement> | Settlement;
  readonly look?: (id: string, charge: LookSubject) => Promise<PartialLook> | PartialLook;
  /** What becomes of a connection to the upstream; undefined: it is had. */
  readonly connect?: (calls: number) => Promise<UpstreamFault | undefined> | UpstreamFault | undefined;
  readonly support?: string;
  /** As the receiver is configured. */
  readonly mode?: Receiver['settle'];
  readonly ways?: Receiver['ways'];
  /** A claim was written and is not answered yet. */
  readonly claimed?: () => Promise<void> | void;
  /** A change was written and is not answered yet. */
  readonly written?: (by: ChargeEvent['kind']) => Promise<void> | void;
};

export type PayStage = {
  readonly ledger: MemoryLedger;
  readonly offer: Offer;
  readonly settleCalls: () => number;
  readonly charges: () => readonly Charge[];
  /** What was logged as an error. */
  readonly errors: readonly string[];
  /** What the charge log was told, in order. */
  readonly changes: readonly string[];
  /** How payments ended, each with its network. */
  readonly counts: readonly string[];
  /** A turn of the reconciler, until its looks are over. */
  readonly reconcile: () => Promise<void>;
  /** The same without waiting for them. */
  readonly beginLooks: () => Promise<void>;
  /** Presents the payment with this nonce. */
  readonly pay: (wanted?: Wanted) => Promise<Outcome>;
  readonly leave: () => void;
  readonly comeBack: () => void;
  /** Until it is back the ledger rejects; what it was told before may take effect all the same. */
  readonly away: (calls: 'reject' | 'do_and_reject' | undefined) => void;
  readonly pass: (ms: number) => Promise<void>;
  /** Time passes and nothing is done in it, as in a process that is stopped. */
  readonly standStill: (ms: number) => void;
};

type Wanted = {
  readonly method?: string;
  readonly target?: string;
  readonly nonce?: number;
  /** That the payment names. */
  readonly network?: string;
  readonly offer?: Offer | Problem;
  readonly validForSeconds?: number;
};

export const settled = (): Settlement => ({ kind: 'settled', transaction: `0x${'7'.repeat(64)}`, via: 'one' });
export const unknown = (): Settlement => ({ kind: 'unknown', reason: 'no_answer', via: 'one', detail: 'test' });
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The charge behind what pays for a request. */
export function grantedBy(stage: PayStage, { grant }: PaidOutcome): Charge | undefined {
  return stage.charges().find(({ id }) => id === grant.id);
}

export function createPayStage(script: RailScript = {}): PayStage {
  let now = START_MS;
  let left = false;
  let settles = 0;
  let connects = 0;
  let away: 'reject' | 'do_and_reject' | undefined;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  const schedule = (ms: number, run: () => void): (() => void) => {
    const timer = { at: now + ms, run };
    timers.push(timer);
    return () => (timers = timers.filter((other) => other !== timer));
  };
  const clock = { now: () => now, monotonic: () => now };
  let ids = 0;
  const newId = (): string => `id-${++ids}`;
  const durable = createMemoryLedger(clock.now);
  const guarded = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      if (away === 'reject') throw new LedgerUnavailable('away');
      const result = await call(...args);
      if (away === 'do_and_reject') throw new LedgerUnavailable('away');
      return result;
    };
  };
  const ledger: Ledger = {
    ...durable,
    find: guarded(durable.find),
    claim: guarded(async (...args) => {
      const claimed = await durable.claim(...args);
      await script.claimed?.();
      return claimed;
    }),
    advance: guarded(async (...args) => {
      const advanced = await durable.advance(...args);
      await script.written?.(args[1].kind);
      return advanced;
    }),
    renew: guarded(durable.renew),
  };
  const receiver = { ...RECEIVER, ways: script.ways ?? RECEIVER.ways, settle: script.mode ?? 'auto' };
  const offer = makeOffer(route('* /r'), new Map([[receiver.id, receiver]]));
  if ('code' in offer) throw new Error(offer.detail);

  const rail: Rail = {
    requirement,
    read: ({ version, value }, [way]) => {
      const written = JSON.parse(value, revive) as PresentedPayment;
      const own = way?.network === written.key.network ? way : { reason: 'way_mismatch' };
      const presented = { ...written, version, way: own };
      return script.read?.(presented) ?? presented;
    },
    check: () => undefined,
    verify: async () => script.verify?.() ?? { kind: 'valid', payer: PAYER },
    settle: async (_presented, _terms, _history, sending) => {
      if (!(await sending('one'))) return { kind: 'not_carried_out', reason: 'stopped', retryAfterMs: undefined };
      settles += 1;
      return script.settle?.(settles) ?? settled();
    },
    isCallable: (way) => script.isCallable?.(way) ?? true,
    firstVia: () => 'one',
    receiptHeader: (_version, receipt) => ['PAYMENT-RESPONSE', receipt.transaction],
    look: async (charge) =>
      script.look?.(charge.payment.unique, charge) ?? { kind: 'unavailable', detail: 'nobody to ask' },
  };
  const errors: string[] = [];
  const error = (sentence: string): void => void errors.push(sentence);
  const log = { debug: ignore, info: ignore, warn: ignore, error, enabled: () => false };
  const changes: string[] = [];
  const counts: string[] = [];
  const counted = (_routeId: string, result: string, network: string | undefined): void =>
    void counts.push(`${result} ${network ?? 'none'}`);
  const chargeLog = { changed: (_charge: unknown, by: string) => void changes.push(by), counted };
  const modes = createSettleModes(clock.monotonic);
  const quotes = createQuotes({ secrets: SECRETS, ttlMs: 300_000, nonce: () => newId().padStart(16, 'n') });
  const paywall = createPaywall({
    createPay: (answers) =>
      createPay({
        ...{ ...answers, rail, ledger, seenPayments: createSeenPayments(100), chargeLog, modes, log, clock, newId },
        leases: createLeases({ ledger, schedule, newId, monotonic: clock.monotonic, leaseMs: LEASE_MS }),
        responses: { memory: createResponseMemory(), replays: createReplays(schedule, clock.monotonic) },
        options: {
          keepResponseBytes: 1_000,
          maxUnsettledPerPayer: 64,
          ownAuthorities: undefined,
          enoughToServeFirstMs: 70_000,
          leaseMs: LEASE_MS,
          services: (way) => findServices(RECEIVERS, way),
          nameOf: ({ network }) => `USDC on ${network}`,
          support: script.support,
        },
        pause: (ms) => new Promise((resolve) => void schedule(ms, resolve)),
      }),
    quotes,
    listingOf: undefined,
    page: undefined,
    paymentRequired: () => ({ body: '', bodyBytes: 0, header: '', accepts: undefined, ways: [] }),
    corsOrigins: [],
    methods: new Set(['GET', 'POST']),
  });
  const { ranUnpaid } = modes;
  const random = (size: number): Buffer => Buffer.from(newId().padStart(size));
  const reconcile = createReconcile({ rail, ledger, chargeLog, ranUnpaid, log, clock, random });

  return {
    ledger: durable,
    offer,
    settleCalls: () => settles,
    charges: durable.all,
    errors,
    changes,
    counts,
    reconcile: async () => void (await Promise.all(await reconcile())),
    beginLooks: async () => void (await reconcile()),
    leave: () => (left = true),
    comeBack: () => (left = false),
    away: (calls) => (away = calls),
    pay: async (wanted = {}) => {
      const { method = 'GET', target = '/r?x=1', nonce = 1, network = WAY.network } = wanted;
      const { offer: now_ = offer, validForSeconds = 300 } = wanted;
      const unique = `0x${nonce.toString(16).padStart(64, '0')}`;
      const presented: Omit<PresentedPayment, 'payload' | 'way'> = {
        version: 2,
        key: { network, asset: WAY.asset.toLowerCase(), payer: PAYER, unique: unique },
        sha256: nonce.toString(16).padStart(64, 'c'),
        chargeId: undefined,
        amount: offer.ways[0]?.amount ?? 0n,
        deadline: BigInt(Math.floor(START_MS / 1000) + validForSeconds),
      };
      const asked: RequestFacts = {
        ...{ requestId: newId(), method, path: '/r', target, publicOrigin: 'http://api', origin: undefined },
        ...{ nowMs: now, conditionalWrite: false, left: () => left, customerTrusted: false },
        notePayer: () => undefined,
        asksForPage: () => false,
        connect: async () => {
          connects += 1;
          return script.connect?.(connects);
        },
      };
      const credential = { version: 2, value: JSON.stringify(presented, write) } as const;
      const caller = { customerId: undefined, credential };
      return paywall.perform({ kind: 'verify', route: offer.route, offer: now_, caller, credential }, asked);
    },
    pass: async (ms) => {
      const end = now + ms;
      for (;;) {
        for (let i = 0; i < 5; i++) await turn();
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers = timers.filter((other) => other !== next);
        now = Math.max(now, next.at);
        next.run();
      }
      now = end;
    },
    standStill: (ms) => void (now += ms),
  };
}

function ignore(): undefined {
  return undefined;
}

function write(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}

function revive(_name: string, value: unknown): unknown {
  return typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
}
