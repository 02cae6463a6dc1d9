// Writes the answer of `tollgate why` in sentences: charges first, then what the id of a 402 says, then refusals, newest
// first.
import { PROBLEMS } from '../domain/problem.ts';
import type { WhyReport } from '../registry/charge-schemas.ts';

type Charge = WhyReport['charges'][number];

/** What a 402 says beyond that something is to be paid. */
const REASONS: Readonly<Record<string, string>> = {
  payment_required: 'no payment was presented',
  payment_refused: 'a facilitator refused the payment',
  payment_already_used: 'the payment was used before',
  quote_mismatch: 'the payment was made for another route or method',
  quote_already_used: 'another payment was made for this quote',
  settlement_refused: 'the facilitator refused to settle the payment',
  x402_version_unsupported: 'the payment is of an x402 version that is not taken here',
  client_gone: 'the client left',
};

export function tellWhy({ charges, quote, refusals }: WhyReport, now: number): string[] {
  const lines = charges.flatMap((charge) => tellCharge(charge, now));
  if (quote !== null) lines.push(...tellQuote(quote, charges.length > 0, now));
  for (const { at, request_id, method, path, status, reason, route_pattern, charge_id } of refusals) {
    lines.push(
      `${status} at ${at} (${ago(Date.parse(at), now)}): ${method} ${path}`,
      `  because: ${reason === null ? 'not known' : because(reason)}`,
      ...(route_pattern === null ? [] : [`  route: ${route_pattern}`]),
      `  request: ${request_id || 'none'}`,
      ...(charge_id === null ? [] : [`  offered: ${charge_id}`]),
    );
  }
  return lines;
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
  const facts: [string, string | null][] = [
    ['request', `${method} ${path}${charge.request_id === null ? '' : `, request ${charge.request_id}`}`],
    ['route', `${route_method} ${route_pattern}`],
    ['because', charge.reason],
    ['transaction', charge.transaction],
    ['claimed', when(charge.created_at, now)],
    ['settled', when(charge.settled_at, now)],
    ['delivered', when(charge.delivered_at, now)],
    ['refunded', when(charge.refunded_at, now)],
    ['looked at again', when(charge.next_look_at, now)],
  ];
  return [
    `Charge ${id}: ${status}, ${amount} ${currency} from ${payer}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name}: ${value}`])),
    `  ${MEANINGS[status]}`,
  ];
}

const MEANINGS: Readonly<Record<Charge['status'], string>> = {
  claimed: 'A request works on it; nothing has moved.',
  settling: 'Whether the money moved is not known yet; the chain is looked at, and the payer may ask again.',
  settled: 'The money moved; the answer has not been delivered yet and may be fetched with the same payment.',
  delivered: 'The money moved and the answer was delivered.',
  released: 'Nothing was charged: the payment may be presented again.',
  failed: 'Nothing was charged, and this payment can move no more.',
};

function because(reason: string): string {
  const known = new Map<string, { readonly title: string }>(Object.entries(PROBLEMS)).get(reason)?.title;
  const said = REASONS[reason] ?? known;
  return said === undefined ? reason : `${said} (${reason})`;
}

function when(at: string | null, now: number): string | null {
  return at === null ? null : `${at} (${ago(Date.parse(at), now)})`;
}

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

function ago(at: number, now: number): string {
  const distance = Math.abs(now - at);
  const [name, ms] = UNITS.find(([, each]) => distance >= each) ?? ['second', 1000];
  const count = Math.floor(distance / ms);
  if (count === 0) return 'now';
  const told = `${count} ${name}${count === 1 ? '' : 's'}`;
  return at <= now ? `${told} ago` : `in ${told}`;
}
