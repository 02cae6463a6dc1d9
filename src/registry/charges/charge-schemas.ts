// Schemas of the endpoints about charges. The billing ones show nothing of a charge that could be replayed or belongs
// to its payer alone; the ledger ones, for sidecars, speak the wire of domain/payment/ledger-wire.
import { z } from 'zod';
import { CHARGE_STATES, PROGRESS_ROWS, type ShownValues } from '../../domain/payment/charge-fields.ts';
import { chargeId, claimShape, shownShape } from '../../domain/payment/charge-shapes.ts';
import { chargeWire, claimWire } from '../../domain/payment/charge-wire.ts';
import { FLOWS } from '../../domain/payment/charge.ts';
import { MAX_LINES } from '../../domain/payment/claim-policy.ts';
import { AMOUNT_ADVICE, AMOUNT_PATTERN } from '../../domain/payment/money.ts';
import { BUCKETS, GROUPS } from '../../domain/payment/reports.ts';
import { FAULTS } from '../../domain/payment/claim-policy.ts';
import { CHARGED } from '../../domain/payment/whereabouts.ts';
import {
  advancedWire,
  changeId,
  chargesWire,
  claimedWire,
  eventWire,
  leaseMs,
  owner,
  renewalsWire,
  renewedWire,
} from '../../domain/payment/ledger-wire.ts';
import { documented, listQuery } from '../http/schemas.ts';
import { REFUND_REASON } from '../../domain/payment/refund.ts';
import { refundShape } from './refund-view.ts';
import { FIRST_SHOWN, inOrder } from './shown-order.ts';

/** A time in a query, in milliseconds since the epoch. */
export const moment = z
  .string()
  .refine(
    (text) => z.union([z.iso.datetime({ offset: true }), z.iso.date()]).safeParse(text).success,
    'a time such as 2026-01-31T00:00:00Z, or a date',
  )
  .transform((text) => Date.parse(text));
const routeId = z.string().min(1).max(64);

/** The forms of what `q` takes. */
export const NAMES_OF_CHARGES =
  'a charge id or its first 12 characters or more, the id of a request, an account, or a transaction';

const STATES = CHARGE_STATES.join('|');

/** What charges are looked for by. */
const chargeFilters = {
  status: z
    .string()
    .regex(
      new RegExp(`^(${STATES})(,(${STATES})){0,${CHARGE_STATES.length - 1}}$`),
      `one or several of ${CHARGE_STATES.join(', ')}, with commas between`,
    )
    .transform((text) => CHARGE_STATES.filter((state) => text.split(',').includes(state)))
    .optional(),
  owed: z
    .literal('true', 'true, or left out')
    .transform(() => true)
    .optional(),
  route_id: routeId.optional(),
  network: z
    .string()
    .max(64)
    .regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/, 'a network by its CAIP-2 name, with a colon in it')
    .optional(),
  payer: z.string().min(1).max(64).optional(),
  customer_id: z.string().min(1).max(128).optional(),
  transaction: z.string().min(1).max(128).optional(),
  request_id: z.string().min(1).max(256).optional(),
  currency: z
    .string()
    .min(1)
    .max(10)
    .transform((text) => text.toUpperCase())
    .optional(),
  receiver_id: z.string().min(1).max(64).optional(),
  /** Whatever names charges: `charge-filter.ts` tells by its form what it is. */
  q: z.string().min(1).max(128, NAMES_OF_CHARGES).optional(),
};

export const chargesQuery = z.object({
  limit: listQuery.shape.limit,
  cursor: listQuery.shape.cursor,
  ...chargeFilters,
  from: moment.optional(),
  to: moment.optional(),
});

/** A file of charges needs its times. */
export const chargesCsvQuery = z.object({ ...chargeFilters, from: moment, to: moment });

