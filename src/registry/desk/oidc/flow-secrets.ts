// The secrets of one sign-in through an OpenID provider, all derived from its cookie: a state belongs to one browser, and
// the store keeps nothing by which somebody else's sign-in could be finished.
import { createHmac } from 'node:crypto';

export type FlowSecrets = {
  /** Goes to the provider and comes back with its answer. */
  readonly state: string;
  /** Stands in the ID token. */
  readonly nonce: string;
  /** Proves to the provider that who takes the code is who asked for it (PKCE, RFC 7636). */
  readonly verifier: string;
};

/** `cookie` has 256 random bits. */
export function flowSecretsOf(cookie: string): FlowSecrets {
  const derive = (name: string): string => createHmac('sha256', cookie).update(name).digest('base64url');
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
}
