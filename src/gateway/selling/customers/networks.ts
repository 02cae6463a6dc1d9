// Recognises customers by the network that they come from: the address of the client as limits per client see it, so that
// X-Forwarded-For counts only if a trusted proxy wrote it.
import { clientAddress } from '../../client-group.ts';
import { createTrust } from '../../trust.ts';
import { ABSENT, type Recognise } from './recognition.ts';

export function recogniseNetworks(
  cidrs: readonly string[],
  entry: string,
  trusts: (address: string | undefined) => boolean,
): Recognise {
  const isWithin = createTrust(cidrs);
  const known = { kind: 'known', name: entry } as const;
  return ({ req }) => (isWithin(clientAddress(req, trusts)) ? known : ABSENT);
}
