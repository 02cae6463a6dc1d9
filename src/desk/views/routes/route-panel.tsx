// One route in a sheet: its fields to change, what it is, who changed what when, and its end.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Loaded, problemText, Skeleton } from '../../parts/states.tsx';
import { Copied } from '../../parts/copied.tsx';
import { Moment } from '../../parts/text.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import { priceFault } from '../../format/money.ts';
import type { PageOf, RouteChangeView, RouteView } from '../../wire/billing.ts';
import { Conflict, FIELD_WORDS, wordOf } from './conflict.tsx';
import { DeleteRoute } from './delete-route.tsx';
import { faultsOf } from './new-route.tsx';
import { PatternHelp } from './pattern-help.tsx';
import { nameOf, ROUTES, saveRoute, writeRoute, type RouteDraft, type RouteSaved } from './route-calls.ts';
import { bodyOf, valuesOf, WhatItCosts, WhichRequests, type RouteFaults, type RouteValues } from './route-form.tsx';
import { StatusSwitch } from './status-switch.tsx';

type RoutePanelProps = {
  readonly id: string;
  readonly onClose: () => void;
  readonly onChanged: (route: RouteView) => void;
  readonly onDeleted: () => void;
};

export function RoutePanel({ id, onClose, onChanged, onDeleted }: RoutePanelProps) {
  const route = useResource<RouteView>(`${ROUTES}/${encodeURIComponent(id)}`);
  const take = (next: RouteView): void => {
    route.put(next);
    onChanged(next);
  };
  if (route.value === null && route.problem !== null && route.problem !== 'away' && route.problem.status === 404)
    return (
      <Dialog title="No such route" kind="sheet" onClose={onClose}>
        <p>There is no route with this id: it may have been deleted.</p>
      </Dialog>
    );
  return (
    <Dialog title={route.value === null ? 'Route' : nameOf(route.value)} kind="sheet" onClose={onClose}>
      <Loaded of={route} what="The route" skeleton={<Skeleton lines={6} />}>
        {(value) => <RouteDetails route={value} onSaved={take} onDeleted={onDeleted} />}
      </Loaded>
    </Dialog>
  );
}

type RouteDetailsProps = {
  readonly route: RouteView;
  readonly onSaved: (route: RouteView) => void;
  readonly onDeleted: () => void;
};

function RouteDetails({ route, onSaved, onDeleted }: RouteDetailsProps) {
  const { session } = useDesk();
  const isDeleting = useSignal(false);
  return (
    <>
      <div class="panel-line">
        <StatusSwitch route={route} onSaved={onSaved} />
        <a href={`${hrefOf('charges')}?route_id=${route.id}`}>Its charges</a>
        <a
          href={`${hrefOf('try')}?method=${route.method === '*' ? 'GET' : route.method}&path=${encodeURIComponent(exampleOf(route))}`}
        >
          Try it
        </a>
      </div>
      {session.isAdmin.value ? <EditRoute key={route.id} route={route} onSaved={onSaved} /> : <Facts route={route} />}
      <dl class="facts">
        <dt>Id</dt>
        <dd>
          <Copied text={route.id} label="Copy the id" />
        </dd>
        <dt>Source</dt>
        <dd>{route.source ?? 'unknown'}</dd>
        <dt>Made</dt>
        <dd>
          <Moment at={route.created_at} />
        </dd>
        <dt>Changed</dt>
        <dd>
          <Moment at={route.updated_at} />
        </dd>
      </dl>
      <Changes key={route.updated_at} route={route} />
      {session.isAdmin.value && (
        <div class="dialog-foot">
          <button type="button" class="button danger" onClick={() => (isDeleting.value = true)}>
            Delete route
          </button>
        </div>
      )}
      {isDeleting.value && (
        <DeleteRoute route={route} onClose={() => (isDeleting.value = false)} onDeleted={onDeleted} />
      )}
    </>
  );
}

