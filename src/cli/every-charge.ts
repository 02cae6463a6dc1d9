// Every charge that a filter chooses, newest first, read page by page. A page begins at a place in the list, so a charge whose state
// changes meanwhile moves no other.
import type { ChargeFilter, ChargeReports, ListedCharge } from '../domain/payment/reports.ts';

/** Number of charges that are read at a time. */
const PAGE = 200;

export async function* everyCharge(
  { list }: Pick<ChargeReports, 'list'>,
  filter: Omit<ChargeFilter, 'limit' | 'before'>,
): AsyncGenerator<ListedCharge> {
  for (let before: number | undefined; ;) {
    const { charges, nextBefore } = await list({ ...filter, limit: PAGE, before });
    yield* charges;
    if (nextBefore === undefined) return;
    before = nextBefore;
  }
}
