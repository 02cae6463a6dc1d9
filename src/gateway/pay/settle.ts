// When a payment is settled, which answers cost something, and one attempt to settle. A payment is settled before the
// request is forwarded, or when the upstream's status line is there. The second way waits for nothing, but the upstream
// has worked for nothing if the settlement fails. So a payment that may fail is settled first.
import { LRUCache } from 'lru-cache';
import type { Charge, KeptAnswer } from '../../domain/payment/charge.ts';
import { settlesFirst } from '../../domain/payment/offer.ts';
import type { RailOffer, Receipt } from '../../domain/payment/way.ts';
import { releaseUnsent, retryUntilRecorded, step } from './record.ts';
import {
  type PayDeps,
  type Payment,
  type SettleModes,
  type OwnAuthorities,
  refusedReceipt,
  settledReceipt,
} from './payment.ts';
import { FIRST_LOOK_MS } from '../../domain/payment/transition.ts';
import type { Refusal } from '../rails/rail.ts';

/** A head may take this long and settling 10 s more; never less than a minute. */
export function enoughToServeFirst(upstreamHeadersMs: number): number {
  return Math.max(60_000, upstreamHeadersMs + 10_000);
}

const REMEMBERED_MS = 3_600_000;
const REMEMBERED_PAYERS = 10_000;
const LEAVINGS = 3;

type Remembered = { readonly leavings: number; readonly settlesFirst: boolean; readonly until: number };

export function createSettleModes(monotonic: () => number, remembered = REMEMBERED_PAYERS): SettleModes {
  const payers = new LRUCache<string, Remembered>({ maxSize: remembered, sizeCalculation: () => 1 });
  const known = (payer: string): Remembered | undefined => {
    const seen = payers.get(payer);
    return seen !== undefined && seen.until > monotonic() ? seen : undefined;
  };
  const remember = (payer: string, leavings: number, settlesFirst: boolean): void =>
    void payers.set(payer, { leavings, settlesFirst, until: monotonic() + REMEMBERED_MS });
  return {
    modeFor: ({ wanted, method, conditionalWrite, payer, leftMs, enoughMs }) => {
      if (conditionalWrite || leftMs < enoughMs || known(payer)?.settlesFirst === true) return 'before_forward';
      return settlesFirst(wanted, method) ? 'before_forward' : 'before_response';
    },
    ranUnpaid: (payer) => remember(payer, 0, true),
    leftEarly: (payer) => {
      const seen = known(payer);
      if (seen?.settlesFirst === true) return;
      const leavings = (seen?.leavings ?? 0) + 1;
      remember(payer, leavings, leavings >= LEAVINGS);
    },
  };
}

// Which responses are charged if the settlement waits for the status line: those that give the payer what was asked
// for. A redirect is one if it leads to another API, because the link may be what was sold. A response that cannot be
// judged is charged. The request's own Host decides nothing: its sender chose it.

type ApiNames = {
  readonly publicUrl: string | undefined;
  /** Further names, each as `URL.hostname` writes it; without a port it means 80 and 443. */
  readonly hosts: readonly { readonly host: string; readonly port: number | undefined }[];
  readonly upstream: URL;
};

export function ownAuthorities({ publicUrl, hosts, upstream }: ApiNames): OwnAuthorities {
  if (publicUrl === undefined && hosts.length === 0) return undefined;
  const own = new Set([authorityOf(upstream)]);
  if (publicUrl !== undefined) own.add(authorityOf(new URL(publicUrl)));
  for (const { host, port } of hosts)
    for (const each of port === undefined ? DEFAULT_PORTS : [port]) own.add(`${host}:${each}`);
  return own;
}

/** `headers`: the upstream's, flat name, value pairs. */
export function isCharged(status: number, headers: readonly string[], own: OwnAuthorities): boolean {
  if (status === 101 || status === 304 || (status >= 200 && status < 300)) return true;
  if (status < 300 || status >= 400) return false;
  const locations = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'location');
  const [location] = locations;
  return location === undefined || locations.length > 1 || leadsAway(location, own);
}

