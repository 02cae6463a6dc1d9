// Customers who need not pay, as a configuration names them: by a file of keys, by tokens of an issuer, by their networks, or
// by the sign-in of the upstream itself. Types only.
import type { WindowLength } from './window.ts';

/** Requests of one customer in a window that cost nothing. */
export type CustomerQuota = { readonly requests: number; readonly window: WindowLength };

export type CustomerEntry = {
  readonly id: string;
  /** Lower-cased name of the header that carries the credential; empty for networks. */
  readonly header: string;
  readonly proof: CustomerProof;
  /** Undefined: as many requests as they like. */
  readonly quota: CustomerQuota | undefined;
};

export type CustomerProof =
  /** A file of SHA-256 digests of keys, each maybe with a name. */
  | { readonly kind: 'keys'; readonly file: string }
  | TokenProof
  | { readonly kind: 'networks'; readonly cidrs: readonly string[] }
  /** The upstream decides: it answers one of these statuses to whom it does not know. */
  | { readonly kind: 'ask'; readonly statuses: readonly number[] };

/** Tokens (JWT) of one issuer for one audience. */
export type TokenProof = {
  readonly kind: 'jwt';
  readonly issuer: string;
  readonly audience: string;
  readonly key:
    | { readonly kind: 'secret'; readonly secret: string }
    /** PEM. */
    | { readonly kind: 'public_key'; readonly pem: string }
    | { readonly kind: 'jwks'; readonly url: string };
  /** Claims, dotted for nested ones, each with the values of which it must have one. */
  readonly require: Readonly<Record<string, readonly string[]>>;
  /** Claim that names the customer; undefined: the entry's id does. */
  readonly name: string | undefined;
};

export type CustomerEntries = ReadonlyMap<string, CustomerEntry>;
