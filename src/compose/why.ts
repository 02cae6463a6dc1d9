// Finds what became of a request: its charges, as the ledger has them; what a 402's id says; and the last refusals of
// this process. Asked by `tollgate why` over the process's socket and by GET /v1/billing/why/{id}.
import type { ChargeSearch, ListedCharge } from '../domain/payment/reports.ts';
import { isOfPart, readIdPart, type Quotes } from '../domain/payment/quote.ts';
import { formatPrice } from '../domain/payment/money.ts';
import type { Route } from '../domain/routing/route.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { RefusedRequest, RefusedRequests } from '../gateway/refusals.ts';
import type { Clock } from '../host/clock.ts';
import { viewCharge } from '../registry/charges/charge-view.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';

export type RefusalFinder = (id: string) => Promise<readonly RefusedRequest[]>;

/** The ledger in which charges are looked for. */
export type WhyLedgers = {
  /** Finds charges by a part of an id, a request or a transaction; undefined if the ledger is elsewhere. */
  readonly search: ((search: ChargeSearch, limit: number) => Promise<readonly ListedCharge[]>) | undefined;
  /** Finds a charge by its whole id, which every ledger takes. */
  readonly findByChargeId: ((id: string) => Promise<ListedCharge | undefined>) | undefined;
};

export type WhyParts = WhyLedgers & {
  /** Finds the refusals that an id names; undefined if no proxy runs here. */
  readonly refusals: RefusalFinder | undefined;
  readonly quotes: Pick<Quotes, 'explain'>;
  readonly quoteTtlMs: number;
  readonly routeOf: (id: string) => Route | undefined;
  readonly clock: Clock;
};

const FOREIGN = {
  ...{ signed_here: false, route_id: null, route_method: null, route_pattern: null, method: null, amount: null },
  ...{ currency: null, issued_at: null, expires_at: null, expired: null },
};
const MOST = 50;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'];

export async function explainWhy(id: string, parts: WhyParts): Promise<WhyReport> {
  const found = await parts.refusals?.(id);
  // The refusal holds the whole offered id; the caller may have given its end alone.
  const ids = new Set(found?.flatMap(({ chargeId }) => chargeId ?? []));
  const [offered] = ids;
  const charges = await findCharges(id, ids, parts);
  return {
    id,
    charges: charges.map((charge) => viewCharge(charge, NETWORKS)),
    quote: quoteOf(offered ?? id, parts),
    refusals: found?.map((refusal) => viewRefusal(refusal, parts)) ?? [],
    refusals_elsewhere: parts.refusals === undefined,
    ledger_elsewhere: parts.search === undefined,
  };
}

/** Finds what a process remembers of `id`, newest first. */
export function findRefusals({ find }: Pick<RefusedRequests, 'find'>, id: string): readonly RefusedRequest[] {
  const part = readIdPart(id);
  return find(
    ({ requestId, chargeId }) =>
      requestId === id || (chargeId !== undefined && part !== undefined && isOfPart(chargeId, part)),
    MOST,
  );
}

/** Joins what several processes remember. */
export function newestOf(found: readonly (readonly RefusedRequest[])[]): readonly RefusedRequest[] {
  return found
    .flat()
    .toSorted((a, b) => b.at - a.at)
    .slice(0, MOST);
}

/** Charges that `id` names, and those whose quotes were `offered` to the requests that it names; newest first. */
async function findCharges(
  id: string,
  offered: ReadonlySet<string>,
  { search, findByChargeId }: WhyParts,
): Promise<readonly ListedCharge[]> {
  const named = (await search?.({ idPart: readIdPart(id), requestId: id, transaction: id }, MOST)) ?? [];
  const charges = new Map(named.map((charge) => [charge.id, charge]));
  const others = search === undefined && id.startsWith('chg_') ? [...offered, id] : [...offered];
  for (const each of others.filter((other) => !charges.has(other))) {
    const charge = await findByChargeId?.(each);
    if (charge !== undefined) charges.set(charge.id, charge);
  }
  return [...charges.values()].toSorted((a, b) => b.createdAt - a.createdAt).slice(0, MOST);
}

function quoteOf(id: string, { quotes, quoteTtlMs, routeOf, clock }: WhyParts): WhyReport['quote'] {
  const explained = quotes.explain(id);
  if (explained.kind === 'none') return null;
  if (explained.kind === 'foreign') return FOREIGN;
  const { routeId, price, currency, expiresAt, isFor } = explained.quote;
  const route = routeOf(routeId);
  return {
    signed_here: true,
    route_id: routeId,
    route_method: route?.method ?? null,
    route_pattern: route?.pattern ?? null,
    method: METHODS.find(isFor) ?? null,
    amount: formatPrice(price),
    currency,
    issued_at: iso(expiresAt * 1000 - quoteTtlMs),
    expires_at: iso(expiresAt * 1000),
    expired: expiresAt * 1000 <= clock.now(),
  };
}

function viewRefusal(refusal: RefusedRequest, { routeOf }: WhyParts): WhyReport['refusals'][number] {
  const { at, requestId, method, path, status, outcome, reason, routeId, chargeId } = refusal;
  const route = routeId === undefined ? undefined : routeOf(routeId);
  return {
    at: iso(at),
    request_id: requestId,
    method,
    path,
    status,
    outcome,
    reason: reason ?? null,
    route_id: routeId ?? null,
    route_pattern: route?.pattern ?? null,
    charge_id: chargeId ?? null,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