const DEFAULT_PORTS = [80, 443];
/** Clients drop controls and spaces in front, some anywhere, and take `\` for `/`: what follows such a one cannot be judged. */
const PATH = /^\/(?:[^/\\\p{Cc} ]|$)/u;
const RELATIVE = /^(?![/\\\p{Cc} ])[^/?#:]*(?:[/?#]|$)/u;
const AUTHORITY = /^(https?:)?\/\/(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?(?=[/?#]|$)/i;

/** Whether a `Location` names another authority than our own. */
function leadsAway(location: string, own: OwnAuthorities): boolean {
  if (PATH.test(location) || RELATIVE.test(location)) return false;
  const [authority, scheme, port] = AUTHORITY.exec(location) ?? [];
  if (own === undefined || authority === undefined) return true;
  const absolute = scheme === undefined ? `http:${authority}` : authority;
  if (!URL.canParse(absolute)) return true;
  const url = new URL(absolute);
  // Without a scheme it is the one that the client came with, which only it knows.
  if (scheme === undefined && port === undefined)
    return !DEFAULT_PORTS.some((each) => own.has(`${url.hostname}:${each}`));
  return !own.has(authorityOf(url));
}

function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

// One attempt to settle a claimed charge, and the ways in which it can end. The ledger knows which facilitator is asked
// before it is asked. So a restart knows that a settlement may have been sent. A charge without a certain end stays
// `settling`, until the chain or the payer's next request ends it. Nothing is sent for a client that left.

export type SettleEnd =
  | { readonly kind: 'settled'; readonly charge: Charge; readonly receipt: Receipt }
  | { readonly kind: 'refused'; readonly receipt: Receipt }
  /** The money may have moved, or may yet. `recorded`: the charge has no owner from then on. */
  | { readonly kind: 'unknown'; readonly charge: Charge; readonly recorded?: Promise<unknown> }
  /** Nothing was sent that could move money, and nothing will be for this request. */
  | { readonly kind: 'not_carried_out'; readonly retryAfterMs: number | undefined }
  /** The same, because no facilitator takes such a payment. */
  | { readonly kind: 'declined'; readonly refusal: Refusal }
  /** The same, because the client left. */
  | { readonly kind: 'left' }
  /** Another request owns the charge by now, or the ledger is away: nothing was sent by us. */
  | { readonly kind: 'lost'; readonly because: 'taken_over' | 'ledger' };

/** `collect`: the upstream's response, which cannot be had twice, to be kept with the charge should its end not be known. */
export async function settleCharge(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  collect?: () => Promise<KeptAnswer | undefined>,
): Promise<SettleEnd> {
  const { rail, log, options } = deps;
  const { presented, facts } = payment;
  let current = charge;
  let stopped: 'left' | 'taken_over' | 'ledger' | undefined;
  const sending = async (via: string): Promise<boolean> => {
    if (facts.left()) stopped = 'left';
    else if (current.state !== 'settling' || (current.attempts === 0 && current.via !== via)) {
      const { leaseMs } = options;
      const started = await step(deps, payment, charge.id, { kind: 'settle_started', via, leaseMs });
      if (started === 'unavailable') stopped = 'ledger';
      else if (started.kind !== 'ok') stopped = 'taken_over';
      else {
        current = started.charge;
        if (facts.left()) stopped = 'left';
      }
    }
    return stopped === undefined;
  };

  const before = charge.attempts > 0;
  const history = { afterUnknown: before, via: before ? (charge.via ?? undefined) : undefined };
  const end = await rail.settle(presented, terms, history, sending);
  switch (end.kind) {
    case 'settled': {
      const { transaction } = end;
      const { amount } = charge;
      const proof = { transaction, logIndex: null, amount, payer: presented.key.payer };
      const event = { kind: 'settled', proof, leaseMs: options.leaseMs } as const;
      const changeId = deps.newId();
      const settled = await step(deps, payment, charge.id, event, changeId);
      if (settled !== 'unavailable' && settled.kind === 'ok')
        return { kind: 'settled', charge: settled.charge, receipt: settledReceipt(presented.key, amount, transaction) };
      // Settled, and the ledger does not hold it: serving now and again once it is found would be twice.
      log.error('a settlement could not be recorded', { charge_id: charge.id, transaction });
      if (settled === 'unavailable')
        void retryUntilRecorded(deps, payment, charge.id, { ...event, leaseMs: 0 }, changeId);
      return { kind: 'unknown', charge: current };
    }
    case 'refused': {
      const { reason } = end;
      const event = { kind: 'settle_refused', reason } as const;
      const refused = await step(deps, payment, charge.id, event);
      if (refused === 'unavailable') void retryUntilRecorded(deps, payment, charge.id, event);
      if (refused === 'unavailable' || refused.kind !== 'ok') return { kind: 'unknown', charge: current };
      return refused.charge.state === 'failed'
        ? { kind: 'refused', receipt: refusedReceipt(presented.key, charge.amount, reason) }
        : { kind: 'unknown', charge: refused.charge };
    }
    case 'not_carried_out': {
      if (stopped === 'taken_over') return { kind: 'lost', because: 'taken_over' };
      const reason = stopped === 'left' ? 'client_gone' : end.reason;
      if (stopped === 'ledger') {
        void releaseUnsent(deps, payment, charge, reason);
        return { kind: 'lost', because: 'ledger' };
      }
      const event = { kind: current.state === 'claimed' ? 'released' : 'not_carried_out', reason } as const;
      const released = await step(deps, payment, charge.id, event);
      if (released === 'unavailable') void releaseUnsent(deps, payment, charge, reason);
      // An earlier attempt may have moved the money after all.
      if (released !== 'unavailable' && released.kind === 'ok' && released.charge.state === 'settling')
        return { kind: 'unknown', charge: released.charge };
      if (stopped === 'left') return { kind: 'left' };
      if (before) return { kind: 'unknown', charge: current };
      return end.declined === undefined
        ? { kind: 'not_carried_out', retryAfterMs: end.retryAfterMs }
        : { kind: 'declined', refusal: end.declined };
    }
    case 'unknown': {
      const { reason, detail } = end;
      log.warn('a settlement has an unknown end', { charge_id: charge.id, reason, detail });
      const event = { kind: 'settle_unknown', reason, lookInMs: FIRST_LOOK_MS } as const;
      if (collect !== undefined) {
        const recorded = collect().then(async (answer) => {
          if (answer !== undefined)
            await retryUntilRecorded(deps, payment, charge.id, { kind: 'answer_kept', answer, headSent: false });
          await retryUntilRecorded(deps, payment, charge.id, event);
        });
        return { kind: 'unknown', charge: { ...current, attempts: current.attempts + 1 }, recorded };
      }
      const doubted = await step(deps, payment, charge.id, event);
      if (doubted === 'unavailable') void retryUntilRecorded(deps, payment, charge.id, event);
      const known = doubted !== 'unavailable' && doubted.kind === 'ok' ? doubted.charge : current;
      return { kind: 'unknown', charge: known };
    }
    default:
      return end satisfies never;
  }
}
