// Looks at a chain that payers wait for. After two seconds a payer is told what is known so far. The look goes on, and
// its result is there when the payer asks again. If each request began a look of its own and gave it up, the few calls
// that a node allows would all go into beginnings. Results of the reconciler's looks serve payers too.
import { LRUCache } from 'lru-cache';
import type { Schedule } from '../../host/clock.ts';
import type { Look, LookSubject, Rail, PartialLook } from './rail.ts';

/** Look that has begun. `soFar` is what can be said before its end. */
type BegunLook = { readonly end: Promise<Look>; readonly soFar: () => Look };
export type LookStarter = (charge: LookSubject, asker: 'payer' | 'reconciler') => BegunLook;

const PAYER_LOOK_MS = 2000;
/** Ends of looks. */
const REMEMBERED = 1000;

export function createPayerLooks(begin: LookStarter, schedule: Schedule): Rail['look'] {
  const begun = new Map<string, BegunLook>();
  // Ends of looks that no later look could find otherwise.
  const ended = new LRUCache<string, Look>({ max: REMEMBERED });

  const remember = async (name: string, end: Promise<Look>): Promise<Look> => {
    const look = await end;
    if (look.kind === 'proven' || look.kind === 'impossible') ended.set(name, look);
    return look;
  };
  const beginForPayers = (name: string, charge: LookSubject): BegunLook => {
    const { end, soFar } = begin(charge, 'payer');
    const look = { end: remember(name, end).finally(() => begun.delete(name)), soFar };
    // The payer may be told of a failure, or be gone by then.
    look.end.catch(() => undefined);
    begun.set(name, look);
    return look;
  };

  return async (charge, asker) => {
    const name = nameOf(charge);
    const known = ended.get(name);
    if (known !== undefined) return known;
    const shared = begun.get(name);
    if (asker === 'reconciler') return shared?.end ?? remember(name, begin(charge, asker).end);
    const { end, soFar } = shared ?? beginForPayers(name, charge);
    let cancel: () => void = () => undefined;
    const inTime = new Promise<PartialLook>((resolve) => {
      cancel = schedule(PAYER_LOOK_MS, () => resolve(shared === undefined ? { ...soFar(), end } : soFar()));
    });
    return Promise.race([end, inTime]).finally(cancel);
  };
}

function nameOf({ payment, createdAt }: LookSubject): string {
  const { network, asset, payer, unique } = payment;
  return `${network} ${asset} ${payer} ${unique} ${createdAt}`;
}
