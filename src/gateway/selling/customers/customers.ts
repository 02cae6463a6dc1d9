// Customers who need not pay: a request passes free if one of an entry is recognised, with its credential as it came. Who
// shows something wrong is as good as nobody, and is told so by the 402 that follows. A quota counts by name in the ledger;
// beyond it the request goes on to the other ways.
import type { CustomerEntry } from '../../../domain/selling/customer.ts';
import { problem } from '../../../domain/problem.ts';
import { windowAt } from '../../../domain/selling/window.ts';
import { grantAccess } from '../grant.ts';
import { givingBack } from '../giving-back.ts';
import { nameOfQuestion } from '../repeated-question.ts';
import type { RequestCounter } from '../request-counter.ts';
import type { SaleMetrics } from '../sale-metrics.ts';
import { NEXT, refuse, type AskedSale, type NotPassed, type Ruling, type WayToPass } from '../way-to-pass.ts';
import type { SeenResponse } from '../would-charge.ts';
import type { Recognise, Recognition } from './recognition.ts';

export type CustomersDeps = {
  readonly recognise: Recognise;
  readonly counter: RequestCounter;
  /** Whether a response would have been charged for: only then a counted request stays counted. */
  readonly wouldCharge: (asked: AskedSale, seen: SeenResponse) => boolean;
  readonly metrics: Pick<SaleMetrics, 'customer'>;
  /** Notes that a client showed what was refused. */
  readonly refused: (asked: AskedSale) => void;
};

/** Customers of one name that a quota counts at most. */
const MOST_NAMES = 1_000_000;
const RETRY_SECONDS = 5;

export function createCustomers(entry: CustomerEntry, deps: CustomersDeps): WayToPass {
  const { recognise } = deps;
  return (asked) => {
    const recognition = recognise(asked.request);
    return recognition instanceof Promise
      ? recognition.then((each) => follow(entry, deps, asked, each))
      : follow(entry, deps, asked, recognition);
  };
}

function follow(
  entry: CustomerEntry,
  deps: CustomersDeps,
  asked: AskedSale,
  recognition: Recognition,
): Ruling | NotPassed | Promise<Ruling | NotPassed> {
  const { metrics, refused } = deps;
  switch (recognition.kind) {
    case 'absent':
      return NEXT;
    case 'refused':
      metrics.customer(entry.id, recognition.because === 'customer_expired' ? 'expired' : 'unknown');
      refused(asked);
      return { kind: 'next', because: recognition.because };
    case 'unavailable':
      metrics.customer(entry.id, 'unavailable');
      return unavailable(asked);
    case 'known':
      if (entry.quota !== undefined) return withinQuota(entry, deps, asked, recognition.name);
      metrics.customer(entry.id, 'known', givenName(entry, recognition.name));
      return grantAccess('customer', asked.sale, named(recognition.name));
    default:
      return recognition satisfies never;
  }
}

async function withinQuota(
  entry: CustomerEntry,
  { counter, metrics, wouldCharge }: CustomersDeps,
  asked: AskedSale,
  name: string,
): Promise<Ruling | NotPassed> {
  const { id, quota } = entry;
  if (quota === undefined) return NEXT;
  const window = windowAt(quota.window, asked.request.nowMs);
  const taken = await counter.take({
    ...{ ...window, scope: `quota ${id}`, subject: name, group: undefined },
    ...{ limit: quota.requests, identities: MOST_NAMES, name: nameOfQuestion(asked.request) },
  });
  if (taken === 'unavailable') {
    metrics.customer(id, 'unavailable');
    return unavailable(asked);
  }
  if (taken.kind !== 'counted') {
    metrics.customer(id, 'quota');
    return { kind: 'next', because: 'customer_quota_used_up' };
  }
  metrics.customer(id, 'known', givenName(entry, name));
  const back = givingBack(
    (seen) => wouldCharge(asked, seen),
    () => counter.giveBack(taken),
  );
  return grantAccess('customer', asked.sale, { ...named(name), ...back });
}

/** A name that the owner gave, and not one that stands in somebody's token. */
function givenName({ proof }: CustomerEntry, name: string): string | undefined {
  return proof.kind === 'keys' ? name : undefined;
}

function named(name: string): { readonly customerId: string; readonly headers: readonly string[] } {
  return { customerId: name, headers: ['Tollgate-Customer-Id', name] };
}

function unavailable({ sale }: AskedSale): Ruling {
  const detail = 'Whether you need to pay cannot be told right now; nothing was charged. Send the same request again.';
  return refuse(sale.route, problem('customers_unavailable', detail, { retryAfter: RETRY_SECONDS }));
}
