// The peers that may ask: by their address, and by a secret if there is one. Nothing that a request says of somebody else is
// believed before this was looked at.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { headerValues } from '../caller.ts';

export type PeerRules = {
  readonly trusts: (address: string | undefined) => boolean;
  readonly secret: string | undefined;
  /** Lower-cased name of the header that carries the secret. */
  readonly secretHeader: string;
};

/** Makes the check whether the sender of a request may ask. */
export function createPeerCheck({ trusts, secret, secretHeader }: PeerRules): (req: IncomingMessage) => boolean {
  const isSecret = secret === undefined ? undefined : createSecretCheck(secret);
  return (req) => {
    if (!trusts(req.socket.remoteAddress)) return false;
    if (isSecret === undefined) return true;
    const given = headerValues(req.rawHeaders, secretHeader);
    return given.length === 1 && isSecret(given[0] ?? '');
  };
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
