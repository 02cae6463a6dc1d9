// How many requests ended in which way, and what follows from these numbers alone. They are plain integers: they add up over
// processes, minutes and routes.

/**
 * The ways in which a request may end, as log, metrics and sums name them. `paid`: an answer was given under a charge that took
 * money; `released`: a claim was made and given back, or its client left before there was one; `discovery`: a document of ours
 * was answered. By the plan of their route passed: `observed` in a dry run, `customer` for somebody who need not pay, `pass`
 * under what was paid for before, `quota` as a free request.
 */
export const REQUEST_OUTCOMES = [
  'free',
  'paid',
  'payment_required',
  'refused',
  'error',
  'released',
  'discovery',
  'observed',
  'customer',
  'pass',
  'quota',
] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

export type RequestCounts = Readonly<Record<RequestOutcome, number>>;
/** Counts that their owner adds to. */
export type OpenRequestCounts = Record<RequestOutcome, number>;

export function noRequests(): OpenRequestCounts {
  return {
    ...{ free: 0, paid: 0, payment_required: 0, refused: 0, error: 0, released: 0, discovery: 0 },
    ...{ observed: 0, customer: 0, pass: 0, quota: 0 },
  };
}

/** Adds `more` to `counts`. */
export function addRequests(counts: OpenRequestCounts, more: RequestCounts): void {
  for (const outcome of REQUEST_OUTCOMES) counts[outcome] += more[outcome];
}

export function allRequests(counts: RequestCounts): number {
  return REQUEST_OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0);
}

/** The part of the requests that were asked to pay which was paid, at most 1; null if none was asked. */
export function conversionOf({ paid, payment_required: asked }: RequestCounts): number | null {
  return asked === 0 ? null : Math.min(1, paid / asked);
}
