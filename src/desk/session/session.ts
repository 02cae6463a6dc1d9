// Who is signed in. A session is a cookie that this page cannot read and a key that it keeps for this origin; both are asked for
// by every call. What the address brings after `#` (a code, a key, an error) is taken out of it before anything else.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { CallProblem, DeskClient } from '../net/client.ts';
import type { SessionAnswer } from '../wire/house.ts';

type SessionState =
  | { readonly kind: 'asking' }
  | { readonly kind: 'in'; readonly session: SessionAnswer }
  /** `wasIn`: the page is open and keeps what stands on it. */
  | { readonly kind: 'out'; readonly ways: readonly string[]; readonly said: string | null; readonly wasIn: boolean }
  | { readonly kind: 'away' };

export type SessionKeeper = {
  readonly state: ReadonlySignal<SessionState>;
  /** Grows when somebody signs in: everything is asked again. */
  readonly generation: ReadonlySignal<number>;
  readonly isAdmin: ReadonlySignal<boolean>;
  readonly begin: () => Promise<void>;
  /** Signs in by a code or a token; a sentence if it was refused. */
  readonly signIn: (credential: { readonly code: string } | { readonly token: string }) => Promise<string | null>;
  readonly signOut: () => Promise<void>;
  readonly lost: (problem: CallProblem) => void;
};

const KEY = 'tollgate-desk-key';
const AWAY = 'The registry does not answer. Try again in a moment.';

/** The key of this origin's session; null if there is none or the browser keeps nothing. */
export function readKey(storage: Storage | null): string | null {
  return storage?.getItem(KEY) ?? null;
}

/** What the address brought after its `#`, which is taken out of it at once. */
export function takeFragment(window: Window): URLSearchParams {
  const { hash, pathname, search } = window.location;
  if (hash === '') return new URLSearchParams();
  window.history.replaceState(window.history.state, '', pathname + search);
  return new URLSearchParams(hash.slice(1));
}

type Dependencies = {
  readonly client: DeskClient;
  readonly storage: Storage | null;
  readonly fragment: URLSearchParams;
  readonly window: Window;
};

export function createSession({ client, storage, fragment, window }: Dependencies): SessionKeeper {
  const state = signal<SessionState>({ kind: 'asking' });
  const generation = signal(0);
  // While a session has ended the page stays as it is, with the forms of its role.
  const role = signal<SessionAnswer['role']>('viewer');
  const enter = (session: SessionAnswer): void => {
    role.value = session.role;
    state.value = { kind: 'in', session };
    generation.value += 1;
  };
  const leave = (ways: readonly string[], said: string | null): void => {
    const before = state.value;
    const wasIn = before.kind === 'in' || (before.kind === 'out' && before.wasIn);
    const known = before.kind === 'out' && ways.length === 0 ? before.ways : ways;
    state.value = { kind: 'out', ways: known, said, wasIn };
  };
  const ask = async (said: string | null): Promise<void> => {
    const outcome = await client.call<SessionAnswer>('GET', '/desk/session');
    if (outcome.kind === 'ok') enter(outcome.value);
    else if (outcome.kind === 'problem') leave(outcome.problem.signIn, said);
    else if (state.value.kind === 'asking') state.value = { kind: 'away' };
  };
  const signIn: SessionKeeper['signIn'] = async (credential) => {
    const outcome = await client.call<SessionAnswer & { key: string }>('POST', '/desk/session', { body: credential });
    if (outcome.kind === 'problem') return outcome.problem.detail;
    if (outcome.kind !== 'ok') return AWAY;
    const { key, ...session } = outcome.value;
    storage?.setItem(KEY, key);
    enter(session);
    return null;
  };
  window.addEventListener('storage', (event) => {
    if (event.key === KEY) void ask(null);
  });
  return {
    state: computed(() => state.value),
    generation: computed(() => generation.value),
    isAdmin: computed(() => role.value === 'admin'),
    begin: async () => {
      const [code, key, error] = ['code', 'key', 'error'].map((name) => fragment.get(name));
      const held = readKey(storage);
      if (key !== null && key !== undefined) storage?.setItem(KEY, key);
      const refused = code === null || code === undefined ? null : await signIn({ code });
      if (state.value.kind !== 'in') await ask(refused ?? (error ? signInError(error) : null));
      if (key === null || key === undefined || held === null || state.value.kind !== 'out') return;
      // Somebody led here with a key that opens nothing: the session that was open goes on.
      storage?.setItem(KEY, held);
      await ask(null);
    },
    signIn,
    signOut: async () => {
      const outcome = await client.call('DELETE', '/desk/session');
      if (outcome.kind === 'away') return;
      storage?.removeItem(KEY);
      state.value = { kind: 'asking' };
      await ask(null);
    },
    lost: () => {
      if (state.value.kind === 'in') void ask(null);
    },
  };
}

/** Sentences for what the way back from an OpenID provider says. */
function signInError(error: string): string {
  const words: Readonly<Record<string, string>> = {
    provider_away: 'The sign-in service does not answer. Try again, or sign in another way.',
    refused: 'The sign-in service refused.',
    not_allowed: 'You are signed in there, but not on the list of people who may open this desk.',
    flow_unknown: 'That sign-in took too long or was begun elsewhere. Start again.',
    too_many: 'Too many people sign in at once, or are signed in. Try again in a minute.',
  };
  return words[error] ?? `Signing in did not work (${error.slice(0, 100)}).`;
}
