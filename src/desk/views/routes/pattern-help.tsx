// What a pattern does, while it is typed: paths that it matches, paths that it does not, whom it takes requests from.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { PatternAnswer, RouteView } from '../../wire/billing.ts';
import { nameOf } from './route-calls.ts';

const PAUSE_MS = 120;

type PatternHelpProps = { readonly pattern: string; readonly method: string; readonly routes: readonly RouteView[] };

export function PatternHelp({ pattern, method, routes }: PatternHelpProps) {
  const asked = useSettled(`${method} ${pattern}`);
  const [verb = '', ...rest] = asked.split(' ');
  const path = rest.join(' ');
  const isAsked = path.startsWith('/');
  const help = useResource<PatternAnswer>(
    isAsked ? withQuery('/v1/billing/pattern', { route_pattern: path, method: verb }) : null,
  );
  if (!isAsked || help.value === null) return <PatternRules />;
  const { valid, problem, matches, not, existing_id: existing, shadows } = help.value;
  if (!valid) return <p class="fault">{problem ?? 'This is no pattern.'}</p>;
  const routeOf = (id: string): string => {
    const route = routes.find((each) => each.id === id);
    return route === undefined ? `route ${id}` : nameOf(route);
  };
  return (
    <div class="pattern-help" aria-live="polite">
      <Paths icon="check" word="Matches" paths={matches} />
      <Paths icon="close" word="Not" paths={not} />
      {existing !== null && (
        <p class="fault">
          There is a route for this already: <a href={hrefOf('routes', existing)}>{routeOf(existing)}</a>
        </p>
      )}
      {shadows.map(({ route_id: id, by_whom: whom }) => (
        <p key={id} class="hint">
          Overlaps with <code>{routeOf(id)}</code>: {whom === id ? 'that one' : whom} wins where both match.
        </p>
      ))}
    </div>
  );
}

function Paths({ icon, word, paths }: { icon: IconName; word: string; paths: readonly string[] }) {
  if (paths.length === 0) return null;
  return (
    <p class={`paths ${icon}`}>
      <Icon name={icon} size={14} />
      <span>{word}</span>
      {paths.map((path) => (
        <code key={path}>{path}</code>
      ))}
    </p>
  );
}

function PatternRules() {
  return (
    <p class="hint">
      <code>/reports/*</code> everything below, <code>/users/:id</code> one segment, <code>/users/{'{id:int}'}</code> a
      number.
    </p>
  );
}

/** The value after it has not changed for a moment: not every letter is a question. */
function useSettled(value: string): string {
  const settled = useSignal(value);
  useEffect(() => {
    const timer = setTimeout(() => (settled.value = value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled.value;
}
