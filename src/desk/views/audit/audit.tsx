// The audit log: who changed or was refused what, when, and by which way they were signed in. Only members that changed are
// shown, never a secret.
import { useDesk } from '../../desk.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Pages } from '../../parts/pages.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Moment } from '../../parts/text.tsx';
import type { AuditEntry } from '../../wire/house.ts';
import type { PageOf } from '../../wire/billing.ts';
import { wordOf } from '../routes/conflict.tsx';
import { readCursors } from '../routes/routes.tsx';

const PAGE = 50;

export function AuditView() {
  const { router } = useDesk();
  const query = router.query.value;
  const [actor, subject, kind] = ['actor', 'subject', 'kind'].map((name) => query.get(name));
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<AuditEntry>>(
    withQuery('/v1/audit', { actor, subject, kind, limit: PAGE, cursor: cursors.at(-1) }),
  );
  const isFiltered = Boolean(actor || subject || kind);
  return (
    <>
      <PageHead title="Audit" about="Who changed what, and who was refused." />
      <div class="filters" role="search">
        <Filter name="actor" label="Who" value={actor ?? ''} />
        <Filter name="subject" label="About" value={subject ?? ''} />
        <Filter name="kind" label="Kind" value={kind ?? ''} />
      </div>
      <section class="card" aria-label="Audit log">
        <Loaded of={page} what="The audit log" skeleton={<Skeleton lines={6} />}>
          {({ data, next_cursor: next }) =>
            data.length === 0 ? (
              <Empty title={isFiltered ? 'Nothing is like that' : 'Nothing has been changed yet'}>
                Changes of routes, keys and configuration appear here, and who signed in.
              </Empty>
            ) : (
              <>
                <ol class="audit">
                  {data.map((entry) => (
                    <Entry key={entry.id} entry={entry} />
                  ))}
                </ol>
                <Pages cursors={cursors} next={next} shown={data.length} what="entries" />
              </>
            )
          }
        </Loaded>
      </section>
    </>
  );
}

function Filter({ name, label, value }: { readonly name: string; readonly label: string; readonly value: string }) {
  const { router } = useDesk();
  return (
    <form
      class="search small-search"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.querySelector('input');
        router.setQuery({ [name]: field?.value.trim() ?? null });
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
        onChange={(event) => router.setQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </form>
  );
}

function Entry({ entry }: { readonly entry: AuditEntry }) {
  const { at, actor, via, kind, subject, from, to } = entry;
  const names = [...new Set([...Object.keys(from ?? {}), ...Object.keys(to ?? {})])];
  return (
    <li data-row tabIndex={-1}>
      <div class="audit-line">
        <span>
          <strong>{actor || 'Somebody'}</strong>
          {via && <span class="muted"> by {via.replaceAll('_', ' ')}</span>}
        </span>
        <span class={/refused/.test(kind) ? 'tag warned' : 'tag'}>{kind}</span>
        {subject && <code>{subject}</code>}
        <span class="muted when">
          <Moment at={at} />
        </span>
      </div>
      {names.length > 0 && (
        <p class="differences">
          {names.map((name) => (
            <span key={name}>
              {name}:{' '}
              {from !== null && name in from && from[name] !== null && (
                <>
                  <del>{wordOf(from[name])}</del>{' '}
                </>
              )}
              {to !== null && name in to && <ins>{wordOf(to[name])}</ins>}
            </span>
          ))}
        </p>
      )}
    </li>
  );
}
