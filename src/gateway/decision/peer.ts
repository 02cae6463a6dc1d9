// The peers that may ask: by their address, and by a secret if there is one. Nothing that a request says of somebody else is
// believed before this was looked at.
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export type PeerRules = {
  readonly trusts: (address: string | undefined) => boolean;
  readonly secret: string | undefined;
  /** Lower-cased name of the header that carries the secret. */
  readonly secretHeader: string;
};

/** Makes the check whether the sender of a request may ask. */
export function createPeerCheck({ trusts, secret, secretHeader }: PeerRules): (req: IncomingMessage) => boolean {
  const wanted = secret === undefined ? undefined : digestOf(secret);
  return (req) => {
    if (!trusts(req.socket.remoteAddress)) return false;
    if (wanted === undefined) return true;
    const given = valuesOf(req.rawHeaders, secretHeader);
    return given.length === 1 && timingSafeEqual(digestOf(given[0] ?? ''), wanted);
  };
}

/** Digests have one length, so that comparing takes one time. */
function digestOf(text: string): Buffer {
  return hash('sha256', Buffer.from(text, 'latin1'), 'buffer');
}

function valuesOf(raw: readonly string[], wanted: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) if (raw[i]?.toLowerCase() === wanted) values.push(raw[i + 1] ?? '');
  return values;
}
