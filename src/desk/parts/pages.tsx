// The way through a list of pages. The registry's cursor leads on; the cursors that led here are kept with the entry of the
// history, so that the way back is known, also after a reload. No total is shown that nobody counted.
import { useDesk } from '../desk-context.ts';
import { Icon } from './icon.tsx';

type PagesProps = {
  readonly cursors: readonly string[];
  readonly next: string | null;
  readonly shown: number;
  readonly what: string;
};

/** The cursors that led to a page, from the state of its entry in the history. */
export function readCursors(state: unknown): readonly string[] {
  if (typeof state !== 'object' || state === null || !('cursors' in state) || !Array.isArray(state.cursors)) return [];
  return state.cursors.filter((each) => typeof each === 'string');
}

export function Pages({ cursors, next, shown, what }: PagesProps) {
  const { router } = useDesk();
  if (cursors.length === 0 && next === null)
    return (
      <p class="pages muted">
        {shown} {what}
      </p>
    );
  const turn = (to: readonly string[]): void =>
    router.go(location.pathname + location.search, { state: { cursors: to } });
  return (
    <nav class="pages" aria-label="Pages">
      <span class="muted">
        Page {cursors.length + 1}, {shown} {what}
      </span>
      <button
        type="button"
        class="button small"
        disabled={cursors.length === 0}
        onClick={() => turn(cursors.slice(0, -1))}
      >
        <Icon name="left" size={14} />
        Newer
      </button>
      <button
        type="button"
        class="button small"
        disabled={next === null}
        onClick={() => next !== null && turn([...cursors, next])}
      >
        Older
        <Icon name="right" size={14} />
      </button>
    </nav>
  );
}
