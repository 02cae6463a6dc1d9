// What webhooks tell of charges beside what the ledger says of them: the events that came of each charge, and those that its
// history asks for.
import type { Taken } from './webhook-receiver.ts';

/** The events of each charge as they came, without what came again. */
export function eventsByCharge(taken: readonly Taken[]): ReadonlyMap<string, readonly Taken[]> {
  const seen = new Set<string>();
  const first = taken.filter(({ id, type }) => type.startsWith('charge.') && !seen.has(id) && seen.add(id));
  return Map.groupBy(first, ({ data }) => String(data['id']));
}

/** The types of events that a history asks for, in their order. `charge.unknown` is none of them: it is no state. */
export function eventsOfHistory(history: readonly { readonly state: string }[]): readonly string[] {
  let before = '';
  return history.flatMap(({ state }) => {
    const isClaim = before === '' || before === 'released';
    // A claim may begin with settling.
    const reached = state === 'settling' && isClaim ? 'claimed' : state;
    const moved = state !== before && reached !== 'settling';
    before = state;
    return moved ? [`charge.${reached}`] : [];
  });
}