/** A file of what is owed is of all times unless it says otherwise. */
export const owedCsvQuery = z.object({
  route_id: chargeFilters.route_id,
  network: chargeFilters.network,
  currency: chargeFilters.currency,
  receiver_id: chargeFilters.receiver_id,
  payer: chargeFilters.payer,
  from: moment.optional(),
  to: moment.optional(),
});

/** A refund to be recorded. Members that may be left out: all that is left of the charge, and no reason. */
export const refundBody = z.strictObject({
  transaction: z.string('must be a transaction').min(1, 'must be a transaction').max(128, 'must be a transaction'),
  amount: z
    .string('must be a decimal written as a string')
    .regex(AMOUNT_PATTERN, `must be ${AMOUNT_ADVICE}`)
    .optional(),
  reason: z.string('must be text').regex(REFUND_REASON, 'must be one line of at most 200 characters').optional(),
  /** Recorded by the operator's word, without a look at the chain. */
  unproven: z.boolean('must be true or false').optional(),
});

export const chargeEventsQuery = z.object({ status: chargeFilters.status, route_id: chargeFilters.route_id });

export const summaryQuery = z.object({
  from: moment.optional(),
  to: moment.optional(),
  bucket: z.enum(BUCKETS, `one of ${BUCKETS.join(', ')}`).default('day'),
  /** Sums over all routes; left out, each route has its own. */
  group_by: z.enum(GROUPS, `${GROUPS.join(', ')}, or left out`).optional(),
  route_id: routeId.optional(),
  currency: z
    .string()
    .max(10)
    .transform((text) => text.toUpperCase())
    .optional(),
});

export const chargeParams = z.object({ id: chargeId });

const time = z.iso.datetime();

/** Names of the shown members that say what became of a claim and lie in no part of it. */
const SHOWN_OF_PROGRESS = PROGRESS_ROWS.flatMap(({ part, shown }) =>
  part === undefined && shown !== undefined ? [shown] : [],
);

/** Members that a charge has for people beyond its rows. */
const standing = {
  /** The network by the name that configuration has for it; null if it is not known by name. */
  network_name: z.string().nullable(),
  /** Pages of the network's explorer; null if it is not known. */
  transaction_url: z.string().nullable(),
  payer_url: z.string().nullable(),
  /** Flow by its name in x402: whether the money is taken before anything is done for it. */
  flow: z.enum(FLOWS),
  /** Whether the money was taken; `unknown`: that is being found out. */
  charged: z.literal(CHARGED),
  /** Time until which the very same request brings the answer without another charge. */
  retry_until: time.nullable(),
  /** Party at fault for something that was paid for and can be delivered no more. */
  owed: z.enum(FAULTS).nullable(),
  ...refundShape,
  /** The pass that it sold; null: none. */
  pass_id: z.string().nullable(),
};

export const chargeView = z.object(
  inOrder({ ...shownShape, ...standing }, ['id', ...SHOWN_OF_PROGRESS, ...FIRST_SHOWN]),
);
export type ChargeView = ShownValues & { [K in keyof typeof standing]: z.infer<(typeof standing)[K]> };

export const chargeList = z.object({ data: z.array(chargeView), next_cursor: z.string().nullable() });

/** Events of the stream of charges, each with its data. */
export const chargeEvents = { charge: chargeView, skipped: z.object({ count: z.int() }), reset: z.object({}) };

export const chargeHistory = z.object({
  /** Oldest first. */
  data: z
    .array(
      z.object({
        at: time,
        state: z.enum(CHARGE_STATES),
        event: z.string(),
        by: z.string().nullable(),
        detail: z.string().nullable(),
      }),
    )
    .max(MAX_LINES),
});

export const summaryBody = z.object({
  /** Whole hours. */
  from: time,
  to: time,
  bucket: z.enum(BUCKETS),
  data: z.array(
    z.object({
      start: time,
      /** Route of the sums; null if they are grouped by network. */
      route_id: z.string().nullable(),
      currency: z.string(),
      network: z.string(),
      asset: z.string(),
      asset_decimals: z.int(),
      charges: z.int(),
      amount: z.string(),
      amount_atomic: z.string(),
      /** Money that was given back in this time, whenever it was taken; revenue is the amount, and never goes down. */
      refunded: z.string(),
      refunded_atomic: z.string(),
    }),
  ),
});

