// The books of passes of the registry over HTTP: the port of draws for a sidecar without a store of its own, and for a worker.
// Changes of one pass that come while a call is under way go together in the next one. A use names its request, so that a
// change whose answer was lost is sent again and is the same change. An answer is believed only if it is about the use that
// was asked about; whatever else comes is LedgerUnavailable.
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { renewedWire } from '../../domain/payment/ledger-wire.ts';
import type { DrawChange, DrawResult } from '../../domain/selling/pass-book.ts';
import { MOST_DRAW_CHANGES, type PassLedger } from '../../domain/selling/pass-store.ts';
import {
  drawResultFromWire,
  drawResultsWire,
  drawToWire,
  keptPassesWire,
  keptPassFromWire,
  revokedPassesWire,
} from '../../domain/selling/pass-wire.ts';
import { batched } from '../../host/batches.ts';
import type { RegistryCall } from './registry-calls.ts';

const PASSES = 'v1/ledger/passes';

/** Changes of one pass that are not answered yet. */
type PassQueue = { readonly send: (change: DrawChange) => Promise<DrawResult>; open: number };

export function createRemotePasses(call: RegistryCall, run: string): PassLedger {
  const queues = new Map<string, PassQueue>();
  const changeAll = async (passId: string, changes: readonly DrawChange[]): Promise<readonly DrawResult[]> => {
    const path = `${PASSES}/${encodeURIComponent(passId)}/draws`;
    const json = { changes: changes.map(drawToWire) };
    const { results } = await call({ method: 'POST', path, json }, drawResultsWire);
    const read = results.map(drawResultFromWire);
    const isAnswered = changes.every((change, index) => isAbout(change, read[index]));
    if (!isAnswered || read.length !== changes.length)
      throw new LedgerUnavailable('The registry answered about other uses of a pass than were asked.');
    return read;
  };
  return {
    run,
    change: async (change) => {
      const { passId } = change;
      const queue = queues.get(passId) ?? {
        send: batched(MOST_DRAW_CHANGES, (changes: readonly DrawChange[]) => changeAll(passId, changes)),
        open: 0,
      };
      queues.set(passId, queue);
      queue.open += 1;
      try {
        return await queue.send(change);
      } finally {
        queue.open -= 1;
        if (queue.open === 0) queues.delete(passId);
      }
    },
    // A renewal is not tried again: the next one is on its way.
    renew: async (owner, ids, leaseMs) => {
      const json = { owner, ids, lease_ms: leaseMs };
      const { ids: ours } = await call({ method: 'POST', path: 'v1/ledger/renewals', json }, renewedWire, []);
      return ours;
    },
    ofPayer: async (payer) => {
      const { data } = await call(
        { method: 'GET', path: `${PASSES}?${new URLSearchParams({ payer }).toString()}` },
        keptPassesWire,
      );
      return data.flatMap((each) => keptPassFromWire(each) ?? []);
    },
    revoked: async (after, limit) => {
      const path = `v1/ledger/revocations?after=${after}&limit=${limit}`;
      const { data } = await call({ method: 'GET', path }, revokedPassesWire);
      return data.map(({ id, revoked_at: revokedAt, ends_at: endsAt }) => ({ id, revokedAt, endsAt }));
    },
  };
}

/** Whether a result may be that of the change: another one would let a request pass by what somebody else drew. */
function isAbout(change: DrawChange, result: DrawResult | undefined): boolean {
  if (result === undefined) return false;
  if (!('useId' in result)) return true;
  const isOwn = result.useId === change.useId;
  switch (change.kind) {
    case 'reserve':
      return (result.kind === 'reserved' || result.kind === 'repeated') && (isOwn || change.key !== null);
    case 'take':
      return result.kind === 'taken' && isOwn;
    case 'give_back':
      return (result.kind === 'taken' || result.kind === 'given_back') && (isOwn || change.keySha256 !== undefined);
    default:
      return change satisfies never;
  }
}
