// The form of a dialog: what is filled in, and below it a button that leaves and one that does what the dialog is for.
import type { ComponentChildren } from 'preact';

type DialogFormProps = {
  /** What the button says that sends the form. */
  readonly does: string;
  readonly isDanger?: boolean;
  readonly isOff?: boolean;
  readonly onSend: () => Promise<void>;
  readonly onCancel: () => void;
  readonly children: ComponentChildren;
};

export function DialogForm({ does, isDanger = false, isOff = false, onSend, onCancel, children }: DialogFormProps) {
  return (
    <form
      class="stacked"
      onSubmit={(event) => {
        event.preventDefault();
        void onSend();
      }}
    >
      {children}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class={isDanger ? 'button danger' : 'button primary'} disabled={isOff}>
          {does}
        </button>
      </div>
    </form>
  );
}
