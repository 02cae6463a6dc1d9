// Looks at unfinished charges without an owner, after a crash or a settlement whose end is not known, and writes what the
// chain says became of them. It only reads: a settlement is sent for a payer who waits for it, never from here. It goes
// by the ledger alone and takes no lease. So any process with the ledger may do this for any other, and a payer may take
// a charge over in between.
import type { Charge } from '../domain/payment/charge.ts';
import { LedgerUnavailable, type Ledger } from '../domain/payment/ledger.ts';
import type { ChargeEvent } from '../domain/payment/transition.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { endOf } from './pay/look-change.ts';
import type { ChargeLog } from './pay/recorder.ts';
import type { Look, Rail } from './rails/rail.ts';

type ReconcileDeps = {
  readonly rail: Pick<Rail, 'look'>;
  readonly ledger: Pick<Ledger, 'due' | 'advance'>;
  readonly chargeLog: Pick<ChargeLog, 'changed'>;
  /** The upstream ran for this payer, and the settlement afterwards took nothing. */
  readonly ranUnpaid: (payer: string) => void;
  readonly log: Log;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Random;
};

/** Begins a look at every charge that is due; resolves with the looks that are under way then, each by itself. */
type ChargeReconciler = () => Promise<readonly Promise<Charge>[]>;

/** A node is asked a few times a second at most: more looks at a time would only wait. */
const LOOKS_AT_A_TIME = 20;
const FIRST_LOOK_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function createReconcile(deps: ReconcileDeps): ChargeReconciler {
  const looking = new Map<string, Promise<Charge>>();
  return async () => {
    const due = await deps.ledger.due(LOOKS_AT_A_TIME);
    for (const charge of due) {
      if (looking.size >= LOOKS_AT_A_TIME) break;
      if (looking.has(charge.id)) continue;
      const look = lookAndEnd(deps, charge, 'when due').finally(() => looking.delete(charge.id));
      looking.set(charge.id, look);
    }
    return [...looking.values()];
  };
}

/** Looks at one charge at once, also before its next look is due; undefined if a request works on it. */
export async function reconcileNow(deps: ReconcileDeps, charge: Charge): Promise<Charge | undefined> {
  return charge.leaseUntil > deps.clock.now() ? undefined : lookAndEnd(deps, charge, 'now');
}

async function lookAndEnd(deps: ReconcileDeps, charge: Charge, when: 'when due' | 'now'): Promise<Charge> {
  const { log, clock, rail, ranUnpaid } = deps;
  // The owner is gone: nothing was sent for the charge.
  if (charge.state === 'claimed') return (await write(deps, charge.id, { kind: 'taken_over', leaseMs: 0 })) ?? charge;
  const lookInMs = nextLookIn(charge, clock.now());
  const looked = { kind: 'looked', search: null, lookInMs } as const;
  if (when === 'when due') {
    const reason = charge.reason ?? 'owner_gone';
    // The write is undefined if another process looks, the payer came, or the ledger is away.
    if ((await write(deps, charge.id, { ...looked, at: 'start', reason })) === undefined) return charge;
  }
  const seen = await rail.look(charge, 'reconciler').catch((error: unknown): Look => {
    log.error('a charge could not be looked at', { charge_id: charge.id, error });
    return { kind: 'unavailable', detail: 'the look failed' };
  });
  const event = eventOf(seen, charge, lookInMs);
  if (event === undefined) return charge;
  const written = await write(deps, charge.id, event);
  if (written?.state === 'failed' && charge.settle === 'before_response') ranUnpaid(charge.payment.payer);
  return written ?? charge;
}

/** Makes the event for a look; undefined: nothing that is worth a write. */
function eventOf(seen: Look, { reason }: Charge, lookInMs: number): ChargeEvent | undefined {
  const end = endOf(seen);
  if (end !== undefined) return end;
  const search = seen.kind === 'open' ? seen.search : null;
  const said = seen.kind !== 'open' ? 'chain_unavailable' : seen.used ? 'payment_used' : 'payment_unused';
  return search === null && said === reason ? undefined : { kind: 'looked', at: 'end', search, lookInMs, reason: said };
}

/** Writes an event. Undefined if the charge has an owner or its end, or the ledger is away: the next look comes. */
async function write(deps: ReconcileDeps, id: string, event: ChargeEvent): Promise<Charge | undefined> {
  const { ledger, random, chargeLog, log } = deps;
  const actor = { owner: 'reconciler', changeId: random(12).toString('hex') };
  try {
    const advanced = await ledger.advance(id, event, actor);
    if (advanced.kind === 'ok') {
      chargeLog.changed(advanced.charge, event.kind);
      return advanced.charge;
    }
    // Not worth a word if another process was faster, or the payer came; money that the charge's end leaves unbooked is.
    const { because, charge } = advanced;
    const isBooked = because === 'lease_running' || charge?.state === 'settled' || charge?.state === 'delivered';
    const level = event.kind === 'settled' && !isBooked ? 'error' : 'debug';
    log[level]('a look at a charge was not written', { charge_id: id, event: event.kind, because });
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
    log.debug('a look at a charge was not written', { charge_id: id, event: event.kind, error });
  }
  return undefined;
}

function nextLookIn({ looks, claimedAt }: Charge, now: number): number {
  if (now - claimedAt >= DAY_MS) return HOUR_MS;
  return Math.min(LONGEST_PAUSE_MS, FIRST_LOOK_MS * 2 ** Math.min(looks, 10));
}
