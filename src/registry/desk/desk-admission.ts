// Letting somebody into the desk whose proof held, and turning away whose did not: each is counted and written to the log,
// whichever way it was tried.
import { problem, type Problem } from '../../domain/problem.ts';
import { addressGroup } from '../../host/address-group.ts';
import type { Log } from '../../host/log.ts';
import type { RefusedSignIns } from '../audit/refused-sign-ins.ts';
import type { SignInWay } from '../store/desk-ports.ts';
import { MOST_SESSIONS, type DeskSessions, type OpenedSession } from './desk-sessions.ts';

export type SignInResult = 'ok' | 'refused' | 'limited' | 'full' | 'unavailable';
export type Person = Parameters<DeskSessions['open']>[0];

export type DeskAdmission = {
  /** Opens a session for somebody; `address` is the one that asks, `requestId` what its caller names the request. */
  readonly letIn: (person: Person, address: string, requestId?: string | null) => Promise<OpenedSession | Problem>;
  /** Notes a sign-in that came to nothing, and why. */
  readonly turnAway: (via: SignInWay, result: Exclude<SignInResult, 'ok' | 'full'>, about: Refusal) => void;
};
type Refusal = { readonly address: string; readonly reason?: string };

type DeskAdmissionDeps = {
  readonly sessions: DeskSessions;
  readonly log: Log;
  readonly observe: ((via: SignInWay, result: SignInResult) => void) | undefined;
  readonly refused: RefusedSignIns['refused'] | undefined;
};

export function createDeskAdmission({ sessions, log, observe, refused }: DeskAdmissionDeps): DeskAdmission {
  return {
    letIn: async (person, address, requestId = null) => {
      const { via } = person;
      const opened = await sessions.open({ ...person, origin: { address, requestId } });
      observe?.(via, opened === 'full' ? 'full' : 'ok');
      if (opened === 'full') {
        log.warn('a sign-in to the desk found no room', { via, address, sessions: MOST_SESSIONS });
        return problem('too_many_requests', `${MOST_SESSIONS} sessions are open; \`tollgate desk revoke\` ends some.`, {
          retryAfter: 60,
        });
      }
      const { id, subject, role } = opened.session;
      log.info('signed in to the desk', { session: id, subject, role, via, address });
      return opened;
    },
    turnAway: (via, result, about) => {
      observe?.(via, result);
      if (result !== 'unavailable') refused?.(via, addressGroup(about.address));
      if (result === 'refused') log.warn('a sign-in to the desk was refused', { via, ...about });
      if (result === 'unavailable' && about.reason !== undefined)
        log.warn('a sign-in to the desk could not be checked', { via, ...about });
    },
  };
}
