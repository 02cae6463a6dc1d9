// The port of a chain towards x402: the parts of requirements, and of what facilitators are told and answer, that only
// the chain's rail understands.
import type { RailOffer, Way } from '../../../domain/payment/way.ts';

/** What only the rail of a network knows of the words that a facilitator is told and says. */
export type ChainWords = {
  /** What was signed, and nothing else of a credential. */
  readonly payload: (presented: { readonly payload: unknown }, offer: RailOffer) => object;
  /** What is said of the asset beside its address, and of the `payload` that pays; undefined: nothing is paid yet. */
  readonly extra: (way: Way, payload: unknown) => object;
  /** The one spelling of a transaction; undefined: it is none. */
  readonly readTransaction: (text: string) => string | undefined;
  /** Of a name in either version of x402. */
  readonly findCaip2: (network: string) => string | undefined;
  /** Whether `tollgate networks` lists it: only then may its name be repeated to a client. */
  readonly isKnown: (network: string) => boolean;
  /** Of a CAIP-2 name. */
  readonly v1NameOf: (network: string) => string | undefined;
  readonly isSameAddress: (a: string, b: string) => boolean;
};
