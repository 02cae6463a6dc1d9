// A search that is sent: a field with its button. Emptying the field puts the search away at once.
import { useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';

type SearchFormProps = {
  /** What is searched for now. */
  readonly value: string;
  readonly label: string;
  readonly placeholder: string;
  readonly onSearch: (text: string) => void;
  readonly onEmptied: () => void;
  /** Hears what is pasted instead of putting it into the field. */
  readonly onPasted?: (text: string) => void;
};

export function SearchForm({ value, label, placeholder, onSearch, onEmptied, onPasted }: SearchFormProps) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <form
      class="toolbar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onSearch(field.current?.value.trim() ?? '');
      }}
    >
      <div class="search">
        <Icon name="search" />
        <input
          ref={field}
          key={value}
          type="search"
          data-search
          aria-label={label}
          placeholder={placeholder}
          spellcheck={false}
          autoComplete="off"
          defaultValue={value}
          onInput={(event) => {
            if (event.currentTarget.value.trim() === '' && value !== '') onEmptied();
          }}
          onPaste={(event) => {
            const text = event.clipboardData?.getData('text').trim() ?? '';
            if (text === '' || onPasted === undefined) return;
            event.preventDefault();
            onPasted(text);
          }}
        />
        <kbd aria-hidden="true">/</kbd>
      </div>
      <button type="submit" class="button">
        Search
      </button>
    </form>
  );
}
