// The port of a chain towards x402: the parts of requirements, and of what facilitators are told and answer, that only
// the chain's rail understands.
import type { RailOffer, Way } from '../../../domain/payment/way.ts';

/** Words of a chain in what a facilitator is told and says: only the rail of a network knows them. */
export type ChainWords = {
  /** Keeps of a credential what was signed, and nothing else. */
  readonly payload: (presented: { readonly payload: unknown }, offer: RailOffer) => object;
  /** Members about the asset, beside its address, and about the `payload` that pays; undefined: nothing is paid yet. */
  readonly extra: (way: Way, payload: unknown) => object;
  /** Spells a transaction in its one way; undefined: it is none. */
  readonly readTransaction: (text: string) => string | undefined;
  /** Finds the CAIP-2 name for a name in either version of x402. */
  readonly findCaip2: (network: string) => string | undefined;
  /** Whether `tollgate networks` lists it: only then may its name be repeated to a client. */
  readonly isKnown: (network: string) => boolean;
  /** Finds the version 1 name for a CAIP-2 name. */
  readonly v1NameOf: (network: string) => string | undefined;
  readonly isSameAddress: (a: string, b: string) => boolean;
};
