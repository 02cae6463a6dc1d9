// Text that is taken along by one click: ids, addresses, commands, keys. A page over plain http has no clipboard: then the text
// is selected, and the person presses the keys.
import { useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { Icon } from './icon.tsx';
import { shortened } from '../format/shortened.ts';

function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const done = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const copy = async (): Promise<void> => {
    done.value = await write(text, button.current);
    if (done.value) setTimeout(() => (done.value = false), 1_600);
  };
  return (
    <button
      type="button"
      ref={button}
      class="button quiet square copy"
      aria-label={done.value ? 'Copied' : label}
      title={done.value ? 'Copied' : label}
      onClick={() => void copy()}
    >
      <Icon name={done.value ? 'check' : 'copy'} size={16} />
    </button>
  );
}

/** An id or address: shortened, whole in its title and by copy. */
export function Copied({ text, label, href }: { text: string; label: string; href?: string | null | undefined }) {
  const short = <code title={text}>{shortened(text)}</code>;
  return (
    <span class="copied">
      {href ? (
        <a href={href} target="_blank" rel="noreferrer noopener">
          {short}
          <Icon name="out" size={14} />
          <span class="unseen"> (opens the explorer)</span>
        </a>
      ) : (
        short
      )}
      <CopyButton text={text} label={label} />
    </span>
  );
}

/** A command or a piece of text in a box of its own. */
export function CopyBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
    </div>
  );
}

async function write(text: string, beside: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const shown = beside?.parentElement?.querySelector('code, pre, input');
    if (shown !== null && shown !== undefined) getSelection()?.selectAllChildren(shown);
    return false;
  }
}
