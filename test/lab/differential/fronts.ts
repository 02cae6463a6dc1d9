// What the differential test is run against: each front has an upstream behind it and says what has to come of a request.
import type { Expectations } from './check.ts';
import type { Exchange, PlanOptions } from './plan.ts';

export type Front = {
  readonly port: number;
  readonly target: (token: string) => string;
  readonly lines: (exchange: Exchange) => Promise<readonly string[]>;
  readonly expected: Omit<Expectations, 'target'>;
  readonly close: () => Promise<void>;
};

export type FrontKind = {
  readonly name: string;
  readonly draws: Omit<PlanOptions, 'exchanges'>;
  readonly start: (upstream: URL) => Promise<Front>;
};
