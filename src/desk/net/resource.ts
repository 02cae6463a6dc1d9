// What one path of the registry answers, as a view uses it: nothing yet, a value with its age, a problem. A newer question
// replaces the older one; what was shown stays until its successor is there.
import { useEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../desk-context.ts';
import type { CallProblem } from './client.ts';

export type ResourceProblem = CallProblem | 'away';

export type Resource<T> = {
  /** The last good answer, which may be of an earlier path. */
  readonly value: T | null;
  readonly at: number | null;
  /** Why the last question brought nothing. */
  readonly problem: ResourceProblem | null;
  readonly isLoading: boolean;
  /** Nothing is there, and it has been waited for long enough that a skeleton helps. */
  readonly isSlow: boolean;
  readonly reload: () => Promise<void>;
  /** Puts a value in the place of the last answer, after a change that said the new one. */
  readonly put: (value: T) => void;
};

type ResourceOptions = {
  /** Milliseconds after which it is asked again while somebody looks. */
  readonly every?: number;
  /** Another number asks again, also for what is shown. */
  readonly attempt?: number;
};

const SLOW_MS = 150;
const KEPT_ANSWERS = 60;
const FOCUS_AGE_MS = 5_000;

type Held<T> = {
  readonly path: string | null;
  readonly value: T | null;
  readonly at: number | null;
  readonly problem: ResourceProblem | null;
  readonly isLoading: boolean;
};

export function useResource<T>(path: string | null, { every, attempt = 0 }: ResourceOptions = {}): Resource<T> {
  const { client, answers, session, isOnline } = useDesk();
  const kept = path === null ? undefined : answers.get(path);
  const held = useSignal<Held<T>>({
    path,
    value: kept === undefined ? null : (kept.value as T),
    at: kept?.at ?? null,
    problem: null,
    isLoading: path !== null,
  });
  const isSlow = useSignal(false);
  const asked = useRef<AbortController | null>(null);
  const generation = session.generation.value;

  const load = async (): Promise<void> => {
    if (path === null) return;
    asked.current?.abort();
    const mine = new AbortController();
    asked.current = mine;
    held.value = { ...held.value, isLoading: true };
    const slow = setTimeout(() => {
      isSlow.value = true;
    }, SLOW_MS);
    const outcome = await client.call<T>('GET', path, { signal: mine.signal });
    clearTimeout(slow);
    if (asked.current !== mine || outcome.kind === 'aborted') return;
    isSlow.value = false;
    if (outcome.kind === 'ok') {
      remember(answers, path, outcome);
      held.value = { path, value: outcome.value, at: outcome.at, problem: null, isLoading: false };
      return;
    }
    const problem = outcome.kind === 'away' ? 'away' : outcome.problem;
    // Another question's answer must not stand under a refusal of this one.
    const isOther = held.value.path !== path && problem !== 'away' && problem.status !== 401;
    const rest = isOther ? { value: null, at: null } : { value: held.value.value, at: held.value.at };
    held.value = { ...rest, path, problem, isLoading: false };
  };

  useEffect(() => {
    const known = path === null ? undefined : answers.get(path);
    if (path === null) held.value = { path, value: null, at: null, problem: null, isLoading: false };
    else if (known !== undefined && held.value.path !== path)
      held.value = { path, value: known.value as T, at: known.at, problem: null, isLoading: true };
    void load();
    return () => asked.current?.abort();
  }, [path, generation, isOnline.value, attempt]);

  useEffect(() => {
    if (path === null) return undefined;
    const look = (): void => {
      if (document.visibilityState === 'visible' && Date.now() - (held.value.at ?? 0) > FOCUS_AGE_MS) void load();
    };
    document.addEventListener('visibilitychange', look);
    const timer = every === undefined ? undefined : setInterval(() => look(), every);
    return () => {
      document.removeEventListener('visibilitychange', look);
      clearInterval(timer);
    };
  }, [path, every]);

  const { value, at, problem, isLoading } = held.value;
  return {
    ...{ value, at, problem, isLoading, isSlow: isSlow.value && value === null },
    reload: load,
    put: (next) => {
      if (path !== null) answers.set(path, { value: next, at: held.value.at ?? 0 });
      held.value = { ...held.value, value: next };
    },
  };
}

function remember(answers: Map<string, unknown>, path: string, { value, at }: { value: unknown; at: number }): void {
  answers.delete(path);
  answers.set(path, { value, at });
  for (const oldest of answers.keys()) {
    if (answers.size <= KEPT_ANSWERS) return;
    answers.delete(oldest);
  }
}
