// The ledger for sidecars (scope `ledger`): domain/ledger over HTTP. Expected outcomes are 200 with a `kind`, so that a
// sidecar never takes an error of something in between for one. If the store does not answer it is 503: then the
// sidecar knows nothing. A call that is repeated with its `change_id` is the same call.
import type { z } from 'zod';
import { CHARGE_ID, type PaymentKey, type Spelling } from '../../domain/payment/charge.ts';
import { chargeToWire, claimFromWire } from '../../domain/payment/charge-wire.ts';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import { ClaimFault, LedgerUnavailable, type Ledger } from '../../domain/payment/ledger.ts';
import { eventFromWire } from '../../domain/payment/ledger-wire.ts';
import { problem } from '../../domain/problem.ts';
import type { advanceBody, chargeParams, claimBody, claimsQuery, renewalsBody } from './charge-schemas.ts';
import { jsonResponse, fail, invalidBody, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';

/** A claim may carry a credential of 16 KiB, a change a kept answer of 64 KiB as base64. */
export const LEDGER_BODY_BYTES = 256 * 1024;
const RETRY_SECONDS = 2;

export function claimPayment(
  { body }: EndpointCall<unknown, unknown, z.output<typeof claimBody>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { owner, lease_ms: leaseMs, max_unsettled_per_payer: maxUnsettledPerPayer, change_id: changeId } = body;
  return withLedger(services, async (ledger) => {
    try {
      // The digest of a credential is not checked here: only its rail knows what it is made of, and only the sidecar
      // has the rail.
      const claimed = await ledger.claim(claimFromWire(body), { owner, leaseMs, maxUnsettledPerPayer, changeId });
      return answer(services, 'charge' in claimed ? { ...claimed, charge: chargeToWire(claimed.charge) } : claimed);
    } catch (error) {
      if (!(error instanceof ClaimFault)) throw error;
      return fail(invalidBody([{ pointer: '', detail: `The claim cannot be written: ${error.message}.` }]));
    }
  });
}

export function advanceClaim(
  { params, body }: EndpointCall<z.output<typeof chargeParams>, unknown, z.output<typeof advanceBody>>,
  services: Services,
): Promise<EndpointOutcome> {
  const actor = { owner: body.owner, changeId: body.change_id };
  return withLedger(services, async (ledger) => {
    const advanced = await ledger.advance(params.id, eventFromWire(body.event), actor);
    return answer(services, { ...advanced, charge: advanced.charge ? chargeToWire(advanced.charge) : null });
  });
}

/** Renews the leases of many charges and uses at once: they are being worked on. Answers those that still are the caller's. */
export function renewLeases(
  { body: { owner, ids, lease_ms: leaseMs } }: EndpointCall<unknown, unknown, z.output<typeof renewalsBody>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const charges = ids.filter((id) => CHARGE_ID.test(id));
    const uses = ids.filter((id) => !CHARGE_ID.test(id));
    const renewed = await Promise.all([
      charges.length === 0 ? [] : ledger.renew(owner, charges, leaseMs),
      uses.length === 0 ? [] : services.passes?.renew(owner, uses, leaseMs),
    ]);
    return answer(services, { ids: renewed.flatMap((each) => each ?? []) });
  });
}

/** Finds at most one charge by its id or its payment; or those without an owner. */
export function findClaims(
  { query }: EndpointCall<unknown, z.output<typeof claimsQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const wanted = readWanted(query, ledger.spelling);
    if (wanted === undefined) {
      const detail = 'The query names one of: id; network, asset, payer and unique; due=true.';
      return fail(problem('malformed', detail));
    }
    const found =
      wanted.kind === 'due'
        ? await ledger.due(query.limit)
        : [await (wanted.kind === 'id' ? ledger.findByChargeId(wanted.id) : ledger.find(wanted.payment))];
    return answer(services, { data: found.flatMap((charge) => (charge ? [chargeToWire(charge)] : [])) });
  });
}

/** Answers with the date of the ledger's clock: a sidecar estimates it by that. */
function answer({ clock }: Services, body: object): EndpointOutcome {
  return jsonResponse(200, body, ['Date', new Date(clock.now()).toUTCString()]);
}

/** Runs `use` with the ledger; 503 if there is no ledger or it cannot say. */
export async function withLedger(
  { ledger }: Services,
  use: (ledger: Ledger & ChargeReports) => Promise<EndpointOutcome>,
): Promise<EndpointOutcome> {
  try {
    if (ledger !== undefined) return await use(ledger);
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
  }
  return fail(
    problem('ledger_unavailable', 'The ledger of this registry does not answer; try again later.', {
      retryAfter: RETRY_SECONDS,
    }),
  );
}

type ChargeSelector =
  | { readonly kind: 'due' }
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'payment'; readonly payment: PaymentKey };

function readWanted(
  { id, network, asset, payer, unique, due }: z.output<typeof claimsQuery>,
  spelling: Spelling,
): ChargeSelector | undefined {
  const parts = [network, asset, payer, unique];
  const given = parts.filter((part) => part !== undefined);
  if (due !== undefined) return id === undefined && given.length === 0 ? { kind: 'due' } : undefined;
  if (id !== undefined) return given.length === 0 ? { kind: 'id', id } : undefined;
  if (network === undefined || asset === undefined || payer === undefined || unique === undefined) return undefined;
  const payment = spelling.payment({ network, asset, payer, unique });
  return payment && { kind: 'payment', payment };
}
