// A row of figures, each with what it counts.
import type { ComponentChildren } from 'preact';

export type Count = readonly [text: string, value: ComponentChildren];

export function Counts({ of, label }: { readonly of: readonly Count[]; readonly label: string }) {
  return (
    <dl class="counts" aria-label={label}>
      {of.map(([text, value], index) => (
        <div key={index}>
          <dt>{text}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
