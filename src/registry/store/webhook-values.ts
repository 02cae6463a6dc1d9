// Deliveries and endpoints of webhooks as the columns of a store and back, the same for every kind of store.
import {
  DELIVERY_STATES,
  type AttemptResult,
  type DeliveryAttempt,
  type DueDelivery,
  type EndpointState,
  type StoredDelivery,
  type WebhookEvent,
} from '../../domain/webhooks/webhook-store.ts';
import { EVENT_TYPES } from '../../domain/webhooks/event-types.ts';
import { integer, nullableInteger, nullableText, text, type Row } from './rows.ts';

/** Time at which a delivery is due that waits for an earlier one of its subject: the largest that is exact. */
export const PARKED = Number.MAX_SAFE_INTEGER;
/** Deliveries that one statement of a turn changes at most, so that no payment waits for it. */
export const AT_ONCE = 200;

/** Columns of a delivery and its event, as `readDelivery` and `readDue` read them; `d` and `e` are the tables. */
export const DELIVERY_COLUMNS = `d.endpoint_id, d.n, d.state, d.attempts, d.due_at, d.resume_at, d.tried_at, d.tries,
  e.id AS event_id, e.type, e.at AS event_at, e.subject, e.sequence, e.content`;

export function readDelivery(row: Row): StoredDelivery {
  const state = DELIVERY_STATES.find((each) => each === row['state']);
  if (state === undefined) throw new TypeError(`the store holds a delivery that is ${String(row['state'])}`);
  const dueAt = integer(row, 'due_at');
  return {
    ...{ n: integer(row, 'n'), event: readEvent(row), state, attempts: integer(row, 'attempts') },
    dueAt: state !== 'waiting' || dueAt === PARKED ? null : dueAt,
    tries: readTries(row),
  };
}

export function readDue(row: Row): DueDelivery {
  return {
    ...{ endpointId: text(row, 'endpoint_id'), n: integer(row, 'n'), event: readEvent(row) },
    attempts: integer(row, 'attempts'),
    scheduledAt: nullableInteger(row, 'resume_at') ?? integer(row, 'due_at'),
    triedAt: nullableInteger(row, 'tried_at'),
    tries: readTries(row),
  };
}

export function readEndpoint(row: Row): EndpointState {
  const [disabledAt, failingSince] = [nullableInteger(row, 'disabled_at'), nullableInteger(row, 'failing_since')];
  return {
    id: text(row, 'id'),
    status: disabledAt !== null ? 'disabled' : failingSince !== null ? 'failing' : 'ok',
    since: disabledAt ?? failingSince,
    waiting: integer(row, 'waiting'),
    oldestWaitingAt: nullableInteger(row, 'oldest_at'),
    lastSuccessAt: nullableInteger(row, 'last_success_at'),
    lastError: nullableText(row, 'last_error'),
  };
}

/** Values of a delivery after an attempt. `resumeAt` keeps its schedule if the attempt was one beside it. */
export function deliveryAfter({ outcome, tries, at, endedAt }: AttemptResult): {
  readonly state: StoredDelivery['state'];
  /** Null: as they are. */
  readonly attempts: number | null;
  readonly dueAt: number;
  readonly resumeAt: number | null;
  readonly triedAt: number;
  readonly closedAt: number | null;
  readonly tries: string;
} {
  const tried = {
    triedAt: at,
    tries: JSON.stringify(tries.map(({ at: begun, status, durationMs, said }) => [begun, status, durationMs, said])),
  };
  switch (outcome.kind) {
    case 'taken':
      return { state: 'taken', attempts: null, dueAt: PARKED, resumeAt: null, closedAt: endedAt, ...tried };
    case 'given_up':
      return {
        state: 'given_up',
        attempts: outcome.attempts,
        dueAt: PARKED,
        resumeAt: null,
        closedAt: endedAt,
        ...tried,
      };
    case 'again':
      return {
        ...{ state: 'waiting', attempts: outcome.attempts, dueAt: outcome.dueAt, closedAt: null },
        resumeAt: outcome.isBeside ? outcome.dueAt : null,
        ...tried,
      };
    default:
      return outcome satisfies never;
  }
}

function readEvent(row: Row): WebhookEvent {
  const name = text(row, 'type');
  const type = name === 'test' ? name : EVENT_TYPES.find((each) => each === name);
  if (type === undefined) throw new TypeError(`the store holds an event of the type ${name}`);
  return {
    ...{ id: text(row, 'event_id'), type, at: integer(row, 'event_at') },
    ...{ subject: text(row, 'subject'), sequence: integer(row, 'sequence'), content: text(row, 'content') },
  };
}

function readTries(row: Row): readonly DeliveryAttempt[] {
  const tries: unknown = JSON.parse(text(row, 'tries'));
  if (!Array.isArray(tries)) throw new TypeError('the store holds attempts that are no list');
  return tries.map(readAttempt);
}

function readAttempt(attempt: unknown): DeliveryAttempt {
  const [at, status, durationMs, said] = Array.isArray(attempt) ? (attempt as readonly unknown[]) : [];
  if (typeof at !== 'number' || typeof durationMs !== 'number' || typeof said !== 'string')
    throw new TypeError('the store holds an attempt that is none');
  return { at, status: typeof status === 'number' ? status : null, durationMs, said };
}
