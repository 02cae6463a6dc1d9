// Revoking a pass: asked once, because its holder pays again from that moment on and no money goes back by itself.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { problemText } from '../../parts/states.tsx';
import type { PassRecord } from '../../wire/sold-passes.ts';
import { leftText } from './pass-words.ts';

type RevokePassProps = {
  readonly pass: PassRecord;
  readonly onClose: () => void;
  readonly onRevoked: (pass: PassRecord) => void;
};

export function RevokePass({ pass, onClose, onRevoked }: RevokePassProps) {
  const { client, notices } = useDesk();
  const isBusy = useSignal(false);
  const fault = useSignal<string | null>(null);
  const left = leftText(pass);
  const revoke = async (): Promise<void> => {
    isBusy.value = true;
    const path = `/v1/billing/passes/${encodeURIComponent(pass.id)}/revoke`;
    const outcome = await client.call<PassRecord>('POST', path);
    isBusy.value = false;
    if (outcome.kind !== 'ok')
      return void (fault.value = problemText(outcome.kind === 'problem' ? outcome.problem : 'away'));
    notices.say(`The pass ${pass.pass} is revoked: its holder pays again.`);
    onRevoked(outcome.value);
  };
  return (
    <Dialog title="Revoke this pass?" onClose={onClose}>
      <p>
        {left === null
          ? 'It lets nobody pass any more within ten seconds.'
          : `It lets nobody pass any more: ${left} is left and lapses.`}{' '}
        A revoked pass does not come back, and no money goes back by itself. To give it back, send it and record the
        transfer with its charge.
      </p>
      <DialogForm does="Revoke pass" isDanger isOff={isBusy.value} onSend={revoke} onCancel={onClose}>
        {fault.value !== null && (
          <p class="fault" role="alert">
            {fault.value}
          </p>
        )}
      </DialogForm>
    </Dialog>
  );
}
