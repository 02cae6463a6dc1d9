// POST /v1/ledger/totals (scope `ledger`): what a sidecar counted since its last batch. The same batch again changes nothing.
import type { z } from 'zod';
import { STEP_MS } from '../../domain/totals/steps.ts';
import { batchFromWire } from '../../domain/totals/totals-wire.ts';
import { emptyResponse, fail, invalidBody, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { totalsBody } from './totals-schemas.ts';
import { plainAddress } from '../stream/sidecars.ts';
import { withTotals } from './with-totals.ts';

/** How far the clock of a sidecar may be ahead, and how long one may have been cut off: beyond, a clock is wrong. */
const AHEAD_MS = STEP_MS.hour;
const BEHIND_MS = 7 * STEP_MS.day;

export function takeTotals(
  { body, peer }: EndpointCall<unknown, unknown, z.output<typeof totalsBody>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withTotals(services, async (totals) => {
    const batch = batchFromWire(body, plainAddress(peer.address));
    const now = services.clock.now();
    const at = batch.rows.findIndex(({ startMs }) => startMs > now + AHEAD_MS || startMs < now - BEHIND_MS);
    if (at >= 0) {
      const detail = 'This time is more than an hour ahead of the registry, or more than a week behind it.';
      return fail(invalidBody([{ pointer: `/rows/${at}/start`, detail }]));
    }
    await totals.add(batch);
    return emptyResponse(204);
  });
}
