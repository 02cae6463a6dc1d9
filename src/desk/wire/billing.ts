// What the registry answers about money and requests, as the desk reads it: contract section 13, endpoints under /v1/billing.
// Money is a decimal string of one currency.

/** Outcomes of requests that a plan let pass without a payment. */
export const PLAN_OUTCOMES = ['customer', 'quota', 'pass', 'observed'] as const;
export const OUTCOMES = ['paid', ...PLAN_OUTCOMES, 'free', 'payment_required', 'refused', 'error'] as const;
export type OutcomeName = (typeof OUTCOMES)[number];
export type OutcomeCounts = Readonly<Partial<Record<OutcomeName, number>>>;

export type MoneyAmount = { readonly currency: string; readonly amount: string };
export type Earned = MoneyAmount & { readonly previous: string };

export type OverviewAnswer = {
  readonly from: string;
  readonly to: string;
  readonly revenue: readonly Earned[];
  readonly requests: OutcomeCounts;
  readonly previous: OutcomeCounts;
  readonly conversion: number | null;
  readonly overhead_ms: { readonly p50: number; readonly p99: number } | null;
  readonly routes: { readonly active: number; readonly paused: number };
  readonly charges: Readonly<Record<string, number>>;
  readonly sync: {
    readonly sidecars: number;
    readonly stale: number;
    readonly uncounted?: number;
    readonly lost?: number;
  };
  readonly as_of: string;
};

export type SeriesAnswer = {
  readonly from: string;
  readonly to: string;
  readonly step: 'minute' | 'hour' | 'day';
  readonly times: readonly string[];
  readonly requests: Readonly<Partial<Record<OutcomeName, readonly number[]>>>;
  readonly revenue: readonly { readonly currency: string; readonly amounts: readonly string[] }[];
  readonly overhead_ms: { readonly p50: readonly (number | null)[]; readonly p99: readonly (number | null)[] } | null;
  readonly complete_until: string | null;
};

export type RouteView = {
  readonly id: string;
  readonly route_pattern: string;
  readonly method: string;
  readonly amount: string;
  readonly currency: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly status: 'active' | 'paused';
  readonly allow_anonymous: boolean;
  readonly source: string | null;
  readonly receiver_config_id: string | null;
  readonly plan_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
};

export type PageOf<T> = { readonly data: readonly T[]; readonly next_cursor: string | null };

export type TopRoute = {
  readonly route_id: string;
  readonly route: RouteView | null;
  readonly requests: OutcomeCounts;
  readonly revenue: readonly MoneyAmount[];
  readonly conversion: number | null;
};
export type TopRoutesAnswer = { readonly data: readonly TopRoute[] };

export type AttentionLine = {
  readonly code: string;
  readonly severity: 'page' | 'ticket';
  readonly subject: string | null;
  readonly detail: string;
  readonly since: string | null;
  readonly count: number | null;
  readonly link: string | null;
};
export type AttentionAnswer = { readonly data: readonly AttentionLine[]; readonly checked_at: string };

export type RouteChangeView = {
  readonly at: string;
  readonly by: string | null;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
};

export type PatternAnswer = {
  readonly valid: boolean;
  readonly problem: string | null;
  readonly key: string | null;
  readonly matches: readonly string[];
  readonly not: readonly string[];
  readonly existing_id: string | null;
  readonly shadows: readonly { readonly route_id: string; readonly by_whom: string }[];
};

export type TryAnswer = {
  readonly target: string | null;
  readonly problem: { readonly status?: number; readonly code: string; readonly detail: string } | null;
  readonly matched: boolean;
  readonly payment_required: boolean;
  readonly route: RouteView | null;
  readonly params: Readonly<Record<string, string>>;
  readonly because: readonly {
    readonly route_id: string;
    readonly route_pattern: string;
    readonly method: string;
    readonly wins: boolean;
    readonly why: string;
  }[];
  readonly answer: {
    readonly status: number;
    readonly headers: readonly (readonly [string, string])[];
    readonly body: string | Readonly<Record<string, unknown>>;
  } | null;
  readonly reason?: string | null;
  readonly curl: string | null;
};

export const STATES = ['claimed', 'settling', 'settled', 'delivered', 'released', 'failed'] as const;

export type RefundRecord = {
  readonly transaction: string;
  readonly transaction_url: string | null;
  readonly proven: boolean;
  readonly amount: string;
  readonly amount_atomic: string;
  readonly reason: string | null;
  readonly recorded_at: string;
};

export type ChargeRecord = {
  readonly id: string;
  readonly status: (typeof STATES)[number];
  readonly route_id: string;
  readonly route_method: string;
  readonly route_pattern: string;
  readonly method: string;
  readonly path: string;
  readonly request_id: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly customer_id: string | null;
  readonly payer: string;
  readonly receiver_id: string;
  readonly network: string;
  readonly network_name?: string | null;
  readonly asset: string;
  readonly amount_atomic: string;
  readonly scheme: string;
  readonly pay_to_address: string;
  readonly transaction: string | null;
  readonly transaction_url?: string | null;
  readonly payer_url?: string | null;
  readonly charged: true | false | 'unknown';
  readonly owed: string | null;
  readonly retry_until: string | null;
  /** Left out by registries of earlier versions. */
  readonly refunded?: { readonly amount: string; readonly transactions: readonly string[] } | null;
  readonly refunds?: readonly RefundRecord[];
  readonly pass_id?: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly [member: string]: unknown;
};

export type HistoryEntry = {
  readonly at: string;
  readonly state: string;
  readonly event: string;
  readonly by: string | null;
  readonly detail: string | null;
};
