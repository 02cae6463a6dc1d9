// The gate before the desk's endpoints: a page elsewhere gets no answer from them, and a download's link is turned into the
// request that it was made for, as its session.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, renderProblem, type Problem } from '../../domain/problem.ts';
import { respond } from '../../host/respond.ts';
import type { Principal, SessionCheck } from '../auth/credentials.ts';
import { readCookie } from './desk-cookies.ts';
import type { DeskDoor } from './desk-door.ts';
import { originOf } from './desk-host.ts';
import { refuseForeignPage, refuseForeignVisit } from './fetch-site.ts';
import { digestOf } from './secret-codes.ts';

const DOWNLOADS = '/desk/downloads/';

export type DeskGate = {
  /** Answers a request under /desk/ that goes no further; the status, or undefined: its endpoint answers. */
  readonly answer: (
    req: IncomingMessage,
    res: ServerResponse,
    headers?: readonly string[],
  ) => Promise<number | undefined>;
  /** Who a request acts as that a download's link stood for. */
  readonly granted: (req: IncomingMessage) => Principal | undefined;
  /** The headers of such a request's answer. */
  readonly headers: (req: IncomingMessage) => readonly string[] | undefined;
};

export function createDeskGate(door: DeskDoor | undefined): DeskGate {
  const grants = new WeakMap<IncomingMessage, { readonly principal: Principal; readonly headers: readonly string[] }>();
  return {
    granted: (req) => grants.get(req)?.principal,
    headers: (req) => grants.get(req)?.headers,
    answer: async (req, res, headers) => {
      const desk = door?.settings();
      if (door === undefined || desk === undefined || headers === undefined) return undefined;
      const refuse = (refusal: Problem): number => {
        const rendered = renderProblem(refusal, headers);
        respond(res, rendered, req.method === 'HEAD');
        return rendered.status;
      };
      const origin = originOf(req, desk);
      const foreign = typeof origin === 'string' ? refuseForeign(req, origin) : origin;
      if (foreign !== undefined) return refuse(foreign);
      const { url = '' } = req;
      if (!url.startsWith(DOWNLOADS)) return undefined;
      if (req.method !== 'GET')
        return refuse(problem('method_not_allowed', 'This path takes GET.', { headers: { Allow: 'GET' } }));
      const taken = await door.takeDownload(req, url.slice(DOWNLOADS.length));
      if ('code' in taken) return refuse(taken);
      const { session: stored, path } = taken;
      const session = { stored, digest: NO_DIGEST };
      const principal: Principal = { kind: 'dashboard', subject: stored.subject, role: stored.role, session };
      grants.set(req, { principal, headers });
      req.url = path;
      return undefined;
    },
  };
}

const NO_DIGEST = Buffer.alloc(32);

/** A sign-in through a provider is visited, not called: it begins here, and the provider, another site, leads back. */
function refuseForeign(req: IncomingMessage, origin: string): Problem | undefined {
  const [, step] = /^\/desk\/oidc\/(start|callback)(?:\?|$)/.exec(req.url ?? '') ?? [];
  return step === undefined ? refuseForeignPage(req, origin, false) : refuseForeignVisit(req, step === 'callback');
}

/** How the authenticator finds sessions. */
export function sessionCheck(door: DeskDoor): SessionCheck {
  return {
    waysIn: () => door.settings()?.signIn ?? [],
    sessionOf: async (req) => {
      const stored = await door.sessionOf(req);
      if (stored === undefined || 'code' in stored) return stored;
      const secure = door.settings()?.publicUrl?.startsWith('https:') ?? false;
      const cookies = readCookie(req.headers.cookie, 'session', secure);
      for (const cookie of cookies) {
        const digest = digestOf(cookie);
        if ((await door.sessions.read(digest))?.id === stored.id) return { stored, digest };
      }
      return undefined;
    },
    stillHolds: async (digest) => {
      const session = await door.sessions.read(digest);
      return session !== undefined && door.sessions.holds(session);
    },
  };
}
