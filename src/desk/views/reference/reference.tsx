// The reference of the endpoints, made from the registry's own document: what there is, what it takes and answers, and a command
// that asks it. Nothing is sent from here.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { CopyBlock } from '../../parts/copied.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/prose.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import {
  callOf,
  curlOf,
  exampleOf,
  operationsOf,
  shownExample,
  type ApiDocument,
  type ReferenceEntry,
} from './api-document.ts';

export function ReferenceView() {
  const document = useResource<ApiDocument>('/openapi.json');
  return (
    <>
      <PageHead title="API" about="Everything that this desk does, a program can do.">
        <a class="button" href="/openapi.json" target="_blank" rel="noreferrer">
          <Icon name="out" size={16} />
          openapi.json
        </a>
      </PageHead>
      <Loaded of={document} what="The reference" skeleton={<Skeleton lines={8} tall />}>
        {(value) => <Operations document={value} />}
      </Loaded>
    </>
  );
}

function Operations({ document }: { readonly document: ApiDocument }) {
  const { router } = useDesk();
  const words = router.query.value.get('q') ?? '';
  const groups = operationsOf(document, words);
  return (
    <>
      <div class="toolbar" role="search">
        <div class="search">
          <Icon name="filter" />
          <input
            type="search"
            data-search
            aria-label="Filter endpoints"
            placeholder="Words of a path or of what it does"
            spellcheck={false}
            autoComplete="off"
            value={words}
            onInput={(event) => router.setQuery({ q: event.currentTarget.value })}
          />
          <kbd aria-hidden="true">/</kbd>
        </div>
      </div>
      {groups.length === 0 && <Empty title="No endpoint is like that" />}
      <div class="stack">
        {groups.map(({ tag, about, operations }) => (
          <section key={tag} class="card">
            <header class="card-head">
              <h2>{tag}</h2>
              {about && (
                <p class="muted">
                  <Prose text={about} />
                </p>
              )}
            </header>
            {operations.map((operation) => (
              <OperationView key={operation.id} operation={operation} document={document} />
            ))}
          </section>
        ))}
      </div>
    </>
  );
}

function OperationView({
  operation,
  document,
}: {
  readonly operation: ReferenceEntry;
  readonly document: ApiDocument;
}) {
  const isOpen = useSignal(false);
  const { method, path, summary } = operation;
  return (
    <details
      class="operation"
      open={isOpen.value}
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
      data-row
    >
      <summary data-open>
        <span class={`verb ${method.toLowerCase()}`}>{method}</span>
        <code>{path}</code>
        <span class="muted">{summary}</span>
      </summary>
      {isOpen.value && <OperationDetails operation={operation} document={document} />}
    </details>
  );
}

function OperationDetails({
  operation,
  document,
}: {
  readonly operation: ReferenceEntry;
  readonly document: ApiDocument;
}) {
  const { description, parameters, body, responses, security } = operation;
  const request = body === null ? null : exampleOf(body, document);
  const call = callOf(operation, request);
  return (
    <div class="operation-in">
      {description && (
        <p>
          <Prose text={description} />
        </p>
      )}
      <p class="muted">Credentials: {security.length === 0 ? 'none' : security.join(' or ')}</p>
      {parameters.length > 0 && (
        <table class="parameters">
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">What it is</th>
            </tr>
          </thead>
          <tbody>
            {parameters.map(({ name, place, required, about }) => (
              <tr key={`${place} ${name}`}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td>
                  <span class="muted">
                    {place}
                    {required ? ', required' : ''}
                  </span>{' '}
                  <Prose text={about} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {request !== null && (
        <section>
          <h3>Body</h3>
          <CopyBlock text={shownExample(request)} label={`Body of ${operation.method} ${operation.path}`} />
        </section>
      )}
      <section>
        <h3>Answers</h3>
        <ul class="answers">
          {responses.map(({ status, about, content }) => {
            const example = content === null || !status.startsWith('2') ? null : exampleOf(content, document);
            return (
              <li key={status}>
                <p>
                  <span class={status.startsWith('2') ? 'tag on' : 'tag'}>{status}</span> <Prose text={about} />
                </p>
                {example !== null && (
                  <CopyBlock
                    text={shownExample(example)}
                    label={`Answer ${status} of ${operation.method} ${operation.path}`}
                  />
                )}
              </li>
            );
          })}
        </ul>
      </section>
      <section>
        <h3>From a terminal</h3>
        <CopyBlock
          text={curlOf(operation, location.origin, request)}
          label={`Command for ${operation.method} ${operation.path}`}
        />
      </section>
      {call !== null && (
        <section>
          <h3>From a program</h3>
          <CopyBlock text={call} label={`Call of ${operation.method} ${operation.path}`} />
          <p class="hint">
            With <code>tollgate/client</code>, of the package <code>tollgate</code>.
          </p>
        </section>
      )}
    </div>
  );
}
