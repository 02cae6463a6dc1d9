// The messages to a facilitator and its answers, for x402 v1 and v2. A facilitator is told our own terms, never those
// that a client repeats, and only the signed part of the credential. Its answer is believed only if it has exactly the
// right form, and what it repeats of the payment is what it was asked about. Source: x402 facilitator API, /verify,
// /settle and /supported.
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { RailOffer, Way } from '../../../domain/payment/way.ts';
import { shortDescription } from '../../../domain/payment/offer.ts';
import { decodeBase64 } from './client-wire.ts';
import { MIME_TYPE, requirementV1, requirementV2 } from './accepts-entry.ts';
import type { PresentedPayment, Refusal } from '../rail.ts';
import type { ChainWords } from './chain-words.ts';
import { adviceFor, classifyWord, isOwnFailure, mayHideSuccess, publicReason } from './reasons.ts';
import type { ReplyHeaders } from '../service-call.ts';
import { isNotTaken } from './not-taken.ts';

/** Writes the body of /verify and of /settle: JSON. */
type WriteRequest = (presented: Pick<PresentedPayment, 'version' | 'payload'>, offer: RailOffer) => string;

export function createWriteRequest(chain: ChainWords): WriteRequest {
  // Payments of one price in one way share their requirements.
  const written = new WeakMap<
    Way,
    { readonly amount: bigint; readonly extra: object; readonly requirements: string }
  >();
  const requirementsOf = (offer: RailOffer, payload: unknown): string => {
    const { way, amount } = offer;
    const extra = chain.extra(way, payload);
    const known = written.get(way);
    if (known?.amount === amount && known.extra === extra) return known.requirements;
    const requirements = JSON.stringify(requirementV2(offer, extra));
    written.set(way, { amount, extra, requirements });
    return requirements;
  };

  return (presented, offer) => {
    const { way, listing } = offer;
    const payload = chain.payload(presented, offer);
    if (presented.version === 1) {
      const paymentPayload = { x402Version: 1, scheme: way.scheme, network: chain.v1NameOf(way.network), payload };
      return JSON.stringify({ x402Version: 1, paymentPayload, paymentRequirements: requirementV1(offer, chain) });
    }
    const requirements = requirementsOf(offer, presented.payload);
    const extensions = listing === undefined ? '' : `,"extensions":{"bazaar":${listing.bazaar[0]}}`;
    return `{"x402Version":2,"paymentPayload":{"x402Version":2,${resourceOf(offer)}"accepted":${requirements},"payload":${JSON.stringify(payload)}${extensions}},"paymentRequirements":${requirements}}`;
  };
}

/** Resource that is paid for, as a member; empty if it is not known any more. */
function resourceOf({ resource: url, description, listing }: RailOffer): string {
  if (url === undefined) return '';
  const resource = { url, description: shortDescription(description), mimeType: MIME_TYPE, ...listing?.service };
  return `"resource":${JSON.stringify(resource)},`;
}

type VerifyAnswer =
  | { readonly kind: 'valid' }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The facilitator takes no such payment: another one may; if none does, it cannot be paid so. */
  | { readonly kind: 'declined'; readonly refusal: Refusal }
  /** The facilitator says no by a word that is not known here: another one may judge. */
  | { readonly kind: 'unlisted'; readonly reason: string }
  | { readonly kind: 'nonsense'; readonly why: string };

