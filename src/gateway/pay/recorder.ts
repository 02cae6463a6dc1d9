// The recorder writes a request's changes into the ledger, and tells log and metrics of them. A change is tried twice if
// the request waits for its end. If it does not, a change is tried for as long as it takes: a lost one would leave money
// or a service hanging. Below are the log line and the metrics of each change.
import { LedgerUnavailable, type AdvanceResult, type Ledger } from '../../domain/payment/ledger.ts';
import { FLOW_OF, type Charge, type Claim, type PaymentKey } from '../../domain/payment/charge.ts';
import { owedBecauseOf, type ClaimResult, type ClaimOptions } from '../../domain/payment/claim-policy.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import type { Log } from '../../host/log.ts';
import { addDecimals, type Decimal } from '../../host/decimal.ts';
import type { Metrics } from '../../host/metrics.ts';

type RecorderDeps = {
  readonly ledger: Pick<Ledger, 'find' | 'claim' | 'advance'>;
  readonly chargeLog: ChargeLog;
  readonly log: Log;
  /** Makes a name that nothing else has. */
  readonly newId: () => string;
  /** Waits. */
  readonly pause: (ms: number) => Promise<void>;
};

/** Owner of a charge in whose name a change is made: a request, or the reconciler. */
type ChargeOwner = { readonly owner: string };
type PaymentOwner = ChargeOwner & { readonly presented: { readonly key: PaymentKey } };

export type Recorder = {
  /** Counts how a presented payment ended. */
  readonly counted: ChargeLog['counted'];
  /** Makes the name of a change, for a change that is tried in two ways. */
  readonly newId: () => string;
  /** Claims once. A claim without an answer may have been written: it rejects, and is given back later. */
  readonly claim: (payment: PaymentOwner, claim: Claim, options: ClaimOptions) => Promise<ClaimResult>;
  /** Makes a change, tried once: it rejects if the ledger cannot say. */
  readonly change: (owned: ChargeOwner, id: string, event: ChargeEvent, changeId?: string) => Promise<AdvanceResult>;
  /** Makes a change, tried twice: the second time the ledger recognises the first. */
  readonly changeTwice: (
    owned: ChargeOwner,
    id: string,
    event: ChargeEvent,
    changeId?: string,
  ) => Promise<AdvanceResult | 'unavailable'>;
  /**
   * Makes a change that must not be lost over a passing fault of the ledger. `changeId`: name of an attempt before this one,
   * which may have been written all the same: then this one is told as that one.
   */
  readonly changeUntilWritten: (
    owned: ChargeOwner,
    id: string,
    event: ChargeEvent,
    changeId?: string,
  ) => Promise<Charge | undefined>;
  /**
   * Releases a charge for which nothing was sent, however far it came: also if its last change has no certain end.
   * `unasked`: the upstream was away as well, so the claim does not count.
   */
  readonly release: (owned: ChargeOwner, charge: Charge, reason: string, unasked?: true) => Promise<void>;
  /** Waits for `written`, two seconds unless `ms` says otherwise; undefined after that: then the ledger is away. */
  readonly within: <T>(written: Promise<T>, ms?: number) => Promise<T | undefined>;
};

export function createRecorder(deps: RecorderDeps): Recorder {
  const { ledger, chargeLog, newId, pause } = deps;
  return {
    counted: chargeLog.counted,
    newId,
    claim: (payment, claim, options) =>
      ledger.claim(claim, options).then(
        (claimed) => {
          if (claimed.kind === 'claimed') chargeLog.changed(claimed.charge, 'claimed');
          return claimed;
        },
        (error: unknown) => {
          if (error instanceof LedgerUnavailable) void giveBackLater(deps, payment);
          throw error;
        },
      ),
    change: async ({ owner }, id, event, changeId = newId()) => {
      const advanced = await ledger.advance(id, event, { owner, changeId });
      if (advanced.kind === 'ok') chargeLog.changed(advanced.charge, event.kind);
      return advanced;
    },
    changeTwice: (owned, id, event, changeId = newId()) => changeTwice(deps, owned, id, event, changeId),
    changeUntilWritten: (owned, id, event, changeId = newId()) => changeUntilWritten(deps, owned, id, event, changeId),
    release: (owned, charge, reason, unasked) => release(deps, owned, charge, reason, unasked),
    within: (written, ms = WRITTEN_MS) => Promise.race([written, pause(ms).then(() => undefined)]),
  };
}

