// The port of a store's outbox: events that were written in the transaction of what they tell, and for each endpoint that
// wants one a delivery, which one sender among all processes takes to its end.
import type { AuditCause } from '../audit.ts';
import type { WebhookType } from './event-types.ts';

/** Event as it was written. `sequence` numbers the events of one charge from 1; 0 for all others. */
export type WebhookEvent = {
  readonly id: string;
  readonly type: WebhookType | 'test';
  /** Milliseconds since the epoch, here and below. */
  readonly at: number;
  /** What it is about: its events are sent one after the other. Empty: about nothing that others are about. */
  readonly subject: string;
  readonly sequence: number;
  /** JSON: the columns of a charge, or the event's data as it is sent. */
  readonly content: string;
};

/** Event that no transaction of a charge or a route writes. `endpointId` undefined: for all that want its type. */
export type ToldEvent = Pick<WebhookEvent, 'type' | 'subject' | 'content'> & {
  readonly endpointId?: string | undefined;
};

export const DELIVERY_STATES = ['waiting', 'taken', 'given_up'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** One attempt. `status` is null if no answer came; `said` begins with what came back, or says why nothing did. */
export type DeliveryAttempt = {
  readonly at: number;
  readonly status: number | null;
  readonly durationMs: number;
  readonly said: string;
};

/** Delivery of one event to one endpoint. `n` is the event's place in the order of all. */
export type StoredDelivery = {
  readonly n: number;
  readonly event: WebhookEvent;
  readonly state: DeliveryState;
  /** Attempts of the schedule that failed. */
  readonly attempts: number;
  /** Null while an earlier event of its subject is not taken, and once it is over. */
  readonly dueAt: number | null;
  /** The latest attempts, oldest first. */
  readonly tries: readonly DeliveryAttempt[];
};

/** Delivery that is to be attempted now. */
export type DueDelivery = {
  readonly endpointId: string;
  readonly n: number;
  readonly event: WebhookEvent;
  readonly attempts: number;
  /** When its schedule wants it; later than now if this attempt is one beside the schedule. */
  readonly scheduledAt: number;
  readonly triedAt: number | null;
  readonly tries: readonly DeliveryAttempt[];
};

export type AttemptOutcome =
  | { readonly kind: 'taken' }
  /** Attempted again at `dueAt`. `attempts` as they are counted from now on. */
  | { readonly kind: 'again'; readonly dueAt: number; readonly attempts: number; readonly isBeside: boolean }
  | { readonly kind: 'given_up'; readonly attempts: number };

export type AttemptResult = {
  readonly delivery: Pick<DueDelivery, 'endpointId' | 'n' | 'triedAt'> & { readonly subject: string };
  readonly outcome: AttemptOutcome;
  readonly tries: readonly DeliveryAttempt[];
  /** When the attempt began, and when it was over. */
  readonly at: number;
  readonly endedAt: number;
  /** What the endpoint said or why it said nothing, for people; null if it took the event. */
  readonly error: string | null;
  /** Nothing is sent to the endpoint before. */
  readonly restUntil: number | null;
  /** The endpoint wants nothing any more. */
  readonly isGone: boolean;
};

/** `free`: deliveries that the sender can begin now. `busy`: those under way, by their numbers. */
export type SenderRoom = { readonly endpointId: string; readonly free: number; readonly busy: readonly number[] };
export type SenderTurn = {
  /** Names the sender: a run of a process. */
  readonly sender: string;
  readonly results: readonly AttemptResult[];
  readonly rooms: readonly SenderRoom[];
};
export type SenderTurnOutcome =
  /** Another process sends; nothing was written. */
  | { readonly kind: 'other' }
  /** `more`: there may be more to do at once. */
  | { readonly kind: 'ours'; readonly due: readonly DueDelivery[]; readonly more: boolean };

export type EndpointStatus = 'ok' | 'failing' | 'disabled';
export type EndpointState = {
  readonly id: string;
  readonly status: EndpointStatus;
  /** Since when it fails or is disabled; null if neither. */
  readonly since: number | null;
  readonly waiting: number;
  readonly oldestWaitingAt: number | null;
  readonly lastSuccessAt: number | null;
  readonly lastError: string | null;
};

export type DeclaredEndpoint = { readonly id: string; readonly types: readonly WebhookType[] };
export type DeliveryQuery = {
  readonly endpointId: string;
  readonly state?: DeliveryState | undefined;
  readonly limit: number;
  /** Number of the last delivery of the page before. */
  readonly before?: number | undefined;
};

/** Milliseconds for which one process is the sender unless it takes another turn. */
export const SENDER_LEASE_MS = 10_000;
/** No answer of the kind 2xx for so long disables an endpoint. */
export const DISABLED_AFTER_MS = 5 * 86_400_000;
/** Longest pause between attempts of the oldest event while its endpoint fails, but for the time that one may take to begin. */
export const OLDEST_EVERY_MS = 55_000;
const DAY_MS = 86_400_000;
/** How long deliveries are kept: taken ones, those given up, and those that wait for a disabled endpoint. */
export const KEPT_MS = { taken: 7 * DAY_MS, givenUp: 30 * DAY_MS, disabled: 7 * DAY_MS } as const;

/** Every call rejects with LedgerUnavailable if the store cannot do or say it; a write resolves only once it is durable. */
export type WebhookStore = {
  /** The store's clock. */
  readonly now: () => number;
  /**
   * Says which endpoints there are and what they want: events are written for these from now on. Endpoints that nobody named
   * since `forgetBefore` are taken away with all that waits for them; undefined: none is.
   */
  readonly declare: (endpoints: readonly DeclaredEndpoint[], forgetBefore: number | undefined) => Promise<void>;
  /** The event's id. A test event is noted in the audit log, with `cause`. */
  readonly tell: (event: ToldEvent, cause?: AuditCause) => Promise<string>;
  /**
   * One turn of the sender, in one transaction: makes it the sender for `SENDER_LEASE_MS` if no other process is, writes what
   * became of attempts, and says what is to be attempted now. An event is due only if every earlier one of its subject was
   * taken or given up. An endpoint that is disabled by it is noted in the audit log.
   */
  readonly turn: (turn: SenderTurn) => Promise<SenderTurnOutcome>;
  /** Lets another process be the sender at once. */
  readonly resign: (sender: string) => Promise<void>;
  /** Endpoints that were declared, by id. */
  readonly endpoints: () => Promise<readonly EndpointState[]>;
  /** Newest first. */
  readonly deliveries: (query: DeliveryQuery) => Promise<readonly StoredDelivery[]>;
  /** Sends to it again, all that waits at once and by a new schedule; false if there is no such endpoint. `cause` goes into the audit log. */
  readonly enable: (endpointId: string, cause?: AuditCause) => Promise<boolean>;
  /** Sends an event that is kept once more, by a new schedule; false if there is none with this id. `cause` goes into the audit log. */
  readonly retry: (endpointId: string, eventId: string, cause?: AuditCause) => Promise<boolean>;
  /** Takes a bounded part of what is kept no longer away; true if there may be more. */
  readonly prune: () => Promise<boolean>;
};
