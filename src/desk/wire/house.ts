// What the registry answers about itself, as the desk reads it: contract section 13, sessions, API keys, webhooks, receivers,
// sidecars and the audit log.

export type SessionAnswer = {
  readonly subject: string;
  readonly role: 'admin' | 'viewer';
  readonly via: string;
  readonly expires_at: string;
  readonly version: string;
  readonly testnet: boolean;
};

export type ApiKeyView = {
  readonly id: string | null;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly where: 'store' | 'configuration';
  readonly created_at: string | null;
  readonly created_by: string | null;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
};
export type ApiKeysAnswer = { readonly data: readonly ApiKeyView[] };

export type ShownWebhook = {
  readonly id: string;
  readonly host: string;
  readonly events: readonly string[];
  readonly status: 'ok' | 'failing' | 'disabled';
  readonly waiting: number;
  readonly oldest_waiting_at: string | null;
  readonly last_success_at: string | null;
  readonly last_error: string | null;
};

export type ShownAttempt = {
  readonly at: string;
  /** Null if no answer came. */
  readonly status: number | null;
  readonly duration_ms: number;
  readonly body: string;
};
export type ShownDelivery = {
  readonly event_id: string;
  readonly type: string;
  readonly subject: string | null;
  readonly created_at: string;
  readonly status: 'waiting' | 'taken' | 'given_up';
  readonly next_attempt_at: string | null;
  readonly attempts: readonly ShownAttempt[];
};
export type WebhooksAnswer = { readonly data: readonly ShownWebhook[] };

export type FacilitatorView = {
  readonly host: string;
  readonly auth: string | null;
  readonly status: 'ok' | 'resting' | 'unauthorized' | 'failing' | 'unasked';
  readonly since: string | null;
  readonly last_error: string | null;
  readonly p50_ms: number | null;
};

export type WayView = {
  readonly scheme: string;
  readonly network: string;
  readonly network_name: string | null;
  readonly testnet: boolean | null;
  readonly asset: string;
  readonly symbol: string | null;
  readonly decimals: number;
  readonly pay_to_address: string;
  readonly address_url: string | null;
  readonly facilitators: readonly FacilitatorView[];
  readonly rpc: { readonly host: string; readonly status: 'ok' | 'failing' | 'unasked' } | null;
};

export type ReceiverView = {
  readonly id: string;
  readonly ways: readonly WayView[];
  readonly currencies: readonly string[];
  readonly routes: number;
};
export type ReceiversAnswer = { readonly data: readonly ReceiverView[] };

export type ReceiverCheckAnswer = {
  readonly ok: boolean;
  readonly findings: readonly {
    readonly level: 'ok' | 'warning' | 'cannot_serve' | 'away';
    readonly detail: string;
  }[];
  readonly checked_at: string;
};

export type SidecarView = {
  readonly name: string;
  readonly version: string | null;
  readonly address: string | null;
  readonly since: string | null;
  readonly last_seen: string | null;
  readonly revision: number | null;
  readonly behind: number | null;
  readonly ready: boolean | null;
  readonly reasons: readonly string[];
};
export type SidecarsAnswer = { readonly data: readonly SidecarView[] };

export type AuditLine = {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly via: string;
  readonly kind: string;
  readonly subject: string;
  readonly subject_name: string | null;
  readonly from: Readonly<Record<string, unknown>>;
  readonly to: Readonly<Record<string, unknown>>;
  readonly request_id: string | null;
};
