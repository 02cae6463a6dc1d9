// Says whether a ledger holds as many passes that are good as it may, so that no more of them are sold. They are counted at most every
// ten seconds, and only if the table could hold so many: as long as its numbers are fewer, a look at the first and the last one
// says so.
import type { Claim } from '../../../domain/payment/charge.ts';
import { MOST_LIVE_PASSES } from '../../../domain/selling/pass-store.ts';
import { integer } from '../rows.ts';
import type { AskReader } from './charge-lists.ts';

type LivePassLimitDeps = {
  readonly schema: string;
  readonly ask: AskReader;
  readonly now: () => number;
  /** Passes that may be good at a time. */
  readonly most?: number | undefined;
};

export const TOO_MANY_PASSES = { kind: 'too_many_passes' } as const;
/** Time for which a count holds; what is sold in it by all processes may come on top. */
const COUNTED_MS = 10_000;

type LivePassLimit = {
  /** Whether a claim would buy one pass too many; false at once for one that buys none. */
  readonly forbids: (of: { readonly claim: Pick<Claim, 'pass'> }) => false | Promise<boolean>;
};

export function createLivePassLimit(deps: LivePassLimitDeps): LivePassLimit {
  const { schema, ask, now, most = MOST_LIVE_PASSES } = deps;
  const sql = `SELECT CASE WHEN (SELECT max(seq) - min(seq) + 1 FROM ${schema}.passes) >= $2::int8
      THEN (SELECT count(*) FROM (SELECT FROM ${schema}.passes
        WHERE ends_at > $1::int8 AND revoked_at IS NULL AND is_used_up = 0 LIMIT $2) AS good)
      ELSE 0 END AS passes`;
  let known: { readonly at: number; readonly isReached: Promise<boolean> } | undefined;
  return {
    forbids: ({ claim }) => {
      if (claim.pass === null) return false;
      const at = now();
      if (known === undefined || Math.abs(at - known.at) > COUNTED_MS) {
        const isReached = ask(sql, [at, most]).then(({ rows }) => integer(rows[0] ?? {}, 'passes') >= most);
        const own = { at, isReached };
        known = own;
        // One that failed is asked again.
        isReached.catch(() => {
          if (known === own) known = undefined;
        });
      }
      return known.isReached;
    },
  };
}
