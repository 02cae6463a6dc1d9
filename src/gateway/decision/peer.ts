// The peers that may ask: by their address, and by a secret if there is one. Nothing that a request says of somebody else is
// believed before this was looked at.
import { timingSafeEqual } from 'node:crypto';
import type { AskedValue } from './asked-headers.ts';

export type PeerRules = {
  readonly trusts: (address: string | undefined) => boolean;
  readonly secret: string | undefined;
  /** Lower-cased name of the header that carries the secret. */
  readonly secretHeader: string;
};

/** Whether the sender of a request may ask: the address of its connection, and the secret that it sent. */
export type PeerCheck = (address: string | undefined, given: AskedValue) => boolean;

export function createPeerCheck({ trusts, secret }: Pick<PeerRules, 'trusts' | 'secret'>): PeerCheck {
  const isSecret = secret === undefined ? undefined : createSecretCheck(secret);
  return (address, given) =>
    trusts(address) && (isSecret === undefined || (typeof given === 'string' && isSecret(given)));
}

/** Room in which secrets are compared, at least; longer than any that people make. */
const LEAST_BYTES = 128;

/** Makes a comparison with `secret` whose time tells nothing of it: every text fills the same room. */
function createSecretCheck(secret: string): (given: string) => boolean {
  const size = Math.max(LEAST_BYTES, 2 * Buffer.byteLength(secret));
  const wanted = Buffer.alloc(size);
  wanted.write(secret);
  const room = Buffer.alloc(size);
  return (given) => {
    room.fill(0);
    // A header's characters are its bytes, and none of them is 0. What does not fit cannot be the secret, which leaves room.
    room.write(given, 'latin1');
    return timingSafeEqual(room, wanted);
  };
}
