// What needs somebody where charges are kept, whether here or elsewhere.
import type { AttentionFinding } from '../domain/attention/attention.ts';
import { judgeLedger, judgeUnknown } from '../domain/attention/judgements.ts';
import type { StoredLedger } from '../registry/store/stored-ledger.ts';
import type { Readiness } from './readiness.ts';

/** Asks what keeps charges only if somebody waits for it: that changes a row. */
export async function ledgerFindings(readiness: Readiness, isAsked: boolean): Promise<readonly AttentionFinding[]> {
  if (!isAsked && readiness.isPossible()) return [];
  const { ok, detail } = await readiness.check.run();
  return judgeLedger(ok ? undefined : detail);
}

/** Settlements of unknown end, counted by an index of the few that are open. */
export async function unknownFindings(
  ledger: Pick<StoredLedger, 'alarms' | 'now'>,
): Promise<readonly AttentionFinding[]> {
  const { unknown } = await ledger.alarms();
  return judgeUnknown(unknown.count, unknown.since === null ? 0 : ledger.now() - unknown.since);
}
