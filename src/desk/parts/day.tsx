// A day as a filter in the address.
import { useDesk } from '../desk-context.ts';

type DayProps = { readonly name: string; readonly label: string; readonly value: string | null };

export function Day({ name, label, value }: DayProps) {
  const { router } = useDesk();
  return (
    <label class="day">
      <span>{label}</span>
      <input
        type="date"
        value={value ?? ''}
        onChange={(event) => router.setQuery({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}
