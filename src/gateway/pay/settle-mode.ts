// Decides when a payment is settled: before the request is forwarded, or when the upstream's status line is there. The
// second serves without a wait, and for nothing if no settlement follows: a payment that may come to that is settled
// first.
import { LRUCache } from 'lru-cache';
import type { Claim } from '../../domain/charge.ts';
import { settlesFirst, type Receiver } from '../../domain/receiver.ts';

export type SettleMode = Claim['settle'];

export type SettleFacts = {
  readonly wanted: Receiver['settle'];
  readonly method: string;
  readonly conditionalWrite: boolean;
  readonly payer: string;
  /** Until the authorization ends. */
  readonly leftMs: number;
  /** Less than this may run out before the upstream has answered and the money has moved. */
  readonly enoughMs: number;
};

export type SettleModes = {
  readonly modeFor: (facts: SettleFacts) => SettleMode;
  /** The upstream ran for this payer and the settlement afterwards took nothing. */
  readonly ranUnpaid: (payer: string) => void;
  /** The client left before the upstream's status line was there, and its claim was released. */
  readonly leftEarly: (payer: string) => void;
};

/** A head may take this long and settling 10 s more; never less than a minute. */
export function enoughToServeFirst(upstreamHeadersMs: number): number {
  return Math.max(60_000, upstreamHeadersMs + 10_000);
}

const REMEMBERED_MS = 3_600_000;
const REMEMBERED_PAYERS = 10_000;
const LEAVINGS = 3;

type Remembered = { readonly leavings: number; readonly settlesFirst: boolean; readonly until: number };

export function createSettleModes(monotonic: () => number, remembered = REMEMBERED_PAYERS): SettleModes {
  const payers = new LRUCache<string, Remembered>({ max: remembered });
  const known = (payer: string): Remembered | undefined => {
    const seen = payers.get(payer);
    return seen !== undefined && seen.until > monotonic() ? seen : undefined;
  };
  const remember = (payer: string, leavings: number, settlesFirst: boolean): void =>
    void payers.set(payer, { leavings, settlesFirst, until: monotonic() + REMEMBERED_MS });
  return {
    modeFor: ({ wanted, method, conditionalWrite, payer, leftMs, enoughMs }) => {
      if (conditionalWrite || leftMs < enoughMs || known(payer)?.settlesFirst === true) return 'before_forward';
      return settlesFirst(wanted, method) ? 'before_forward' : 'before_response';
    },
    ranUnpaid: (payer) => remember(payer, 0, true),
    leftEarly: (payer) => {
      const seen = known(payer);
      if (seen?.settlesFirst === true) return;
      const leavings = (seen?.leavings ?? 0) + 1;
      remember(payer, leavings, leavings >= LEAVINGS);
    },
  };
}
