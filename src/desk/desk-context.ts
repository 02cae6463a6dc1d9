// What every view of the desk is given: the client of the endpoints, the address, the session, settings and notices. One
// object, made once when the page starts.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ReadonlySignal } from '@preact/signals';
import type { Notices } from './frame/notices.ts';
import type { DeskChoices } from './frame/settings.ts';
import type { DeskClient } from './net/client.ts';
import type { TimeWords } from './format/moments.ts';
import type { Router } from './router/router.ts';
import type { SessionKeeper } from './session/session.ts';

export type Desk = {
  readonly client: DeskClient;
  readonly router: Router;
  readonly session: SessionKeeper;
  readonly settings: DeskChoices;
  readonly notices: Notices;
  readonly times: TimeWords;
  readonly now: () => number;
  /** The time, a little old: moves every ten seconds, so that "3 min ago" stays true. */
  readonly clock: ReadonlySignal<number>;
  readonly isOnline: ReadonlySignal<boolean>;
  /** Last answers by path, so that a view that is opened again stands at once. */
  readonly answers: Map<string, { readonly value: unknown; readonly at: number }>;
};

export const DeskContext = createContext<Desk | null>(null);

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error('a view stands outside of the desk');
  return desk;
}
