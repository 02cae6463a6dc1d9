// Sessions of the desk. One is a cookie that the page cannot read and a key that the page sends beside it: other ports of the
// host have the cookie alone, a script that somebody slipped in cannot carry the cookie away. Settings are held against each
// request, so that a reload that takes somebody out ends his session with the next one.
import type { Clock, Random } from '../../host/clock.ts';
import type { DeskStore, NewSession, StoredSession, SessionWindow } from '../store/desk-ports.ts';
import type { DeskSettings } from './desk-settings.ts';
import { roleOfMembers } from './desk-members.ts';
import { digestOf, isCodeOf, makeCode } from './secret-codes.ts';

export const MOST_SESSIONS = 1_000;
/** Uses are written this often, or in a quarter of the idle time. */
const SEEN_MS = 60_000;

export type OpenedSession = { readonly cookie: string; readonly key: string; readonly session: StoredSession };

export type DeskSessions = {
  readonly open: (
    who: Pick<NewSession, 'subject' | 'role' | 'via' | 'members' | 'notAfter' | 'origin'>,
  ) => Promise<OpenedSession | 'full'>;
  /** The session that one of these cookies names and `key` belongs to; `key` undefined: by the cookie alone. */
  readonly find: (cookies: readonly string[], key: string | undefined) => Promise<StoredSession | undefined>;
  /** Whether it would still be let in. */
  readonly holds: (session: StoredSession) => boolean;
  /** Reads a session again by the cookie's digest, for a stream that it opened. */
  readonly read: (digest: Buffer) => Promise<StoredSession | undefined>;
  /** Milliseconds since the epoch at which it ends whatever happens. */
  readonly endOf: (session: StoredSession) => number;
  readonly end: DeskStore['endSession'];
  readonly count: () => Promise<number>;
};

type SessionDeps = {
  readonly store: DeskStore;
  readonly settings: () => DeskSettings | undefined;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Random;
};

/** Sessions that are not over at `now`. */
export function unexpired({ idleMs, maxMs }: DeskSettings['session'], now: number): SessionWindow {
  return { createdAfter: now - maxMs, seenAfter: now - idleMs, now };
}

export function createDeskSessions({ store, settings, clock, random }: SessionDeps): DeskSessions {
  const endOf = (session: StoredSession): number =>
    Math.min(session.createdAt + (settings()?.session.maxMs ?? 0), session.notAfter ?? Infinity);

  const holds = (session: StoredSession): boolean => {
    const desk = settings();
    if (desk === undefined || !desk.signIn.includes(session.via)) return false;
    const now = clock.now();
    if (endOf(session) <= now || session.seenAt + desk.session.idleMs <= now) return false;
    if (session.via !== 'oidc') return true;
    const role = desk.oidc === undefined ? undefined : roleOfMembers(session.members, desk.oidc);
    return role === 'admin' || role === session.role;
  };

  const see = (session: StoredSession): void => {
    const now = clock.now();
    const everyMs = Math.min(SEEN_MS, (settings()?.session.idleMs ?? 0) / 4);
    // One use that is not written is followed by another, or the session was not used.
    if (now - session.seenAt > everyMs) store.seeSession(session.id, now).catch(() => undefined);
  };

  return {
    endOf,
    holds,
    read: store.findSession,
    open: async (who) => {
      const desk = settings();
      if (desk === undefined) return 'full';
      const [cookie, key, now] = [makeCode(random), makeCode(random), clock.now()];
      const { origin, ...person } = who;
      const session = {
        ...{ id: random(8).toString('hex'), keyDigest: digestOf(key), createdAt: now, seenAt: now },
        ...person,
      };
      const made = { ...session, digest: digestOf(cookie), origin };
      const added = await store.addSession(made, MOST_SESSIONS, unexpired(desk.session, now));
      return added === 'full' ? added : { cookie, key, session };
    },
    find: async (cookies, key) => {
      for (const cookie of cookies) {
        const session = await store.findSession(digestOf(cookie));
        if (session === undefined || (key !== undefined && !isCodeOf(key, session.keyDigest))) continue;
        if (!holds(session)) continue;
        see(session);
        return session;
      }
      return undefined;
    },
    end: store.endSession,
    count: async () => {
      const desk = settings();
      return desk === undefined ? 0 : (await store.listSessions(unexpired(desk.session, clock.now()))).length;
    },
  };
}