export const claimBody = z.object({
  ...claimWire.shape,
  owner,
  lease_ms: leaseMs.min(1),
  max_unsettled_per_payer: z.int().min(1).max(10_000),
  change_id: changeId.optional(),
});

export const advanceBody = z.object({ event: eventWire, owner, change_id: changeId.optional() });

export const renewalsBody = renewalsWire;

/** Query for claims by one of: a charge id, a payment, or `due=true` for charges without an owner. */
export const claimsQuery = z.object({
  id: chargeId.optional(),
  network: claimShape.payment.shape.network.optional(),
  asset: claimShape.payment.shape.asset.optional(),
  payer: claimShape.payment.shape.payer.optional(),
  unique: claimShape.payment.shape.unique.optional(),
  due: z.literal('true', 'true, or left out').optional(),
  limit: z
    .string()
    .regex(/^([1-9]|1\d|20)$/, 'an integer from 1 to 20')
    .transform(Number)
    .default(20),
});

documented.add(chargeView, { id: 'Charge', description: 'One price taken once.' });
documented.add(chargeList, { id: 'ChargeList' });
documented.add(chargeHistory, { id: 'ChargeHistory', description: 'What happened to a charge.' });
documented.add(summaryBody, {
  id: 'Summary',
  description: 'Charges that were settled, with whole hours as the smallest step.',
});
documented.add(refundBody, { id: 'RefundRequest' });
documented.add(claimBody, { id: 'LedgerClaimRequest' });
documented.add(advanceBody, { id: 'LedgerChangeRequest' });
documented.add(chargeWire, {
  id: 'LedgerClaim',
  description: 'A charge with everything that a restart needs. Secret.',
});
documented.add(eventWire, { id: 'LedgerChange' });
documented.add(claimedWire, { id: 'LedgerClaimOutcome' });
documented.add(advancedWire, { id: 'LedgerChangeOutcome' });
documented.add(renewalsWire, { id: 'LedgerRenewalRequest' });
documented.add(renewedWire, { id: 'LedgerRenewals' });
documented.add(chargesWire, { id: 'LedgerClaims' });

export const whyParams = z.object({ id: z.string().regex(/^[\x21-\x7e\u2026]{1,256}$/) });

/** Schema of what a 402's id says; all null but the first if no secret that is known here signed it. */
const quote = z.object({
  signed_here: z.boolean(),
  route_id: z.string().nullable(),
  route_method: z.string().nullable(),
  route_pattern: z.string().nullable(),
  method: z.string().nullable(),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  issued_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  expired: z.boolean().nullable(),
});

export const whyBody = z.object({
  id: z.string(),
  /** Newest first. */
  charges: z.array(chargeView),
  /** Facts that the id of a 402 says. */
  quote: quote.nullable(),
  /** Refusals with it among the last 10,000 of this process, newest first. */
  refusals: z.array(
    z.object({
      at: z.string(),
      request_id: z.string(),
      method: z.string(),
      path: z.string(),
      status: z.int(),
      outcome: z.string(),
      reason: z.string().nullable(),
      route_id: z.string().nullable(),
      route_pattern: z.string().nullable(),
      charge_id: z.string().nullable(),
    }),
  ),
  /** The proxies are other processes: each is asked by `tollgate why` beside it. */
  refusals_elsewhere: z.boolean(),
  /** The ledger is a registry's, which is asked for a request id or a transaction. */
  ledger_elsewhere: z.boolean(),
});
documented.add(whyBody, { id: 'Why', description: 'What became of a charge, a request or a transaction.' });
export type WhyReport = z.infer<typeof whyBody>;
