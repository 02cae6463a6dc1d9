// The door of the desk: who is let in by a code or a token, who a request's session is, and how it ends. Whatever is wrong
// with a code or a token is told in the same words, and an address that guesses has to wait.
import type { IncomingMessage } from 'node:http';
import { problem, secondsToWait, type Problem } from '../../domain/problem.ts';
import type { Clock, Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { createRateLimit } from '../../host/rate-limit.ts';
import type { JwtVerifier } from '../auth/dashboard-tokens.ts';
import type { DeskRole, DeskStore, SignInWay, StoredSession } from '../store/desk-ports.ts';
import { readCookie, writeCookie } from './desk-cookies.ts';
import { originOf } from './desk-host.ts';
import { makeDeskLink, takeDeskLink, type DeskLink } from './desk-links.ts';
import { createDeskSessions, MOST_SESSIONS, type DeskSessions, type OpenedSession } from './desk-sessions.ts';
import type { DeskSettings } from './desk-settings.ts';
import { refuseForeignPage } from './fetch-site.ts';
import { digestOf, makeCode } from './secret-codes.ts';

const WRONG_A_MINUTE = 10;
const ADDRESSES = 10_000;
const DOWNLOAD_MS = 60_000;
const MOST_DOWNLOADS = 1_000;
const KEY = /^[\w-]{43}$/;

export type SignInResult = 'ok' | 'refused' | 'limited' | 'full' | 'unavailable';

export type DeskDoor = {
  readonly settings: () => DeskSettings | undefined;
  readonly sessions: DeskSessions;
  /** Lets somebody in by a code or a token; `peer` is the address that asks. */
  readonly signIn: (
    given: { code?: string | undefined; token?: string | undefined },
    peer: string,
  ) => Promise<OpenedSession | Problem>;
  readonly setCookie: (value: string) => string;
  /** The session that a request shows; undefined if it shows none. */
  readonly sessionOf: (req: IncomingMessage) => Promise<StoredSession | Problem | undefined>;
  readonly makeLink: (who: { subject: string; role: DeskRole }, origin: string) => Promise<DeskLink | Problem>;
  /** A path that serves `path` once to the browser of this session. */
  readonly allowDownload: (session: string, path: string) => Promise<string | Problem>;
  /** What a download's code is good for, and whose it is. */
  readonly takeDownload: (
    req: IncomingMessage,
    code: string,
  ) => Promise<{ session: StoredSession; path: string } | Problem>;
};

type DoorDeps = {
  readonly store: DeskStore;
  readonly settings: () => DeskSettings | undefined;
  readonly verifyJwt: () => JwtVerifier | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly observe?: ((via: SignInWay, result: SignInResult) => void) | undefined;
};

const WRONG = problem('credentials_invalid', 'This does not open the desk: it is wrong, was used before or is over.', {
  headers: { 'WWW-Authenticate': 'Bearer realm="dashboard", error="invalid_token"' },
});

export function createDeskDoor({ store, settings, verifyJwt, clock, random, log, observe }: DoorDeps): DeskDoor {
  const sessions = createDeskSessions({ store, settings, clock, random });
  const limit = { perMinute: WRONG_A_MINUTE, burst: WRONG_A_MINUTE, keys: ADDRESSES };
  const wrongs = createRateLimit(limit, clock.monotonic);
  const isSecure = (): boolean => settings()?.publicUrl?.startsWith('https:') ?? false;
  const takes = (via: SignInWay): boolean => settings()?.signIn.includes(via) ?? false;

  type Person = Parameters<DeskSessions['open']>[0];
  const byCode = async (code: string): Promise<Person | undefined> => {
    const who = takes('link') && KEY.test(code) ? await takeDeskLink({ store, now: clock.now }, code) : undefined;
    return who && { ...who, via: 'link', members: [], notAfter: null };
  };
  const byToken = async (token: string): Promise<Person | 'unavailable' | undefined> => {
    const verify = takes('token') ? verifyJwt() : undefined;
    const result = await verify?.(token);
    if (result?.kind === 'unavailable') return 'unavailable';
    if (result?.kind !== 'valid') return undefined;
    return {
      subject: result.subject ?? 'token',
      role: result.role,
      via: 'token',
      members: [],
      notAfter: result.expiresAt,
    };
  };

  return {
    settings,
    sessions,
    setCookie: (value) => writeCookie('session', value, isSecure()),
    signIn: async ({ code, token = '' }, address) => {
      const via = code === undefined ? 'token' : 'link';
      const tell = (result: SignInResult): void => observe?.(via, result);
      const peer = groupOf(address);
      const waitMs = wrongs.takeMs(peer);
      if (waitMs > 0) {
        tell('limited');
        return problem('too_many_requests', 'Too many wrong codes and tokens came from here; wait a minute.', {
          retryAfter: secondsToWait(waitMs),
        });
      }
      const person = await (code === undefined ? byToken(token) : byCode(code));
      if (person === undefined) {
        tell('refused');
        log.warn('a sign-in to the desk was refused', { via, address });
        return WRONG;
      }
      wrongs.giveBack(peer);
      if (person === 'unavailable') {
        tell('unavailable');
        return problem('registry_unavailable', 'The keys that verify tokens could not be fetched; try again later.');
      }
      const opened = await sessions.open(person);
      if (opened === 'full') {
        tell('full');
        log.warn('a sign-in to the desk found no room', { via, address, sessions: MOST_SESSIONS });
        return problem('too_many_requests', `${MOST_SESSIONS} sessions are open; \`tollgate desk revoke\` ends some.`, {
          retryAfter: 60,
        });
      }
      tell('ok');
      const { id, subject, role } = opened.session;
      log.info('signed in to the desk', { session: id, subject, role, via, address });
      return opened;
    },
    sessionOf: async (req) => {
      const desk = settings();
      const cookies = readCookie(req.headers.cookie, 'session', isSecure());
      const key = req.headers['tollgate-desk'];
      if (desk === undefined || (cookies.length === 0 && key === undefined)) return undefined;
      const origin = originOf(req, desk);
      if (typeof origin !== 'string') return origin;
      const foreign = refuseForeignPage(req, origin, true);
      if (foreign !== undefined) return foreign;
      if (typeof key !== 'string' || !KEY.test(key)) return undefined;
      return sessions.find(cookies, key);
    },
    makeLink: async (who, origin) => {
      if (!takes('link'))
        return problem('scope_insufficient', 'This desk is not opened by links: see registry.desk.sign_in.');
      const link = await makeDeskLink({ store, random, now: clock.now }, origin, who);
      if (link !== 'full') return link;
      return problem('too_many_requests', 'A hundred links wait to be opened; each is over after five minutes.', {
        retryAfter: 60,
      });
    },
    allowDownload: async (holder, path) => {
      const code = makeCode(random);
      const now = clock.now();
      const ticket = { kind: 'download', digest: digestOf(code), holder, content: path } as const;
      const added = await store.addTicket({ ...ticket, endsAt: now + DOWNLOAD_MS }, MOST_DOWNLOADS, now);
      if (added === 'added') return `/desk/downloads/${code}`;
      return problem('too_many_requests', 'Too many downloads wait to begin.', { retryAfter: 60 });
    },
    takeDownload: async (req, code) => {
      const desk = settings();
      const origin = desk && originOf(req, desk);
      if (typeof origin !== 'string') return origin ?? NOT_THERE;
      const foreign = refuseForeignPage(req, origin, false);
      if (foreign !== undefined) return foreign;
      const session = await sessions.find(readCookie(req.headers.cookie, 'session', isSecure()), undefined);
      if (session === undefined || !KEY.test(code)) return WRONG;
      const path = await store.takeTicket(
        { kind: 'download', digest: digestOf(code), holder: session.id },
        clock.now(),
      );
      return path === undefined ? WRONG : { session, path };
    },
  };
}

const NOT_THERE = problem('not_found', 'There is nothing at this path.');

/** Clients with IPv6 have whole networks of addresses: the first 64 bits stand for one. */
function groupOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length;
  return [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...(tail?.split(':') ?? [])]
    .slice(0, 4)
    .join(':');
}
