// A filter that somebody chose elsewhere, such as the route whose charges these are: a pill that puts it away.
import { useDesk } from '../desk-context.ts';
import { Icon } from './icon.tsx';

type BroughtProps = {
  /** Member of the query that holds it. */
  readonly name: string;
  readonly word: string;
  readonly value: string | null;
};

export function Brought({ name, word, value }: BroughtProps) {
  const { router } = useDesk();
  if (value === null) return null;
  return (
    <button
      type="button"
      class="pill brought"
      aria-label={`Show all again, not only ${word.toLowerCase()} ${value}`}
      onClick={() => router.setQuery({ [name]: null })}
    >
      {word} <code>{value.length > 20 ? `${value.slice(0, 12)}…` : value}</code>
      <Icon name="close" size={14} />
    </button>
  );
}