type SettleAnswer =
  | { readonly kind: 'settled'; readonly transaction: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The facilitator said so before anything could move. */
  | { readonly kind: 'not_carried_out'; readonly why: string; readonly declined?: Refusal }
  | { readonly kind: 'unknown'; readonly reason: string }
  | { readonly kind: 'nonsense'; readonly why: string };

const word = z.string().max(512).nullish();
const verifySchema = z.object({ isValid: z.boolean(), invalidReason: word, payer: word });
const settleSchema = z.object({
  success: z.boolean(),
  errorReason: word,
  transaction: word,
  network: word,
  payer: word,
  amount: word,
  asset: word,
  payTo: word,
});
/** Whether `body` has the form of a verdict, or of a settlement, or half of it: then it may be one. */
export function speaksOfPayment(operation: 'verify' | 'settle', body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  if (operation === 'verify') return Object.hasOwn(body, 'isValid');
  return Object.hasOwn(body, 'success') || Boolean(Reflect.get(body, 'transaction'));
}

/** Reads an answer of /verify. A body in the form of a verdict is read by its words under any status. */
export function readVerifyAnswer(
  status: number,
  body: unknown,
  { key }: PresentedPayment,
  chain: ChainWords,
): VerifyAnswer {
  const { success, data } = verifySchema.safeParse(body);
  if (!success) return nonsense(`status ${status} without the form of a verification`);
  if (!data.isValid) {
    const reason = publicReason(data.invalidReason, 'payment_invalid');
    const means = classifyWord(data.invalidReason ?? '');
    const declined = readDeclined(data.invalidReason ?? '', reason);
    if (declined !== undefined) return { kind: 'declined', refusal: declined };
    if (means === 'cannot_judge') return nonsense(`it cannot judge: ${reason}`);
    return { kind: means === 'payment' ? 'refused' : 'unlisted', reason };
  }
  if (data.invalidReason) return nonsense('valid, with a reason why not');
  if (data.payer && !chain.isSameAddress(data.payer, key.payer)) return nonsense('valid, for another payer');
  return { kind: 'valid' };
}

/** Reads an answer of /settle. A body in the form of a settlement is read by its words under any status. */
export function readSettleAnswer(
  status: number,
  body: unknown,
  presented: PresentedPayment,
  { way, amount }: RailOffer,
  chain: ChainWords,
): SettleAnswer {
  const { success, data } = settleSchema.safeParse(body);
  if (!success) {
    const why = `status ${status} without the form of a settlement`;
    return isNotTaken(status) && !speaksOfPayment('settle', body) ? { kind: 'not_carried_out', why } : nonsense(why);
  }
  const transaction = data.transaction ? chain.readTransaction(data.transaction) : undefined;
  if (!data.success) return readRefusal(data.errorReason, data.transaction);
  if (data.errorReason) return nonsense('settled, with a reason why not');
  if (transaction === undefined) return nonsense('settled, without a transaction');
  if (data.network && chain.findCaip2(data.network) !== way.network) return nonsense('settled, on another network');
  if (data.payer && !chain.isSameAddress(data.payer, presented.key.payer))
    return nonsense('settled, for another payer');
  if (data.amount && data.amount !== amount.toString()) return nonsense('settled, for another amount');
  if (data.asset && !chain.isSameAddress(data.asset, presented.key.asset)) return nonsense('settled, in another asset');
  if (data.payTo && !chain.isSameAddress(data.payTo, way.payTo)) return nonsense('settled, to another');
  return { kind: 'settled', transaction };
}

/** A transaction that was sent may yet succeed, or have succeeded, whatever the word says. */
function readRefusal(word: string | null | undefined, transaction: string | null | undefined): SettleAnswer {
  if (!word) return nonsense('refused, without a reason');
  const reason = publicReason(word, 'settlement_refused');
  if (transaction || mayHideSuccess(word)) return { kind: 'unknown', reason };
  const means = classifyWord(word);
  switch (means) {
    case 'payment':
      return { kind: 'refused', reason };
    case 'cannot_judge': {
      if (isOwnFailure(word)) return { kind: 'unknown', reason };
      const declined = readDeclined(word, reason);
      return { kind: 'not_carried_out', why: `it cannot judge: ${reason}`, ...(declined && { declined }) };
    }
    case 'unlisted':
      return { kind: 'unknown', reason };
    default:
      return means satisfies never;
  }
}

/** Reads a word that declines a payment; undefined: the facilitator does not say that it takes no such payment. */
function readDeclined(word: string, reason: string): Refusal | undefined {
  const expected = adviceFor(word);
  return expected === undefined ? undefined : { reason, expected };
}

const MAX_EXTENSION_RESPONSES = 4096;

/** Reads what a facilitator says of extensions beside its answer, for the log alone; undefined: nothing. */
export function readExtensionResponses(headers: ReplyHeaders | undefined): string | undefined {
  const value = headers?.get('extension-responses') ?? '';
  if (value === '') return undefined;
  if (value.length > MAX_EXTENSION_RESPONSES) return value.slice(0, MAX_EXTENSION_RESPONSES);
  const bytes = decodeBase64(value);
  return bytes === undefined || !isUtf8(bytes) ? value : bytes.toString();
}

function nonsense(why: string): { readonly kind: 'nonsense'; readonly why: string } {
  return { kind: 'nonsense', why };
}
