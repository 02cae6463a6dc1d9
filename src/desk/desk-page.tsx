// The owners' desk: a page in the browser that shows what Tollgate earns and does. It speaks to the public endpoints of its
// own origin and to nothing else. Here everything is put together.
import { render } from 'preact';
import { effect, signal } from '@preact/signals';
import { DeskContext, type Desk } from './desk-context.ts';
import { Frame } from './frame/frame.tsx';
import { createNotices } from './frame/notices.ts';
import { createSettings } from './frame/settings.ts';
import { createTimeWords } from './format/moments.ts';
import { createClient } from './net/client.ts';
import { createRouter } from './router/router.ts';
import { createSession, readKey, takeFragment, type SessionKeeper } from './session/session.ts';

const CLOCK_MS = 10_000;

const fragment = takeFragment(window);
const storage = findStorage();
const settings = createSettings(storage, document.documentElement);

function createDesk(): Desk {
  const now = (): number => Date.now();
  const answers: Desk['answers'] = new Map();
  const client = createClient({
    now,
    fetch: (input, init) => fetch(input, init),
    key: () => readKey(storage),
    signedOut: (problem) => session.lost(problem),
  });
  const session: SessionKeeper = createSession({ client, storage, fragment, window });
  const clock = signal(now());
  setInterval(() => (clock.value = now()), CLOCK_MS);
  const isOnline = signal(navigator.onLine);
  for (const event of ['online', 'offline']) addEventListener(event, () => (isOnline.value = navigator.onLine));
  let subject = '';
  effect(() => {
    const state = session.state.value;
    if (state.kind !== 'in' || state.session.subject === subject) return;
    subject = state.session.subject;
    answers.clear();
  });
  return {
    ...{ client, session, settings, now, clock, isOnline, answers },
    router: createRouter(window),
    notices: createNotices(),
    times: createTimeWords(navigator.language),
  };
}

/** A browser may be set to keep nothing: then a session lives as long as nobody reloads, which is not at all. */
function findStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

document.addEventListener('DOMContentLoaded', () => {
  const root = document.getElementById('desk');
  if (root === null) return;
  const desk = createDesk();
  void desk.session.begin();
  render(
    <DeskContext.Provider value={desk}>
      <Frame />
    </DeskContext.Provider>,
    root,
  );
});
