// The result of looking for a customer in a request: each kind of proof is a file beside this one.
import type { PlannedRequest } from '../way-to-pass.ts';

export type Recognition =
  /** The request shows nothing of this kind. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'known'; readonly name: string }
  /** What is shown is as good as nothing. */
  | { readonly kind: 'refused'; readonly because: 'customer_unknown' | 'customer_expired' }
  /** Nobody can say now: a customer must not be asked to pay for that. */
  | { readonly kind: 'unavailable' };

export const ABSENT: Recognition = { kind: 'absent' };
export const UNKNOWN: Recognition = { kind: 'refused', because: 'customer_unknown' };
export const EXPIRED: Recognition = { kind: 'refused', because: 'customer_expired' };

/** Looks for a customer. A promise only if it has to wait. */
export type Recognise = (request: PlannedRequest) => Recognition | Promise<Recognition>;
