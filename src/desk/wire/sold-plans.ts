// What the registry answers about plans, as the desk reads it: GET /v1/billing/plans.
import type { MoneyAmount, OutcomeCounts } from './billing.ts';

export type PlanView = {
  readonly id: string;
  readonly known: boolean;
  readonly sells: string | null;
  readonly observe_until: string | null;
  readonly observing: boolean;
  readonly routes: number;
  readonly requests: OutcomeCounts;
  readonly revenue: readonly MoneyAmount[];
  readonly would_charge: readonly (MoneyAmount & { readonly requests: number })[];
};

export type CustomersView = {
  readonly id: string;
  readonly by: 'keys' | 'jwt' | 'networks' | 'ask' | null;
  readonly plans: readonly string[];
  readonly quota: { readonly requests: number; readonly window: string } | null;
  readonly requests: Readonly<Record<'known' | 'unknown' | 'expired' | 'quota' | 'unavailable', number>>;
  readonly names: readonly { readonly name: string; readonly requests: number }[];
  readonly others: number;
};

export type PlansAnswer = {
  readonly from: string;
  readonly to: string;
  readonly data: readonly PlanView[];
  readonly customers: readonly CustomersView[];
};