/** Milliseconds for which a problem is held back until the ledger has what it says. */
const WRITTEN_MS = 2_000;

async function changeTwice(
  { ledger, log, chargeLog }: RecorderDeps,
  { owner }: ChargeOwner,
  id: string,
  event: ChargeEvent,
  changeId: string,
): Promise<AdvanceResult | 'unavailable'> {
  const actor = { owner, changeId };
  for (let tries = 0; ; tries++) {
    try {
      const advanced = await ledger.advance(id, event, actor);
      if (advanced.kind === 'ok') chargeLog.changed(advanced.charge, event.kind);
      return advanced;
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
      if (tries > 0) {
        log.error('the ledger is unavailable', { charge_id: id, event: event.kind, error });
        return 'unavailable';
      }
    }
  }
}

const PAUSES_MS = [100, 500, 2_000, 10_000, 30_000];

/** Tries `change` until the ledger has answered it; undefined: it never did, and the lease decides. */
async function retry<T>(
  { log, pause }: RecorderDeps,
  id: string,
  event: ChargeEvent['kind'],
  change: () => Promise<T>,
): Promise<T | undefined> {
  for (const pauseMs of [...PAUSES_MS, undefined]) {
    try {
      return await change();
    } catch (error) {
      log.error('the ledger is unavailable', { charge_id: id, event, error });
    }
    if (pauseMs !== undefined) await pause(pauseMs);
  }
  return undefined;
}

function changeUntilWritten(
  deps: RecorderDeps,
  { owner }: ChargeOwner,
  id: string,
  event: ChargeEvent,
  changeId: string,
): Promise<Charge | undefined> {
  const { ledger, log, chargeLog } = deps;
  return retry(deps, id, event.kind, async () => {
    const advanced = await ledger.advance(id, event, { owner, changeId });
    if (advanced.kind === 'ok') {
      chargeLog.changed(advanced.charge, event.kind);
      return advanced.charge;
    }
    log.warn('a charge is not ours any more', { charge_id: id, event: event.kind, because: advanced.because });
    return undefined;
  });
}

