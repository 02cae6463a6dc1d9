// A labelled field of a form with its hint and what is wrong with it, tied together for a screen reader.
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

type FieldProps = {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly fault?: string | null | undefined;
  readonly optional?: boolean;
  /** Gives the control the attributes that tie it to its label. */
  readonly children: (attributes: ControlAttributes) => ComponentChildren;
};

type ControlAttributes = {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
};

export function Field({ label, hint, fault, optional = false, children }: FieldProps) {
  const id = useId();
  const about = `${id}-about`;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {optional && <span class="muted"> (optional)</span>}
      </label>
      {children({ id, 'aria-describedby': about, 'aria-invalid': Boolean(fault) })}
      <div id={about} class={fault ? 'fault' : 'hint'} {...(fault ? { role: 'alert' } : {})}>
        {fault || hint}
      </div>
    </div>
  );
}
