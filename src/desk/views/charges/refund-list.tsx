// The refunds of a charge: what was sent back, by which transaction, when it was recorded and by whom, and whether the chain shows
// it. An admin records one here.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { withQuery } from '../../net/query.ts';
import { useResource } from '../../net/resource.ts';
import { Copied } from '../../parts/copied.tsx';
import { Amount, Moment, State } from '../../parts/text.tsx';
import type { ChargeRecord, PageOf, RefundRecord } from '../../wire/billing.ts';
import type { AuditLine } from '../../wire/house.ts';
import { canRefund, recorderOf } from './refund-words.ts';
import { RefundForm } from './refund-form.tsx';

type RefundsProps = { readonly charge: ChargeRecord; readonly onRecorded: (charge: ChargeRecord) => void };

export function Refunds({ charge, onRecorded }: RefundsProps) {
  const { session } = useDesk();
  const isRecording = useSignal(false);
  const { refunds = [], refunded = null } = charge;
  const mayRecord = session.isAdmin.value && canRefund(charge);
  if (refunds.length === 0 && refunded === null && !mayRecord) return null;
  return (
    <section>
      <h3>Refunds</h3>
      {refunded !== null && refunds.length === 0 && <p>It was noted as given back, without a transaction.</p>}
      {refunds.length > 0 && <RefundList key={refunds.length} charge={charge} refunds={refunds} />}
      {mayRecord && (
        <button type="button" class="button" onClick={() => (isRecording.value = true)}>
          Record a refund
        </button>
      )}
      {isRecording.value && (
        <RefundForm
          charge={charge}
          onClose={() => (isRecording.value = false)}
          onRecorded={(recorded) => {
            isRecording.value = false;
            onRecorded(recorded);
          }}
        />
      )}
    </section>
  );
}

type RefundListProps = { readonly charge: ChargeRecord; readonly refunds: readonly RefundRecord[] };

function RefundList({ charge, refunds }: RefundListProps) {
  // A charge does not say who recorded its refunds; the audit log does.
  const audit = useResource<PageOf<AuditLine>>(
    withQuery('/v1/audit', { subject: charge.id, kind: 'charge.refunded', limit: 200 }),
  );
  return (
    <ul class="deliveries">
      {refunds.map((refund) => {
        const who = recorderOf(refund, audit.value?.data ?? []);
        return (
          <li key={refund.transaction}>
            <div class="delivery-head">
              <strong>
                <Amount amount={refund.amount} currency={charge.currency} />
              </strong>
              <State tone={refund.proven ? 'good' : 'warn'}>
                {refund.proven ? 'shown by the chain' : 'by word alone'}
              </State>
            </div>
            <Copied text={refund.transaction} label="Copy the refund’s transaction" href={refund.transaction_url} />
            <p class="muted">
              Recorded <Moment at={refund.recorded_at} />
              {who !== null && (
                <>
                  {' '}
                  by <bdi>{who}</bdi>
                </>
              )}
            </p>
            {refund.reason !== null && (
              <p>
                <bdi>{refund.reason}</bdi>
              </p>
            )}
          </li>
        );
      })}
    </ul>
  );
}
