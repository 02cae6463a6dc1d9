// Runs an endpoint with the sums and the ledger of this registry; 503 if it keeps none, or they cannot be asked.
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { withLedger } from '../charges/ledger-endpoints.ts';
import type { EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { TotalsBook } from './totals-book.ts';

export function withTotals(
  services: Services,
  use: (totals: TotalsBook, ledger: Ledger & ChargeReports) => Promise<EndpointOutcome>,
): Promise<EndpointOutcome> {
  return withLedger(services, (ledger) => {
    const { totals } = services;
    if (totals === undefined) throw new LedgerUnavailable('This registry keeps no sums.');
    return use(totals, ledger);
  });
}
