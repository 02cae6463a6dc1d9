// The states of a view besides the good one: not there yet, nothing to show, a problem, an old answer. Each says what is and what
// to do.
import type { ComponentChildren } from 'preact';
import { useDesk } from '../desk-context.ts';
import type { Resource, ResourceProblem } from '../net/resource.ts';
import { CopyBlock } from './copied.tsx';
import { Icon } from './icon.tsx';

export function Skeleton({ lines = 3, tall = false }: { readonly lines?: number; readonly tall?: boolean }) {
  return (
    <div class={tall ? 'skeleton tall' : 'skeleton'} role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="bone" aria-hidden="true" />
      ))}
    </div>
  );
}

type EmptyProps = {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly command?: string;
  readonly action?: ComponentChildren;
};

export function Empty({ title, children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {command && <CopyBlock text={command} label="Command" />}
      {action}
    </div>
  );
}

export function ProblemBox({ problem, again }: { problem: ResourceProblem; again?: (() => void) | undefined }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warn" />
      <div>
        <p>{problemText(problem)}</p>
        {problem !== 'away' && <code>{problem.code}</code>}
      </div>
      {again && (
        <button type="button" class="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function problemText(problem: ResourceProblem): string {
  if (problem === 'away') return 'The registry does not answer.';
  if (problem.code === 'too_many_requests' && problem.retryAfter !== null)
    return `${problem.detail} Try again in ${problem.retryAfter} s.`;
  return problem.detail;
}

type LoadedProps<T> = {
  readonly of: Resource<T>;
  /** What the answer is about, for a registry that does not have the endpoint: "Receivers". */
  readonly what: string;
  readonly skeleton?: ComponentChildren;
  readonly children: (value: T) => ComponentChildren;
};

/** The value of a resource with every state around it. */
export function Loaded<T>({ of, what, skeleton, children }: LoadedProps<T>) {
  const { value, problem, isSlow, at } = of;
  if (value === null) {
    if (problem === null) return isSlow ? (skeleton ?? <Skeleton />) : <div class="not-yet" />;
    if (problem !== 'away' && problem.status === 401) return skeleton ?? <Skeleton />;
    if (problem !== 'away' && problem.status === 404) return <Missing what={what} />;
    return <ProblemBox problem={problem} again={() => void of.reload()} />;
  }
  // The same elements with and without a problem: what somebody writes below must not be made anew.
  const isOld = problem !== null && (problem === 'away' || problem.status !== 401);
  return (
    <>
      {isOld ? <Stale at={at} problem={problem} again={() => void of.reload()} /> : null}
      <div class={isOld ? 'loaded stale' : 'loaded'}>{children(value)}</div>
    </>
  );
}

export function Missing({ what }: { readonly what: string }) {
  return (
    <p class="missing">{what} cannot be shown: this registry does not answer for it. It may be of an older version.</p>
  );
}

type StaleProps = { readonly at: number | null; readonly problem: ResourceProblem; readonly again: () => void };

function Stale({ at, problem, again }: StaleProps) {
  const { times } = useDesk();
  return (
    <p class="stale-note" role="status">
      <Icon name="warn" size={16} />
      <span>
        {at === null ? '' : `As of ${times.clock(at)}. `}
        {problemText(problem)}
      </span>
      <button type="button" class="button small" onClick={again}>
        Try again
      </button>
    </p>
  );
}
