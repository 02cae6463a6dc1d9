// A semaphore for each client, so that one client cannot take every place. Only clients that hold a place are
// remembered.
import { clientGroup, type AddressedRequest } from './client-group.ts';

/** Gives a place back; it is called once. */
export type ReleasePlace = () => void;

/** Takes a place for the client of `req`; undefined if that client has none left. */
export type TakePlace = (req: AddressedRequest) => ReleasePlace | undefined;

/** A semaphore of `places` for each client; undefined if `places` is 0, which is no limit. */
export function createClientSemaphores(
  places: number,
  trusts: (address: string | undefined) => boolean,
): TakePlace | undefined {
  if (places === 0) return undefined;
  const taken = new Map<string, number>();
  return (req) => {
    const client = clientGroup(req, trusts);
    const own = taken.get(client) ?? 0;
    if (own >= places) return undefined;
    taken.set(client, own + 1);
    return () => {
      const left = (taken.get(client) ?? 1) - 1;
      if (left === 0) taken.delete(client);
      else taken.set(client, left);
    };
  };
}
