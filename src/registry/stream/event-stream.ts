// Holds one open event stream, and says which of many may still listen.
import type { ServerResponse } from 'node:http';
import type { Principal } from '../auth/credentials.ts';

export type EventStream = {
  readonly res: ServerResponse;
  readonly principal: Principal;
  /** Stands for the key of its client: equal for all who hold it. */
  readonly key: string;
  /** State of the stream. `live` once it was sent all that was; before, it waits for its turn or for its reader. */
  state: 'queued' | 'sending' | 'live';
  /** The revision of the last change that it was sent. */
  seen: number;
  /** The log goes on without what it has seen: it is sent a reset. */
  isLost: boolean;
  /** Heartbeats in which its reader took nothing. */
  waits: number;
};

export type AccessCheck = (principal: Principal) => Promise<boolean>;

/** Asks once for each key, however many streams it has; `otherwise` if the store cannot say it. */
export async function askWhoMay(
  streams: Iterable<EventStream>,
  stillAllowed: AccessCheck,
  otherwise: boolean,
): Promise<ReadonlyMap<string, boolean>> {
  const principals = new Map<string, Principal>();
  for (const { key, principal } of streams) principals.set(key, principal);
  const asked = [...principals].map(async ([key, principal]): Promise<[string, boolean]> => [
    key,
    await stillAllowed(principal).catch(() => otherwise),
  ]);
  return new Map(await Promise.all(asked));
}

/** Milliseconds that streams may be written to in one turn of the event loop, for which requests wait. */
export const TURN_MS = 5;
