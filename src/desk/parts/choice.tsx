// A row of words of which one is chosen: ranges, kinds of a chart, themes.
import type { ComponentChildren } from 'preact';

type ChoiceProps<T extends string> = {
  readonly label: string;
  readonly options: readonly { readonly value: T; readonly text: string; readonly icon?: ComponentChildren }[];
  readonly value: T;
  readonly onChange: (value: T) => void;
};

export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          {...(option.icon === undefined ? {} : { 'aria-label': option.text, title: option.text })}
          onClick={() => onChange(option.value)}
        >
          {option.icon ?? option.text}
        </button>
      ))}
    </div>
  );
}
