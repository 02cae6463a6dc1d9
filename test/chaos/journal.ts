// What everybody saw, with the time of one clock: clients, upstream, facilitator and whoever kills. The oracle reads
// nothing else but the chain and, to compare it, the ledger.
export type Conclusion =
  /** An answer of the upstream, whole. `charged`: it carried a receipt. */
  | { readonly kind: 'served'; readonly status: number; readonly charged: boolean; readonly run: number | undefined }
  /** A head and not all of what it announced. */
  | { readonly kind: 'cut'; readonly status: number }
  /** An answer of Tollgate's own. */
  | { readonly kind: 'told'; readonly status: number; readonly code: string; readonly retryAfterMs: number }
  /** No answer: the client left, or the connection broke. */
  | { readonly kind: 'left' | 'broken' };

export type ClientRequest = {
  readonly n: number;
  readonly from: number;
  readonly to: number;
  readonly end: Conclusion;
};

export type Run = { readonly n: number; readonly run: number; readonly at: number; readonly chargeId: string };
export type SettleCall = { readonly nonce: string; readonly at: number };

export type Journal = {
  readonly requests: ClientRequest[];
  readonly runs: Run[];
  readonly settles: SettleCall[];
  /** When Tollgate was killed, and when it was ready again. */
  readonly kills: { readonly at: number; readonly backAt: number }[];
};

export function createJournal(): Journal {
  return { requests: [], runs: [], settles: [], kills: [] };
}
