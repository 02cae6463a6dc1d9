// What needs somebody where charges are kept, whether here or elsewhere.
import type { AttentionFinding } from '../domain/attention/attention.ts';
import { judgeLedger } from '../domain/attention/judgements.ts';
import type { Readiness } from './readiness.ts';

/** Asks what keeps charges only if somebody waits for it: that changes a row. */
export async function ledgerFindings(readiness: Readiness, isAsked: boolean): Promise<readonly AttentionFinding[]> {
  if (!isAsked && readiness.isPossible()) return [];
  const { ok, detail } = await readiness.check.run();
  return judgeLedger(ok ? undefined : detail);
}
