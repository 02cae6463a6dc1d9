// Recognises a machine whose clock is off by the payments that come in: payers sign for a time that begins about now and
// ends soon, so several in a row that all lie in the past, or all in the future, say more about our clock than about
// theirs. Said once in the log, because every one of them is refused and nothing else says why.
import type { Log } from '../../../host/log.ts';

/** Seconds since the epoch. */
export type Signed = { readonly validAfter: bigint; readonly validBefore: bigint };
export type ClockWatch = (signed: Signed, longestSeconds: bigint, now: bigint) => void;

const IN_A_ROW = 10;
/** Anybody can make up such payments: they do not fill the log. */
const SAY_AGAIN_SECONDS = 3600n;

export function createClockWatch(log: Log): ClockWatch {
  let row: { readonly side: 'past' | 'future'; readonly count: number } | undefined;
  let saidAt: bigint | undefined;
  return ({ validAfter, validBefore }, longestSeconds, now) => {
    const side =
      validBefore <= now ? 'past' : validAfter > now || validBefore > now + longestSeconds ? 'future' : undefined;
    if (side === undefined) {
      row = undefined;
      saidAt = undefined;
      return;
    }
    row = { side, count: row?.side === side ? row.count + 1 : 1 };
    if (row.count < IN_A_ROW || (saidAt !== undefined && now < saidAt + SAY_AGAIN_SECONDS && now >= saidAt)) return;
    saidAt = now;
    const off =
      side === 'past' ? now - validBefore : validAfter > now ? validAfter - now : validBefore - now - longestSeconds;
    log.warn(
      `the clock of this machine may be ${side === 'past' ? 'fast' : 'slow'}: payments in a row were signed for a time in the ${side}, and are refused`,
      {
        payments: row.count,
        seconds_off_at_least: off.toString(),
        time_here: new Date(Number(now) * 1000).toISOString(),
      },
    );
  };
}
