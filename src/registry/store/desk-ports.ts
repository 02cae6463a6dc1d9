// The port of a store for the desk: sessions of people, and tickets, each of which is good once. Every process that shares
// the store knows them, and none of them holds an id, a key or a code: only their SHA-256.

import type { AuditCause } from '../../domain/audit.ts';

export type DeskRole = 'admin' | 'viewer';
export type SignInWay = 'link' | 'token' | 'oidc';

export type StoredSession = {
  /** Names it in lists; proves nothing. */
  readonly id: string;
  /** SHA-256 of its key, which a page sends beside the cookie. */
  readonly keyDigest: Buffer;
  readonly subject: string;
  readonly role: DeskRole;
  readonly via: SignInWay;
  /** Values of the provider's claim by which somebody was let in; empty for other ways. */
  readonly members: readonly string[];
  /** Milliseconds since the epoch, here and below. */
  readonly createdAt: number;
  readonly seenAt: number;
  /** End of the token that it was made of; null: of none. */
  readonly notAfter: number | null;
};
/** `digest`: SHA-256 of its cookie. `origin`: where it was asked for, for the audit log. */
export type NewSession = StoredSession & {
  readonly digest: Buffer;
  readonly origin?: { readonly address: string; readonly requestId: string | null } | undefined;
};
/** Who ended a session, and when. */
export type SessionEnd = AuditCause & { readonly at: number };

/** Sessions that hold: made and seen after these times, and not over at `now`. */
export type SessionWindow = { readonly createdAfter: number; readonly seenAfter: number; readonly now: number };

type TicketKind = 'link' | 'download' | 'flow';
export type NewTicket = {
  readonly kind: TicketKind;
  /** SHA-256 of its code. */
  readonly digest: Buffer;
  /** Id of the session that may use it; empty: nobody's yet. */
  readonly holder: string;
  /** What it is good for, as text. */
  readonly content: string;
  readonly endsAt: number;
};

/**
 * Every call rejects with StoreUnavailable if the store cannot do or say it; a write resolves only once it is durable. A session
 * that is made or ended leaves an entry in the audit log.
 */
export type DeskStore = {
  /** `full` if `most` of its kind are good at `now`. */
  readonly addTicket: (ticket: NewTicket, most: number, now: number) => Promise<'added' | 'full'>;
  /** Takes a ticket away and gives its content; undefined if it is another's, was taken, is over or never was. */
  readonly takeTicket: (
    wanted: Pick<NewTicket, 'kind' | 'digest' | 'holder'>,
    now: number,
  ) => Promise<string | undefined>;
  /** `full` if `most` sessions hold. */
  readonly addSession: (session: NewSession, most: number, holding: SessionWindow) => Promise<'added' | 'full'>;
  readonly findSession: (digest: Buffer) => Promise<StoredSession | undefined>;
  /** Writes when a session was used last. */
  readonly seeSession: (id: string, at: number) => Promise<void>;
  /** Sessions that hold, newest first. */
  readonly listSessions: (holding: SessionWindow) => Promise<readonly StoredSession[]>;
  /** Whether there was one. `end` goes into the audit log. */
  readonly endSession: (id: string, end: SessionEnd) => Promise<boolean>;
  /** How many there were. */
  readonly endAllSessions: (end: SessionEnd) => Promise<number>;
};
