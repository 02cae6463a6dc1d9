// Finds the place of a time among charges by halving. A charge is numbered when it is claimed first, so that the time of
// its creation grows with its number, and no index of times is needed.

/** Clocks are set, and writers may wait: a range of numbers is wider than its range of times by this much on each side. */
const MARGIN_MS = 60_000;

/** The first charge with at least this number, whatever its time; undefined if there is none. */
type NextCharge = (seq: number) => { readonly seq: number; readonly createdAt: number } | undefined;

type Times = { readonly fromMs?: number | undefined; readonly toMs?: number | undefined };
/** Numbers `from` (inclusive) to `before` (exclusive). */
export type SeqRange = { readonly from: number | undefined; readonly before: number | undefined };

/** Numbers among which all charges of these times are. Asks by steps, so that each store may wait in its own way. */
export function* searchSeqRange(
  { fromMs, toMs }: Times,
  lastSeq: number,
): Generator<number, SeqRange, ReturnType<NextCharge>> {
  return {
    from: fromMs === undefined ? undefined : yield* firstSince(fromMs - MARGIN_MS, lastSeq),
    before: toMs === undefined ? undefined : yield* firstSince(toMs + MARGIN_MS, lastSeq),
  };
}

/** The number of the first charge that was made at `ms` or later; the number behind the last if there is none. */
function* firstSince(ms: number, lastSeq: number): Generator<number, number, ReturnType<NextCharge>> {
  let [low, high] = [0, lastSeq + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = yield middle;
    if (found === undefined || found.createdAt >= ms) high = middle;
    else low = found.seq + 1;
  }
  return low;
}