async function release(
  deps: RecorderDeps,
  { owner }: ChargeOwner,
  { id }: Pick<Charge, 'id'>,
  reason: string,
  unasked?: true,
): Promise<void> {
  const { ledger, newId, chargeLog } = deps;
  const changeIds = { released: newId(), not_carried_out: newId() };
  await retry(deps, id, 'released', async () => {
    for (const kind of ['released', 'not_carried_out'] as const) {
      const advanced = await ledger.advance(id, { kind, reason, unasked }, { owner, changeId: changeIds[kind] });
      if (advanced.kind === 'ok') chargeLog.changed(advanced.charge, kind);
      if (advanced.kind === 'ok' || advanced.because !== 'wrong_state') return;
    }
  });
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Number of the ledger's answers without such a claim after which none will come. */
const ANSWERS = 6;

/** Gives a claim back as soon as it is seen. */
async function giveBackLater(deps: RecorderDeps, payment: PaymentOwner): Promise<void> {
  // A write that is on its way to a ledger elsewhere may arrive after the first answers.
  let pauseMs = FIRST_PAUSE_MS;
  for (let answers = 0; answers < ANSWERS; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    await deps.pause(pauseMs);
    try {
      const known = await deps.ledger.find(payment.presented.key);
      answers += 1;
      if (known?.owner === payment.owner) return await release(deps, payment, known, 'ledger_unavailable');
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
    }
  }
}

// Logs and counts what became of a charge. One log line says that money moved, and one says what did not go as it should.
// The ordinary steps in between are logged at level debug only. The metrics of money are exact to the last unit. Never a
// credential, never a kept answer. The ledger is the truth: the writer of a settlement tells it once, and a process that is
// killed in between leaves it out.

/** Results of a presented payment. */
type PaymentResult =
  | 'settled'
  | 'delivered'
  | 'settled_undelivered'
  | 'replayed'
  /** The upstream is left alone after a failure. */
  | 'paused'
  | 'released'
  | 'refused'
  | 'in_use'
  | 'already_used'
  | 'unknown'
  | 'unavailable';

export type ChargeLog = {
  /** Reports a change of a charge. `by` is the change that made `charge` what it is. */
  readonly changed: (charge: Charge, by: ChargeEvent['kind'] | 'claimed') => void;
  /** Counts the result of a presented payment. `network` is that of the way that was chosen, CAIP-2. */
  readonly counted: (routeId: string, result: PaymentResult, network: string | undefined) => void;
};

/** Money in units of one scale: a payment only adds to an integer. */
type Revenue = {
  readonly series: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly scale: number;
  units: bigint;
};

const NO_WAY = 'none';
const NOTHING: Decimal = { units: 0n, scale: 0 };

export function createChargeLog(metrics: Metrics, log: Log, routeLabel: (id: string) => string): ChargeLog {
  const payments = metrics.counter('payments_total', 'Presented payments, by how they ended.', [
    'route_id',
    'result',
    'network',
  ]);
  const revenues = new Map<string, Revenue>();
  metrics.exact(
    'counter',
    'revenue_total',
    'Settled money in the currency of the route, to the last unit.',
    ['route_id', 'currency', 'network'],
    (set) => {
      for (const parts of Map.groupBy(revenues.values(), ({ series }) => series).values()) {
        const [first] = parts;
        const sum = parts.reduce(addDecimals, NOTHING);
        if (first !== undefined) set(first.labels, sum);
      }
    },
  );
  const counted: ChargeLog['counted'] = (routeId, result, network) =>
    payments(routeLabel(routeId), result, network ?? NO_WAY)(1);
  const earned = ({ route, price: { currency }, way, amount }: Charge): void => {
    const { network } = way;
    const routeId = routeLabel(route.id);
    const series = `${routeId} ${currency} ${network}`;
    const name = `${series} ${way.decimals}`;
    const known = revenues.get(name);
    if (known !== undefined) known.units += amount;
    else {
      const labels = { route_id: routeId, currency, network };
      revenues.set(name, { series, labels, scale: way.decimals, units: amount });
    }
  };
  return {
    counted,
    changed: (charge, by) => {
      if (by === 'settled') {
        counted(charge.route.id, 'settled', charge.way.network);
        earned(charge);
      }
      const level = by === 'settled' || !isOrdinary(charge, by) ? 'info' : 'debug';
      if (log.enabled(level)) log[level](by === 'settled' ? 'charge settled' : 'charge', describe(charge, by));
    },
  };
}

/** A step of every payment: the ledger has it, and the line about the money says as much. */
function isOrdinary({ state, attempts, asks }: Charge, by: ChargeEvent['kind'] | 'claimed'): boolean {
  switch (state) {
    case 'claimed':
      return true;
    case 'settling':
      return attempts === 0 || by === 'looked';
    case 'delivered':
      return asks.all <= 1;
    case 'settled':
      return by === 'redeem_started';
    case 'released':
    case 'failed':
      return false;
    default:
      return state satisfies never;
  }
}

function describe(charge: Charge, by: ChargeEvent['kind'] | 'claimed'): Readonly<Record<string, unknown>> {
  const { id, state, route, requestId, payment, way, price, proof, reason, attempts, customerId } = charge;
  return {
    charge_id: id,
    state,
    by,
    request_id: requestId ?? undefined,
    route_id: route.id,
    customer_id: customerId ?? undefined,
    payer: payment.payer,
    network: way.network,
    asset: way.asset,
    scheme: way.scheme,
    pay_to_address: way.payTo,
    x402_version: charge.x402Version,
    flow: FLOW_OF[charge.settle],
    amount: price.amount,
    currency: price.currency,
    amount_atomic: charge.amount,
    transaction: proof?.transaction,
    reason: reason ?? undefined,
    attempts: attempts > 0 ? attempts : undefined,
    undelivered: charge.undelivered ?? undefined,
    // The clock that wrote the charge judges what is owed.
    owed: owedBecauseOf(charge, charge.updatedAt),
  };
}
