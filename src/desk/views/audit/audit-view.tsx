// The audit log: who changed or was refused what, when, and by which way they were signed in. Only members that changed are
// shown, never a secret. Every text comes from somebody else, so each is shown as text, apart from the direction of its letters.
import { useDesk } from '../../desk-context.ts';
import { shortened } from '../../format/shortened.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Day } from '../../parts/day.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Pages, readCursors } from '../../parts/pages.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Moment } from '../../parts/text.tsx';
import type { AuditLine } from '../../wire/house.ts';
import type { PageOf } from '../../wire/billing.ts';
import { wordOf } from '../routes/conflict.tsx';
import { AuditFilters } from './audit-filters.tsx';
import { placeOf, wayText } from './audit-words.ts';

const PAGE = 50;

export function AuditView() {
  const { router } = useDesk();
  const { actor = '', subject = '', kind = '', from = '', to = '' } = Object.fromEntries(router.query.value);
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<AuditLine>>(
    withQuery('/v1/audit', { actor, subject, kind, from, to, limit: PAGE, cursor: cursors.at(-1) }),
  );
  const isFiltered = [actor, subject, kind, from, to].some((value) => value !== '');
  return (
    <>
      <PageHead title="Audit" about="Who changed what, and who was refused." />
      <div class="filters" role="search">
        <AuditFilters actor={actor} subject={subject} kind={kind} />
        <div class="days">
          <Day name="from" label="From" value={from} />
          <Day name="to" label="To" value={to} />
        </div>
      </div>
      <section class="card" aria-label="Audit log">
        <Loaded of={page} what="The audit log" skeleton={<Skeleton lines={6} />}>
          {({ data, next_cursor: next }) =>
            data.length === 0 ? (
              <Empty title={isFiltered ? 'Nothing is like that' : 'Nothing has been changed yet'}>
                {isFiltered
                  ? 'Filters are exact: a whole name, a whole id.'
                  : 'Changes of routes, keys and configuration appear here, and who signed in.'}
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

function Entry({ entry }: { readonly entry: AuditLine }) {
  const { at, actor, via, kind, from, to } = entry;
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return (
    <li data-row tabIndex={-1}>
      <div class="audit-line">
        <span>
          {actor === '' ? (
            <strong>{via === 'tollgate' && !/refused/.test(kind) ? 'Tollgate' : 'Somebody'}</strong>
          ) : (
            <a href={withQuery('/desk/audit', { actor })} title={`All that ${actor} did`}>
              <strong>
                <bdi>{actor}</bdi>
              </strong>
            </a>
          )}
          <span class="muted"> {wayText(via)}</span>
        </span>
        <span class={/refused|failed|disabled/.test(kind) ? 'tag warned' : 'tag'}>{kind}</span>
        <Subject entry={entry} />
        <span class="muted when">
          <Moment at={at} />
        </span>
      </div>
      {names.length > 0 && (
        <p class="differences">
          {names.map((name) => (
            <span key={name}>
              {name}:{' '}
              {name in from && from[name] !== null && (
                <>
                  <del>
                    <bdi>{wordOf(from[name])}</bdi>
                  </del>{' '}
                </>
              )}
              {name in to && (
                <ins>
                  <bdi>{wordOf(to[name])}</bdi>
                </ins>
              )}
            </span>
          ))}
        </p>
      )}
    </li>
  );
}

function Subject({ entry }: { readonly entry: AuditLine }) {
  const { kind, subject, subject_name: name } = entry;
  if (subject === '') return null;
  const place = placeOf(kind, subject);
  const text = (
    <code title={subject}>
      <bdi>{name ?? shortened(subject, 18, 6)}</bdi>
    </code>
  );
  return place === undefined ? text : <a href={place}>{text}</a>;
}
