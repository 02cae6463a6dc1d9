// The door of the desk: who is let in by a code or a token, who a request's session is, and how it ends. Whatever is wrong
// with a code or a token is told in the same words, and an address that guesses has to wait.
import type { IncomingMessage } from 'node:http';
import { problem, secondsToWait, type Problem } from '../../domain/problem.ts';
import type { Clock, Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { addressGroup } from '../../host/address-group.ts';
import { createRateLimit } from '../../host/rate-limit.ts';
import type { RefusedSignIns } from '../audit/refused-sign-ins.ts';
import type { JwtVerifier } from '../auth/dashboard-tokens.ts';
import type { FetchKeys } from '../../host/jwt/key-set.ts';
import type { DeskRole, DeskStore, SignInWay, StoredSession } from '../store/desk-ports.ts';
import { createDeskAdmission, type Person, type SignInResult } from './desk-admission.ts';
import { readCookie, writeCookie } from './desk-cookies.ts';
import { originOf } from './desk-host.ts';
import { makeDeskLink, takeDeskLink, type DeskLink } from './desk-links.ts';
import { createDeskSessions, type DeskSessions, type OpenedSession } from './desk-sessions.ts';
import type { DeskSettings } from './desk-settings.ts';
import { refuseForeignPage } from './fetch-site.ts';
import { createOidcDoor, PROVIDER_CALL_MS, type OidcDoor } from './oidc/oidc-door.ts';
import { digestOf, makeCode } from './secret-codes.ts';

const WRONG_A_MINUTE = 10;
const ADDRESSES = 10_000;
const DOWNLOAD_MS = 60_000;
const MOST_DOWNLOADS = 1_000;
const KEY = /^[\w-]{43}$/;

export type DeskDoor = {
  readonly settings: () => DeskSettings | undefined;
  readonly sessions: DeskSessions;
  /** Lets somebody in by a code or a token; `peer` is the address that asks. */
  readonly signIn: (
    given: { code?: string | undefined; token?: string | undefined },
    peer: string,
    requestId?: string | null,
  ) => Promise<OpenedSession | Problem>;
  /** Signing in through an OpenID provider. */
  readonly oidc: OidcDoor;
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
  /** Fetch for an OpenID provider. */
  readonly fetch: FetchKeys;
  /** Milliseconds that one call to an OpenID provider may take. */
  readonly providerCallMs?: number | undefined;
  /** Hears of each sign-in that was refused, and where it came from. */
  readonly refused?: RefusedSignIns['refused'] | undefined;
};

const WRONG = problem('credentials_invalid', 'This does not open the desk: it is wrong, was used before or is over.', {
  headers: { 'WWW-Authenticate': 'Bearer realm="dashboard", error="invalid_token"' },
});

export function createDeskDoor(deps: DoorDeps): DeskDoor {
  const { store, settings, verifyJwt, clock, random, log, observe, fetch } = deps;
  const sessions = createDeskSessions({ store, settings, clock, random });
  const admission = createDeskAdmission({ sessions, log, observe, refused: deps.refused });
  const limit = { perMinute: WRONG_A_MINUTE, burst: WRONG_A_MINUTE, keys: ADDRESSES };
  const wrongs = createRateLimit(limit, clock.monotonic);
  const isSecure = (): boolean => settings()?.publicUrl?.startsWith('https:') ?? false;
  const takes = (via: SignInWay): boolean => settings()?.signIn.includes(via) ?? false;

  const setCookie = (value: string): string => writeCookie('session', value, isSecure());
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
    setCookie,
    oidc: createOidcDoor({
      ...{ store, settings, admission, setCookie, clock, random, fetch },
      callMs: deps.providerCallMs ?? PROVIDER_CALL_MS,
    }),
    signIn: async ({ code, token = '' }, address, requestId) => {
      const via = code === undefined ? 'token' : 'link';
      const peer = addressGroup(address);
      const waitMs = wrongs.takeMs(peer);
      if (waitMs > 0) {
        admission.turnAway(via, 'limited', { address });
        return problem('too_many_requests', 'Too many wrong codes and tokens came from here; wait a minute.', {
          retryAfter: secondsToWait(waitMs),
        });
      }
      const person = await (code === undefined ? byToken(token) : byCode(code));
      if (person === undefined) {
        admission.turnAway(via, 'refused', { address });
        return WRONG;
      }
      wrongs.giveBack(peer);
      if (person === 'unavailable') {
        admission.turnAway(via, 'unavailable', { address });
        return problem('registry_unavailable', 'The keys that verify tokens could not be fetched; try again later.');
      }
      return admission.letIn(person, address, requestId);
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
