// A dialog over the page, or a sheet at its right side. The browser's own `<dialog>` keeps the focus in it, closes on Escape and
// gives the focus back.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';

type DialogProps = {
  readonly title: string;
  readonly kind?: 'dialog' | 'sheet';
  /** Left out: the dialog cannot be put away. */
  readonly onClose?: () => void;
  readonly children: ComponentChildren;
};

export function Dialog({ title, kind = 'dialog', onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={kind}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose?.();
      }}
    >
      <div class="dialog-in">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {onClose && (
            <button type="button" class="button quiet square" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}
