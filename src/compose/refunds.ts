// Reads of the chain what it says of refunds, for the registry's endpoint and for the command beside it: with the nodes of the
// receivers in force, and apart from the looks at payments.
import type { WayServices } from '../domain/payment/offer.ts';
import type { RefundProver } from '../domain/payment/refund-proof.ts';
import type { Way } from '../domain/payment/way.ts';
import { createRefundProver } from '../gateway/rails/refund-prover.ts';
import { systemSchedule, type Clock } from '../host/clock.ts';

export function proveRefunds(
  services: (way: Way) => WayServices | undefined,
  clock: Pick<Clock, 'monotonic'>,
): RefundProver {
  return createRefundProver({ fetch: globalThis.fetch, schedule: systemSchedule, clock, services });
}