function EditRoute({ route, onSaved }: Pick<RouteDetailsProps, 'route' | 'onSaved'>) {
  const { client, notices } = useDesk();
  const changed = useSignal<Partial<RouteValues>>({});
  const faults = useSignal<RouteFaults>({});
  const said = useSignal<string | null>(null);
  const met = useSignal<{ readonly theirs: RouteView; readonly etag: string | null } | null>(null);
  const values: RouteValues = { ...valuesOf(route), ...changed.value };
  const draft = draftOf(route, values);
  const isChanged = Object.keys(draft).length > 0;
  const leave = (): void => {
    [changed.value, faults.value, said.value, met.value] = [{}, {}, null, null];
  };
  const take = (saved: RouteSaved): void => {
    if (saved.kind === 'conflict') met.value = saved;
    else if (saved.kind === 'saved') {
      leave();
      onSaved(saved.route);
      notices.say(`${nameOf(saved.route)} is saved.`);
    } else {
      met.value = null;
      if (saved.problem !== 'away') faults.value = faultsOf(saved.problem);
      said.value = problemText(saved.problem);
    }
  };
  const save = async (): Promise<void> => {
    const price = priceFault(values.amount.trim());
    faults.value = { amount: price };
    if (price === null) take(await saveRoute(client, route, draft));
  };
  const change = (next: RouteValues): void => {
    changed.value = next;
    said.value = null;
  };
  return (
    <form
      class="stacked"
      onSubmit={(event) => {
        event.preventDefault();
        if (isChanged) void save();
      }}
    >
      <div>
        <WhichRequests values={values} faults={faults.value} onChange={change} />
        {values.route_pattern !== route.route_pattern && (
          <PatternHelp pattern={values.route_pattern.trim()} method={values.method} routes={[]} />
        )}
      </div>
      <WhatItCosts values={values} faults={faults.value} onChange={change} />
      {said.value !== null && (
        <p class="problem" role="alert">
          {said.value}
        </p>
      )}
      {isChanged && (
        <div class="dialog-foot">
          <button type="button" class="button" onClick={leave}>
            Leave it
          </button>
          <button type="submit" class="button primary">
            Save changes
          </button>
        </div>
      )}
      {met.value !== null && (
        <Conflict
          theirs={met.value.theirs}
          mine={draft}
          onTake={() => {
            const theirs = met.value?.theirs;
            leave();
            if (theirs !== undefined) onSaved(theirs);
          }}
          onKeep={() => void writeRoute(client, { id: route.id, draft, etag: met.value?.etag ?? null }).then(take)}
        />
      )}
    </form>
  );
}

/** The members that differ from the route as it is shown. */
function draftOf(route: RouteView, values: RouteValues): RouteDraft {
  const next = bodyOf(values);
  const before = bodyOf(valuesOf(route));
  return Object.fromEntries(Object.entries(next).filter(([name, value]) => before[name] !== value));
}

function Facts({ route }: { readonly route: RouteView }) {
  const values = bodyOf(valuesOf(route));
  return (
    <dl class="facts">
      {Object.entries(values).map(([name, value]) => (
        <div key={name} class="pair">
          <dt>{FIELD_WORDS[name] ?? name}</dt>
          <dd>{wordOf(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Changes({ route }: { readonly route: RouteView }) {
  const changes = useResource<PageOf<RouteChangeView>>(`${ROUTES}/${route.id}/changes?limit=20`);
  return (
    <section>
      <h3>Changes</h3>
      <Loaded of={changes} what="Changes">
        {({ data }) =>
          data.length === 0 ? (
            <p class="muted">None is kept.</p>
          ) : (
            <ol class="timeline">
              {data.map((change) => (
                <li key={change.at}>
                  <div>
                    <strong>{change.before === null ? 'Made' : change.after === null ? 'Deleted' : 'Changed'}</strong>
                    <span class="muted">
                      {change.by ?? 'unknown'}, <Moment at={change.at} />
                    </span>
                  </div>
                  {differences(change).map(([name, before, after]) => (
                    <p key={name}>
                      {FIELD_WORDS[name] ?? name}: <del>{wordOf(before)}</del> <ins>{wordOf(after)}</ins>
                    </p>
                  ))}
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </section>
  );
}

function differences({ before, after }: RouteChangeView): readonly (readonly [string, unknown, unknown])[] {
  if (before === null || after === null) return [];
  return Object.keys(after)
    .filter((name) => name !== 'updated_at' && JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => [name, before[name], after[name]] as const);
}

/** A path that the pattern matches, to begin a try with. */
export function exampleOf({ route_pattern: pattern }: Pick<RouteView, 'route_pattern'>): string {
  return pattern
    .replace(/\{\w+:int\}/g, '7')
    .replace(/\{\w+:float\}/g, '7.5')
    .replace(/\{\w+:uuid\}/g, '7b6ff2a8-3c34-4c55-9d8e-2f3b1c0a9d11')
    .replace(/:\w+|\{\w+(?::str)?\}/g, 'example')
    .replace(/\/\*\w*$|\{\w+:path\}$/, '/7');
}
