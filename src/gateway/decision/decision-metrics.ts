// Metrics of decision listeners, beside those that every request has.
import type { Metrics } from '../../host/metrics.ts';

export const REFUSED_REASONS = [
  'peer_untrusted',
  'question_malformed',
  'target_not_canonical',
  'header_refused',
] as const;
export type RefusedReason = (typeof REFUSED_REASONS)[number];
const REPEATS = ['joined', 'undelivered', 'same_request', 'already_paid'] as const;
const REPORTS = ['accepted', 'refused'] as const;

export type DecisionMetrics = {
  readonly refused: (reason: RefusedReason) => void;
  readonly repeated: (kind: (typeof REPEATS)[number]) => void;
  readonly reported: (result: (typeof REPORTS)[number]) => void;
};

export function createDecisionMetrics(metrics: Metrics): DecisionMetrics {
  const refused = metrics.counter('decision_refused_total', 'Questions that were refused as they came, by why.', [
    'reason',
  ]);
  const repeats = metrics.counter('decision_repeats_total', 'Questions about a payment that was decided before.', [
    'kind',
  ]);
  const reports = metrics.counter('decision_reports_total', 'Reports that an allowed request got no answer.', [
    'result',
  ]);
  for (const reason of REFUSED_REASONS) refused(reason)(0);
  for (const kind of REPEATS) repeats(kind)(0);
  for (const result of REPORTS) reports(result)(0);
  return {
    refused: (reason) => refused(reason)(1),
    repeated: (kind) => repeats(kind)(1),
    reported: (result) => reports(result)(1),
  };
}
