// Making a key. It is shown once, here, and the dialog closes only when somebody says that they have it.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { CopyBlock } from '../../parts/copied.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { DialogForm } from '../../parts/dialog-form.tsx';
import { Field } from '../../parts/field.tsx';
import { problemText } from '../../parts/states.tsx';

const SCOPES = [
  { value: 'sdk', text: 'sdk: read, register and match routes' },
  { value: 'ledger', text: 'ledger: write charges, for sidecars' },
];

export function NewKey({ onClose }: { readonly onClose: () => void }) {
  const { client } = useDesk();
  const name = useSignal('');
  const scopes = useSignal<readonly string[]>(['sdk']);
  const fault = useSignal<string | null>(null);
  const made = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const make = async (): Promise<void> => {
    if (isBusy.value) return;
    if (name.value.trim() === '') return void (fault.value = 'A name tells keys apart: production-eu.');
    if (scopes.value.length === 0) return void (fault.value = 'Choose at least one scope.');
    isBusy.value = true;
    const body = { name: name.value.trim(), scopes: scopes.value };
    const outcome = await client.call<{ key: string }>('POST', '/v1/api-keys', { body });
    isBusy.value = false;
    if (outcome.kind === 'ok') made.value = outcome.value.key;
    else fault.value = problemText(outcome.kind === 'problem' ? outcome.problem : 'away');
  };
  if (made.value !== null)
    return (
      <Dialog title={`The key ${name.value.trim()}`}>
        <p>Copy it now. Only its hash is kept, so nobody can show it again.</p>
        <CopyBlock text={made.value} label="Key" />
        <div class="dialog-foot">
          <button type="button" class="button primary" onClick={onClose}>
            I have it
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title="New key" onClose={onClose}>
      <DialogForm does="Make key" isOff={isBusy.value} onSend={make} onCancel={onClose}>
        <Field label="Name" fault={fault.value}>
          {(attributes) => (
            <input
              {...attributes}
              autoComplete="off"
              spellcheck={false}
              value={name.value}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset>
          <legend>Scopes</legend>
          {SCOPES.map(({ value, text }) => (
            <label key={value} class="check">
              <input
                type="checkbox"
                checked={scopes.value.includes(value)}
                onChange={(event) => {
                  const rest = scopes.value.filter((each) => each !== value);
                  scopes.value = event.currentTarget.checked ? [...rest, value] : rest;
                }}
              />
              {text}
            </label>
          ))}
        </fieldset>
      </DialogForm>
    </Dialog>
  );
}
