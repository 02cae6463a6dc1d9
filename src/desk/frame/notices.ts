// Notices: short sentences about what was just done, with a way back if there is one. They go by themselves, and a screen reader
// hears them.
import { computed, signal, type ReadonlySignal } from '@preact/signals';

type Notice = {
  readonly id: number;
  readonly text: string;
  readonly tone: 'good' | 'bad';
  readonly action: { readonly label: string; readonly run: () => void } | null;
};

export type Notices = {
  readonly shown: ReadonlySignal<readonly Notice[]>;
  readonly say: (text: string, options?: { tone?: 'good' | 'bad'; action?: Notice['action'] }) => void;
  readonly close: (id: number) => void;
};

const SHOWN_MS = 6_000;
const SHOWN_WITH_ACTION_MS = 12_000;
const MOST = 3;

export function createNotices(): Notices {
  const shown = signal<readonly Notice[]>([]);
  let last = 0;
  const close = (id: number): void => {
    shown.value = shown.value.filter((notice) => notice.id !== id);
  };
  return {
    shown: computed(() => shown.value),
    close,
    say: (text, { tone = 'good', action = null } = {}) => {
      last += 1;
      const id = last;
      shown.value = [...shown.value.slice(1 - MOST), { id, text, tone, action }];
      setTimeout(() => close(id), action === null ? SHOWN_MS : SHOWN_WITH_ACTION_MS);
    },
  };
}
