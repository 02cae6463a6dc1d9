// The entry of `accepts` for one way to pay, as clients read it in a 402 and facilitators in a payment.
// Sources: x402 v1 and v2, PaymentRequirements.
import type { QuoteFacts, RailOffer, Requirement } from '../../../domain/payment/way.ts';
import type { ChainWords } from './chain-words.ts';

export const MIME_TYPE = 'application/json';
/** v1 facilitators insist on a URL. */
const UNKNOWN_RESOURCE = 'https://resource.invalid/';

export function createRequirement(chain: ChainWords): Requirement {
  return (offer, quote, version) =>
    version === 1
      ? requirementV1(offer, chain)
      : requirementV2(offer, { ...chain.extra(offer.way, undefined), ...quoteExtra(quote) });
}

/** Members of `extra` that a quote adds to an entry of version 2. `paymentFlow` is the only word that tells a client of the unusual flow. */
export function quoteExtra({ chargeId, upfront }: QuoteFacts): object {
  return { external_ref: chargeId, ...(upfront ? { paymentFlow: 'upfront' } : {}) };
}

export function requirementV2({ way, amount }: RailOffer, extra: object): object {
  const { scheme, network, asset, payTo, timeoutSeconds: maxTimeoutSeconds } = way;
  return { scheme, network, amount: amount.toString(), asset, payTo, maxTimeoutSeconds, extra };
}

/** Writes an entry of version 1; undefined: it has no name for this network. */
export function requirementV1(
  { way, amount, description, resource }: RailOffer,
  chain: ChainWords,
): object | undefined {
  const { scheme, asset, payTo, timeoutSeconds: maxTimeoutSeconds } = way;
  const network = chain.v1NameOf(way.network);
  if (network === undefined) return undefined;
  return {
    ...{ scheme, network, maxAmountRequired: amount.toString(), description, mimeType: MIME_TYPE, payTo },
    ...{ maxTimeoutSeconds, asset, extra: chain.extra(way, undefined), resource: resource ?? UNKNOWN_RESOURCE },
  };
}
