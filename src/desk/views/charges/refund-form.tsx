// Recording a refund: the transaction by which money was sent back. The chain has to show it; where it does not, or cannot be
// read, the operator's word may stand alone, once he says so.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { moneyText, priceFault } from '../../format/money.ts';
import type { CallProblem } from '../../net/client.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { Field } from '../../parts/field.tsx';
import { problemText } from '../../parts/states.tsx';
import type { ChargeRecord } from '../../wire/billing.ts';
import { recordedText, takesWord } from './refund-words.ts';

type RefundFormProps = {
  readonly charge: ChargeRecord;
  readonly onClose: () => void;
  readonly onRecorded: (charge: ChargeRecord) => void;
};

type FieldName = 'transaction' | 'amount' | 'reason';
type Values = Readonly<Record<FieldName, string>>;
type Faults = Readonly<Partial<Record<FieldName, string>>>;

const NOTHING: Values = { transaction: '', amount: '', reason: '' };

export function RefundForm({ charge, onClose, onRecorded }: RefundFormProps) {
  const { client, notices } = useDesk();
  const values = useSignal(NOTHING);
  const faults = useSignal<Faults>({});
  const refused = useSignal<CallProblem | 'away' | null>(null);
  const isBusy = useSignal(false);
  const isUnproven = useSignal(false);
  const record = async (): Promise<void> => {
    const { transaction, amount, reason } = trimmed(values.value);
    faults.value = faultsOf(transaction, amount);
    refused.value = null;
    if (Object.keys(faults.value).length > 0) return;
    isBusy.value = true;
    const body = {
      transaction,
      ...(amount === '' ? {} : { amount }),
      ...(reason === '' ? {} : { reason }),
      ...(isUnproven.value ? { unproven: true } : {}),
    };
    const path = `/v1/billing/charges/${encodeURIComponent(charge.id)}/refunds`;
    const outcome = await client.call<ChargeRecord>('POST', path, { body });
    isBusy.value = false;
    if (outcome.kind === 'ok') {
      notices.say(recordedText(transaction, charge, outcome.value));
      return onRecorded(outcome.value);
    }
    const problem = outcome.kind === 'problem' ? outcome.problem : 'away';
    faults.value = problem === 'away' ? {} : namedFaults(problem);
    refused.value = Object.keys(faults.value).length > 0 ? null : problem;
  };
  const field = (name: FieldName, label: string, hint: string, optional: boolean) => (
    <Field label={label} hint={hint} fault={faults.value[name]} optional={optional}>
      {(attributes) => (
        <input
          {...attributes}
          class={name === 'reason' ? '' : 'mono'}
          autoComplete="off"
          spellcheck={false}
          value={values.value[name]}
          onInput={(event) => (values.value = { ...values.value, [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  const problem = refused.value;
  return (
    <Dialog title="Record a refund" onClose={onClose}>
      <p>
        Tollgate sends no money. Send it to the payer yourself, on {charge.network_name ?? charge.network}, and say here
        by which transaction. The chain is asked whether it shows the transfer.
      </p>
      <DialogForm does="Record refund" isOff={isBusy.value} onSend={record} onCancel={onClose}>
        {field('transaction', 'Transaction', '', false)}
        {field('amount', 'Amount', `Left out, all that is left of ${moneyText(charge.amount, charge.currency)}.`, true)}
        {field('reason', 'Reason', 'One line, for your own books.', true)}
        {problem !== null && (
          <p class="problem" role="alert">
            {problemText(problem)}
          </p>
        )}
        {(isUnproven.value || (problem !== null && problem !== 'away' && takesWord(problem))) && (
          <label class="check">
            <input
              type="checkbox"
              checked={isUnproven.value}
              onChange={(event) => (isUnproven.value = event.currentTarget.checked)}
            />
            Record it by my word alone, as unproven
          </label>
        )}
      </DialogForm>
    </Dialog>
  );
}

function trimmed({ transaction, amount, reason }: Values): Values {
  return { transaction: transaction.trim(), amount: amount.trim(), reason: reason.trim() };
}

function faultsOf(transaction: string, amount: string): Faults {
  const price = amount === '' ? null : priceFault(amount);
  return {
    ...(transaction === '' ? { transaction: 'Say by which transaction it was sent.' } : {}),
    ...(price === null ? {} : { amount: price }),
  };
}

/** Faults that the registry names by their member. */
function namedFaults({ errors }: CallProblem): Faults {
  const named = (['transaction', 'amount', 'reason'] as const).flatMap((name) => {
    const error = errors.find(({ pointer }) => pointer === `/${name}`);
    return error === undefined ? [] : [[name, error.detail] as const];
  });
  return Object.fromEntries(named);
}
