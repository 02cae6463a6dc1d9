// What the registry answers about passes, as the desk reads it: GET /v1/billing/passes.

export type PassRecord = {
  readonly id: string;
  readonly charge_id: string;
  readonly status: 'live' | 'used_up' | 'ended' | 'revoked';
  readonly plan: string;
  readonly pass: string;
  readonly kind: 'seconds' | 'uses' | 'credit';
  readonly scope: 'plan' | 'route';
  readonly route_id: string;
  readonly payer: string;
  readonly payer_url: string | null;
  readonly network: string;
  readonly network_name: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly seconds: number | null;
  /** Uses, or money; all null if it holds seconds. */
  readonly sold: string | null;
  readonly drawn: string | null;
  readonly left: string | null;
  readonly reserved: string | null;
  readonly lapsed: string | null;
  readonly uses: number | null;
  readonly sold_at: string;
  readonly ends_at: string;
  readonly revoked_at: string | null;
};
