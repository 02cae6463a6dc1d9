// The filters of the audit log: who, about what, and of which kind.
import { useDesk } from '../../desk-context.ts';
import { Icon } from '../../parts/icon.tsx';
import { KINDS } from './audit-words.ts';

type AuditFiltersProps = { readonly actor: string; readonly subject: string; readonly kind: string };

export function AuditFilters({ actor, subject, kind }: AuditFiltersProps) {
  const { router } = useDesk();
  return (
    <>
      <TextFilter name="actor" label="Who" value={actor} />
      <TextFilter name="subject" label="About" value={subject} />
      <label class="day">
        <span>Kind</span>
        <select value={kind} onChange={(event) => router.setQuery({ kind: event.currentTarget.value || null })}>
          <option value="">all</option>
          {KINDS.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

type TextFilterProps = { readonly name: string; readonly label: string; readonly value: string };

function TextFilter({ name, label, value }: TextFilterProps) {
  const { router } = useDesk();
  return (
    <form
      class="search small-search"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.querySelector('input');
        router.setQuery({ [name]: field?.value.trim() || null });
      }}
    >
      <Icon name="search" />
      <input
        key={value}
        type="search"
        {...(name === 'actor' ? { 'data-search': true } : {})}
        aria-label={label}
        placeholder={label}
        spellcheck={false}
        autoComplete="off"
        defaultValue={value}
        onChange={(event) => router.setQuery({ [name]: event.currentTarget.value.trim() || null })}
      />
    </form>
  );
}
