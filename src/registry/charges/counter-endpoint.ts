// POST /v1/ledger/counters (scope `ledger`): counts requests for sidecars and workers, exactly over all that share the ledger. A
// change that is sent again with its `change_id` is the same change.
import type { z } from 'zod';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { problem } from '../../domain/problem.ts';
import { counterFromWire, resultToWire, type counterChangesWire } from '../../domain/selling/counter-wire.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';

const RETRY_SECONDS = 2;

export async function changeCounters(
  { body }: EndpointCall<unknown, unknown, z.output<typeof counterChangesWire>>,
  { counters }: Services,
): Promise<EndpointOutcome> {
  try {
    if (counters !== undefined) {
      const results = await counters.change(body.changes.map(counterFromWire));
      return jsonResponse(200, { results: results.map(resultToWire) });
    }
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
  }
  const detail = 'The ledger of this registry does not answer; try again later.';
  return fail(problem('ledger_unavailable', detail, { retryAfter: RETRY_SECONDS }));
}
