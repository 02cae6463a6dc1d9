// Settings of the desk as the registry uses them, made by compose from the configuration. A reload may replace them.

import type { SignInWay } from '../store/desk-ports.ts';

export type DeskSettings = {
  /** Origin under which people open the desk; undefined: an address of this machine or its private network. */
  readonly publicUrl: string | undefined;
  /** Never empty. */
  readonly signIn: readonly SignInWay[];
  readonly session: { readonly idleMs: number; readonly maxMs: number };
  readonly oidc: OidcSettings | undefined;
  /** Some way of paying takes test money. */
  readonly testnet: boolean;
};

export type OidcSettings = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
  readonly claim: string;
  readonly admins: readonly string[];
  readonly viewers: readonly string[];
};
