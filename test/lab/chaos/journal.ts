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

/** `who`, here and below: the name of the process that was asked, asks or was killed. */
export type ClientRequest = {
  readonly n: number;
  readonly who: string;
  readonly from: number;
  /** When the head of an answer was there. */
  readonly headAt: number | undefined;
  readonly to: number;
  readonly end: Conclusion;
};

export type Run = {
  readonly n: number;
  readonly run: number;
  readonly who: string;
  readonly at: number;
  /** When its answer had been handed over, or its connection had ended. */
  endedAt: number;
  readonly chargeId: string;
};
export type SettleCall = { readonly nonce: string; readonly at: number };
/** When it was killed, and when it was there again. */
export type Kill = { readonly who: string; readonly how: string; readonly at: number; readonly backAt: number };
/** From when to when a process stood still. */
export type Freeze = { readonly who: string; readonly at: number; backAt: number };

/** What a front in front of the API saw of a payment, in its order. */
export type FrontLine = {
  readonly n: number;
  readonly what: 'allowed' | 'reported' | 'report refused' | 'report lost';
};

export type Journal = {
  readonly requests: ClientRequest[];
  readonly runs: Run[];
  readonly settles: SettleCall[];
  readonly kills: Kill[];
  readonly freezes: Freeze[];
  readonly front: FrontLine[];
  /** What else was done to connections and facilitator, and how often. */
  readonly weather: Map<string, number>;
};

export function createJournal(): Journal {
  return { requests: [], runs: [], settles: [], kills: [], freezes: [], front: [], weather: new Map() };
}

export function noteWeather({ weather }: Journal, what: string): void {
  weather.set(what, (weather.get(what) ?? 0) + 1);
}
