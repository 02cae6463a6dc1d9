// Charges as people see them, and sums of them. Reads only. Never answers a credential, a kept answer or a request's
// query: a dashboard session that leaks must not be worth what its customers paid for.
import type { z } from 'zod';
import type { Sum } from '../../domain/payment/reports.ts';
import { formatPrice } from '../../domain/payment/money.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import { readFilter } from './charge-filter.ts';
import type { chargeParams, chargesQuery, summaryQuery } from './charge-schemas.ts';
import { viewCharge } from './charge-view.ts';
import { jsonResponse, fail, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { withLedger } from './ledger-endpoints.ts';
import { writeCursor } from '../http/schemas.ts';
import type { Services } from '../http/services.ts';

const HOUR_MS = 3_600_000;
const DEFAULT_RANGE_MS = 30 * 24 * HOUR_MS;
const MAX_SUMS = 10_000;

export function listCharges(
  { query }: EndpointCall<unknown, z.output<typeof chargesQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const reading = readFilter(query, ledger.spelling);
    if (reading.kind === 'unreadable') return fail(unreadableQ(reading.message));
    const { charges, nextBefore } = await ledger.list({
      ...reading.filter,
      limit: query.limit,
      before: query.cursor,
    });
    return jsonResponse(200, {
      data: charges.map((charge) => viewCharge(charge, services.networks)),
      next_cursor: nextBefore === undefined ? null : writeCursor(nextBefore),
    });
  });
}

export function getCharge(
  { params }: EndpointCall<z.output<typeof chargeParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const charge = await ledger.get(params.id);
    if (charge === undefined) return fail(problem('not_found', 'There is no charge with this id.'));
    return jsonResponse(200, viewCharge(charge, services.networks));
  });
}

export function getChargeHistory(
  { params }: EndpointCall<z.output<typeof chargeParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const entries = await ledger.history(params.id);
    if (entries === undefined) return fail(problem('not_found', 'There is no charge with this id.'));
    return jsonResponse(200, { data: entries.map((entry) => ({ ...entry, at: iso(entry.at) })) });
  });
}

export function summariseCharges(
  { query }: EndpointCall<unknown, z.output<typeof summaryQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  const toMs = query.to ?? services.clock.now();
  const fromMs = query.from ?? toMs - DEFAULT_RANGE_MS;
  if (fromMs >= toMs) return Promise.resolve(fail(problem('malformed', "The query's from is not before its to.")));
  const { bucket, group_by: groupBy, route_id: routeId, currency } = query;
  return withLedger(services, async (ledger) => {
    const summary = await ledger.summary({ fromMs, toMs, bucket, groupBy, routeId, currency, limit: MAX_SUMS });
    if (summary.kind === 'too_long') {
      const detail = `There are more than ${MAX_SUMS} sums; ask for larger buckets, a shorter time or one route.`;
      return fail(problem('malformed', detail));
    }
    return jsonResponse(200, {
      from: iso(Math.floor(fromMs / HOUR_MS) * HOUR_MS),
      to: iso(Math.ceil(toMs / HOUR_MS) * HOUR_MS),
      bucket,
      data: summary.sums.map(viewSum),
    });
  });
}

/** `message`: what `q` takes. */
export function unreadableQ(message: string): Problem {
  return problem('malformed', `The query's q is not valid: it names ${message}.`);
}

function viewSum({ start, routeId, currency, network, asset, assetDecimals, charges, amount, refunded }: Sum): object {
  return {
    start: iso(start),
    route_id: routeId,
    currency,
    network,
    asset,
    asset_decimals: assetDecimals,
    charges,
    amount: formatPrice({ units: amount, scale: assetDecimals }),
    amount_atomic: amount.toString(),
    refunded: formatPrice({ units: refunded, scale: assetDecimals }),
    refunded_atomic: refunded.toString(),
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
