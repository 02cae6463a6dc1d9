// A charge as people see it: what the endpoints answer, and what `tollgate charges` prints. Its members come from the rows of
// `charge-fields.ts`. Nothing in it could be replayed or belongs to its payer alone.
import { CHARGE_ROWS, type ChargeRow, type ShownValues } from '../../domain/payment/charge-fields.ts';
import { isChargeSource } from '../../domain/payment/charge-copy.ts';
import { FLOW_OF } from '../../domain/payment/charge.ts';
import { explorerPage } from '../../domain/payment/explorer.ts';
import type { KnownNetwork } from '../../domain/payment/network.ts';
import type { ListedCharge } from '../../domain/payment/reports.ts';
import { chargedOf } from '../../domain/payment/whereabouts.ts';
import { passIdOf } from '../../domain/selling/pass.ts';
import type { ChargeView } from './charge-schemas.ts';
import { viewRefunds } from './refund-view.ts';
import { FIRST_SHOWN, inOrder } from './shown-order.ts';

/** Finds a network that has a name, by its CAIP-2 name. */
export type NamedNetworks = {
  readonly find: (caip2: string) => Pick<KnownNetwork, 'name' | 'explorer' | 'tokens'> | undefined;
};

/** A charge as people see it. `networks` are those that are known by name. */
export function viewCharge(charge: ListedCharge, networks: NamedNetworks): ChargeView {
  const { retryUntil, owed, payment, proof } = charge;
  const known = networks.find(payment.network);
  const view: ChargeView = {
    ...showValues(charge),
    flow: FLOW_OF[charge.settle],
    charged: chargedOf(charge),
    retry_until: retryUntil === null ? null : new Date(retryUntil).toISOString(),
    owed,
    network_name: known?.name ?? null,
    transaction_url: known && proof ? explorerPage(known.explorer, 'tx', proof.transaction) : null,
    payer_url: known ? explorerPage(known.explorer, 'address', payment.payer) : null,
    ...viewRefunds(charge, known),
    pass_id: charge.pass === null || charge.settledAt === null ? null : passIdOf(charge.id),
  };
  return inOrder(view, FIRST_SHOWN);
}

function showValues(charge: ListedCharge): ShownValues {
  return Object.fromEntries(
    CHARGE_ROWS.flatMap((row) => (row.shown === undefined ? [] : [[row.shown, shownValue(charge, row)]])),
  ) as ShownValues;
}

function shownValue(charge: Readonly<Record<string, unknown>>, { part, member, shownAs }: ChargeRow): unknown {
  const from = part === undefined ? charge : charge[part];
  const value = isChargeSource(from) ? from[member] : null;
  if (typeof value === 'bigint') return value.toString();
  return shownAs === 'date' && typeof value === 'number' ? new Date(value).toISOString() : value;
}
