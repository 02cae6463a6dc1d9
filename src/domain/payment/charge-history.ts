// The history of a charge, as people read it: a line for each change, which the charge keeps (`appendLine` in claim-policy.ts).
// What happened before lines were kept is told by the times of the charge.
import { CHARGE_STATES } from './charge-fields.ts';
import type { Charge, ChargeState } from './charge.ts';
import { MAX_LINES } from './claim-policy.ts';

/** One change of a charge. `by`: `request`, `reconciler`, `operator` or `store`; null if that is not known. */
export type ChargeHistoryEntry = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The state that it led to. */
  readonly state: ChargeState;
  readonly event: string;
  readonly by: string | null;
  readonly detail: string | null;
};

type Times = Pick<
  Charge,
  | 'state'
  | 'createdAt'
  | 'updatedAt'
  | 'settledAt'
  | 'deliveredAt'
  | 'refundedAt'
  | 'reason'
  | 'refundNote'
  | 'proof'
  | 'partial'
>;

/** Oldest first. `lines` are those that the charge keeps. */
export function historyOf(charge: Times, lines: string | null): readonly ChargeHistoryEntry[] {
  const kept = lines === null || lines === '' ? [] : lines.split('\n').map(readLine);
  const [first] = kept;
  const before = entriesByTimes(charge).filter(({ at }) => first === undefined || at < first.at);
  return [...before, ...kept].slice(0, MAX_LINES);
}

/** What the times of a charge say, in their order. */
function entriesByTimes(charge: Times): readonly ChargeHistoryEntry[] {
  const { state, createdAt, updatedAt, settledAt, deliveredAt, refundedAt, reason, refundNote, proof } = charge;
  const entries: ChargeHistoryEntry[] = [];
  const add = (at: number | null, reached: ChargeState, event: string, detail: string | null): void => {
    if (at !== null) entries.push({ at, state: reached, event, by: null, detail });
  };
  add(createdAt, 'claimed', 'claimed', null);
  add(settledAt, 'settled', 'settled', proof?.transaction ?? null);
  add(deliveredAt, 'delivered', 'delivered', charge.partial ? 'partial' : null);
  if (state === 'released' || state === 'failed') add(updatedAt, state, state, reason);
  add(refundedAt, state === 'delivered' ? 'delivered' : 'settled', 'refunded', refundNote);
  return entries.toSorted((a, b) => a.at - b.at);
}

/** A line that is not one throws: the store holds something else than was written. */
function readLine(line: string): ChargeHistoryEntry {
  const read: unknown = JSON.parse(line);
  if (!Array.isArray(read)) throw new TypeError('the store holds a line of a history that is none');
  const [at, name, event, by, detail] = read as readonly unknown[];
  const state = CHARGE_STATES.find((each) => each === name);
  if (typeof at !== 'number' || state === undefined || typeof event !== 'string')
    throw new TypeError('the store holds a line of a history that is none');
  return { at, state, event, by: textOrNull(by), detail: textOrNull(detail) };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
