// Draws on passes for sidecars and workers (scope `ledger`): POST /v1/ledger/passes/{id}/draws, and what they have to know of passes.
// Expected outcomes are 200 with a `kind`; if the store does not answer it is 503, and nobody knows. A change that is sent again
// with its use and its owner is the same change.
import { z } from 'zod';
import { LedgerUnavailable, type Ledger } from '../../domain/payment/ledger.ts';
import { MOST_REVOKED, type PassStore } from '../../domain/selling/pass-store.ts';
import {
  drawFromWire,
  drawResultToWire,
  keptPassToWire,
  drawChangesWire,
  drawResultsWire,
  keptPassesWire,
  passId,
  revokedPassesWire,
  revokedToWire,
} from '../../domain/selling/pass-wire.ts';
import { documented } from '../http/schemas.ts';
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { withLedger } from './ledger-endpoints.ts';

export const passParams = z.object({ id: passId });
export const passesOfPayerQuery = z.object({ payer: z.string('must be a payer').min(1).max(64) });
export const revocationsQuery = z.object({
  after: z
    .string('must be a time')
    .regex(/^\d{1,15}$/, 'milliseconds since the epoch')
    .transform(Number),
  limit: z
    .string()
    .regex(/^([1-9]\d{0,2}|1000)$/, `an integer from 1 to ${MOST_REVOKED}`)
    .transform(Number)
    .default(MOST_REVOKED),
});

documented.add(drawChangesWire, { id: 'LedgerDrawRequest' });
documented.add(drawResultsWire, { id: 'LedgerDrawOutcomes' });
documented.add(keptPassesWire, { id: 'LedgerPasses' });
documented.add(revokedPassesWire, { id: 'LedgerRevocations' });

export function drawOnPass(
  {
    params: { id },
    body: { changes },
  }: EndpointCall<z.output<typeof passParams>, unknown, z.output<typeof drawChangesWire>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withPasses(services, async (passes) => {
    // In their order: a store makes them so.
    const results = await Promise.all(changes.map((change) => passes.change(drawFromWire(id, change))));
    return jsonResponse(200, { results: results.map(drawResultToWire) });
  });
}

export function findPasses(
  { query: { payer } }: EndpointCall<unknown, z.output<typeof passesOfPayerQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withPasses(services, async (passes) =>
    jsonResponse(200, { data: (await passes.ofPayer(payer)).map(keptPassToWire) }),
  );
}

export function listRevocations(
  { query: { after, limit } }: EndpointCall<unknown, z.output<typeof revocationsQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withPasses(services, async (passes) =>
    jsonResponse(200, { data: (await passes.revoked(after, limit)).map(revokedToWire) }),
  );
}

/** Runs `use` with the passes and the ledger that they belong to; 503 if there are none here, or their store cannot say. */
export function withPasses(
  services: Services,
  use: (passes: PassStore, ledger: Pick<Ledger, 'spelling' | 'now'>) => Promise<EndpointOutcome>,
): Promise<EndpointOutcome> {
  return withLedger(services, (ledger) => {
    const { passes } = services;
    if (passes === undefined) throw new LedgerUnavailable('This registry keeps no passes.');
    return use(passes, ledger);
  });
}
