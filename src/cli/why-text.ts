// Writes the answer of `tollgate why` in sentences: charges first, then what the id of a 402 says, then refusals, newest
// first.
import type { DemandReason } from '../domain/decide.ts';
import { PROBLEMS } from '../domain/problem.ts';
import { shortId } from '../domain/payment/quote.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import { meaningOf } from './charge-meaning.ts';
import { ago, when } from './time-text.ts';

type Charge = WhyReport['charges'][number];

/** Meanings of the reasons in a 402, beyond that something is to be paid. */
const REASONS: Readonly<Record<DemandReason, string> & Record<string, string>> = {
  payment_required: 'no payment was presented',
  payment_refused: 'a facilitator refused the payment',
  payment_already_used: 'the payment was used before',
  quote_mismatch: 'the payment was made for another route, method or price input',
  quote_already_used: 'another payment was made for this quote',
  settlement_refused: 'the facilitator refused to settle the payment',
  x402_version_unsupported: 'the payment is of an x402 version that is not taken here',
  client_gone: 'the client left',
  customer_unknown: 'the credential that was shown is of no customer who need not pay, and no payment was presented',
  customer_expired: 'the token of the customer had run out, and no payment was presented',
  customer_quota_used_up: 'the customer had used up the requests that cost nothing, and no payment was presented',
  free_used_up: 'the free requests of this client were used up, and no payment was presented',
  pass_unknown:
    'the pass that was shown is not one of ours, or the wallet that signed in bought none; nothing was paid',
  pass_expired: 'the pass that was shown had come to its end, and no payment was presented',
  pass_used_up: 'nothing was left of the pass that was shown, or too little for this request; no payment was presented',
  pass_scope: 'the pass that was shown is good for another plan or route, and no payment was presented',
  pass_revoked: 'the pass that was shown was revoked, as one is whose money was given back; no payment was presented',
  wallet_unsupported:
    'the wallet that signed in is a contract or of a chain whose signatures are not read here: its owner shows the pass itself',
  pass_malformed: 'the request showed two passes, or one that was never given here',
  pass_in_use:
    'what was left of the pass was held by requests under way: the same request again has it, or finds it used up',
  idempotency_conflict: 'the Idempotency-Key of this use stands for another request, or was sent four times already',
  too_many_passes: 'the payer has four passes of this plan that are good, or is buying them',
  plan_unknown:
    'the route names a plan that the configuration of this proxy does not have; nothing passes until it does',
  price_ambiguous:
    'two programs could read the price of this request in two ways, such as by a parameter that stands twice',
  length_required: 'the price depends on the length of the body, and the request had no Content-Length',
  price_unpayable: 'nothing that is sold for this request could pay its price: no token, receiver or pass holds it',
  price_unavailable: 'the price service of the plan said no price within its bounds; the log says why',
  plan_unanswerable: 'the plan of the route depends on what the API answers, which a decision listener never sees',
  customers_unavailable: 'the keys of an issuer of tokens could not be read yet, so a customer could not be told',
};

export function tellWhy({ charges, quote, refusals }: WhyReport, now: number): string[] {
  const lines = charges.flatMap((charge) => tellCharge(charge, now));
  const offered = refusals.find(({ charge_id }) => charge_id !== null)?.charge_id ?? undefined;
  const isPresented = offered === undefined ? charges.length > 0 : charges.some(({ id }) => id === offered);
  if (quote !== null) lines.push(...tellQuote(quote, isPresented, now));
  for (const { at, request_id, method, path, status, reason, route_pattern, charge_id } of refusals) {
    lines.push(
      `${status} at ${at} (${ago(Date.parse(at), now)}): ${method} ${path}`,
      `  because: ${reason === null ? 'not known' : because(reason)}`,
      ...(route_pattern === null ? [] : [`  route: ${route_pattern}`]),
      `  request: ${request_id || 'none'}`,
      ...(charge_id === null ? [] : [`  offered: ${charge_id}`, `  ${tellOffered(charge_id, charges)}`]),
    );
  }
  return lines;
}

/** Tells what became of the quote that a 402 offered. */
function tellOffered(offered: string, charges: readonly Charge[]): string {
  const charge = charges.find(({ id }) => id === offered);
  if (charge === undefined) return 'No payment was claimed for the quote of this request.';
  const { status } = charge;
  const isPaid = status === 'settled' || status === 'delivered';
  const became = isPaid
    ? 'The quote of this request was paid'
    : 'A payment was presented for the quote of this request';
  return `${became}: charge ${shortId(offered)}, ${status}.`;
}

function tellQuote(quote: NonNullable<WhyReport['quote']>, presented: boolean, now: number): string[] {
  const { signed_here, amount, currency, route_method, route_pattern, route_id, method, issued_at, expires_at } = quote;
  if (!signed_here || expires_at === null)
    return ['The id was not signed with a secret that is known here: it is no quote of this Tollgate, or an old one.'];
  const route =
    route_pattern === null ? `a route that is gone (${route_id ?? ''})` : `${route_method ?? ''} ${route_pattern}`;
  return [
    `The id of a 402: ${amount ?? ''} ${currency ?? ''} for ${method ?? 'a request'} under ${route}, asked at about ${issued_at ?? ''},`,
    `  ${quote.expired === true ? 'expired' : 'good until'} ${expires_at} (${ago(Date.parse(expires_at), now)}); ${presented ? 'a payment was presented for it' : 'no payment was claimed for it'}.`,
  ];
}

function tellCharge(charge: Charge, now: number): string[] {
  const { id, status, amount, currency, payer, method, path, route_method, route_pattern } = charge;
  const told = (at: string | null): string | null => (at === null ? null : when(at, now));
  const facts: [string, string | null][] = [
    ['request', `${method} ${path}${charge.request_id === null ? '' : `, request ${charge.request_id}`}`],
    ['route', `${route_method} ${route_pattern}`],
    ['because', charge.reason],
    ['transaction', charge.transaction],
    ['claimed', told(charge.created_at)],
    ['settled', told(charge.settled_at)],
    ['delivered', told(charge.delivered_at)],
    ['refunded', told(charge.refunded_at)],
    ['looked at again', told(charge.next_look_at)],
  ];
  return [
    `Charge ${id}: ${status}, ${amount} ${currency} from ${payer}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name}: ${value}`])),
    `  ${meaningOf(charge, now)}`,
  ];
}

function because(reason: string): string {
  // A code, and maybe `: ` and what was expected.
  const [code = ''] = reason.split(':', 1);
  const known = new Map<string, { readonly title: string }>(Object.entries(PROBLEMS)).get(code)?.title;
  const said = REASONS[code] ?? known;
  return said === undefined ? reason : `${said} (${reason})`;
}
