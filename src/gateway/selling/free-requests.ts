// Free requests: so many of one address, or of one customer whom something in front vouches for, in a window. Counted in the
// ledger before the request goes on, so that no number of processes gives more away, and given back if they are not charged
// for. If the ledger cannot count, nothing is free.
import { freeScope, type FreeRequests } from '../../domain/selling/plan.ts';
import { windowAt } from '../../domain/selling/window.ts';
import { givingBack } from './giving-back.ts';
import { grantAccess } from './grant.ts';
import { nameOfQuestion } from './repeated-question.ts';
import type { CountedRequest, RequestCounter } from './request-counter.ts';
import type { SaleMetrics } from './sale-metrics.ts';
import {
  NEXT,
  type AskedSale,
  type NotPassed,
  type PlannedRequest,
  type Ruling,
  type WayToPass,
} from './way-to-pass.ts';
import type { SeenResponse } from './would-charge.ts';

/** Whose request it is, and the larger network that it comes from, if it is known. */
export type RequestSubject = { readonly subject: string; readonly group: string | undefined };

export type FreeRequestsDeps = {
  readonly counter: RequestCounter;
  /** Finds whose request it is; undefined: it cannot be told. */
  readonly subjectOf: (by: FreeRequests['by'], request: PlannedRequest) => RequestSubject | undefined;
  readonly wouldCharge: (asked: AskedSale, seen: SeenResponse) => boolean;
  readonly metrics: Pick<SaleMetrics, 'free'>;
};

export function createFreeRequests(free: FreeRequests, deps: FreeRequestsDeps): WayToPass {
  return (asked) => {
    const subject = deps.subjectOf(free.by, asked.request);
    return subject === undefined ? NEXT : takeOne(free, deps, asked, subject);
  };
}

async function takeOne(
  free: FreeRequests,
  { counter, wouldCharge, metrics }: FreeRequestsDeps,
  asked: AskedSale,
  subject: RequestSubject,
): Promise<Ruling | NotPassed> {
  const { sale, request } = asked;
  const window = windowAt(free.window, request.nowMs);
  const wanted = { ...window, ...subject, scope: freeScope(sale.plan.id), name: nameOfQuestion(request) };
  const taken = await counter.take({ ...wanted, limit: free.requests, identities: free.identities });
  if (taken === 'unavailable' || taken.kind === 'full') return NEXT;
  if (taken.kind === 'used_up') return { kind: 'next', because: 'free_used_up' };
  const left = (counted: boolean): readonly string[] => [
    'Tollgate-Free-Left',
    leftOf(free.requests, counted ? taken.used : taken.used - 1, window.endMs - request.nowMs),
  ];
  return grantAccess(
    'free',
    sale,
    givingBack(
      (seen) => {
        const charged = wouldCharge(asked, seen);
        if (charged) metrics.free(sale.plan.id);
        return charged;
      },
      () => counter.giveBack(taken satisfies CountedRequest),
      left,
    ),
  );
}

function leftOf(requests: number, used: number, resetMs: number): string {
  return `${Math.max(0, requests - used)}; reset=${Math.max(1, Math.ceil(resetMs / 1000))}`;
}
