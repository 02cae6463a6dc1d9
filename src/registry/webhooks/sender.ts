// Sends events to endpoints: 16 at a time to each and 64 in all. Of all processes on a store one sends, and what it has under
// way when it may be that no longer is broken off. Nothing is kept here but what is under way: a process that dies leaves
// all to the next one, which sends again what this one may have sent.
import { concludeAttempt, type WebhookAnswer } from '../../domain/webhooks/attempt-outcome.ts';
import {
  SENDER_LEASE_MS,
  type AttemptResult,
  type DueDelivery,
  type SenderRoom,
  type WebhookStore,
} from '../../domain/webhooks/webhook-store.ts';
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { PublicPost } from '../../host/public-post.ts';
import { signedHeaders } from './signature.ts';

export type WebhookTarget = {
  readonly id: string;
  readonly url: string;
  /** All of them sign. */
  readonly secrets: readonly string[];
  readonly timeoutMs: number;
  readonly allowPrivate: boolean;
};

export type SenderDeps = {
  readonly store: Pick<WebhookStore, 'turn' | 'resign' | 'now'>;
  /** Names this run of the process. */
  readonly run: string;
  /** Endpoints of the configuration in force. */
  readonly targets: () => readonly WebhookTarget[];
  readonly bodyOf: (event: DueDelivery['event']) => string;
  readonly post: PublicPost;
  readonly userAgent: string;
  readonly monotonic: Clock['monotonic'];
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
  /** Hears of each attempt that is over. */
  readonly observe: (webhookId: string, result: 'taken' | 'failed' | 'given_up') => void;
};

export type WebhookSender = {
  /** Looks for events at once. */
  readonly wake: () => void;
  /** Waits a moment for what is under way, and leaves the rest to whoever comes next. */
  readonly close: () => Promise<void>;
};

export const MOST_AT_ONCE = { each: 16, all: 64 } as const;
/** Pauses between turns: while it sends, while another process does, and while the store cannot be asked. */
const PAUSE_MS = { ours: 500, other: 2_000, failed: 1_000 } as const;
/** Ends before the lease does by this, so that nobody else sends yet. */
const MARGIN_MS = 1_500;
const CLOSE_MS = 2_000;

type Flight = { readonly delivery: DueDelivery; readonly abort: AbortController };

export function startSender(deps: SenderDeps): WebhookSender {
  const { store, run, schedule, monotonic, log } = deps;
  const flights = new Set<Flight>();
  const tell = createTeller(log);
  let finished: AttemptResult[] = [];
  let turning: Promise<void> | undefined;
  let again = false;
  let stopped = false;
  let rotation = 0;
  let isAway = false;
  let cancelTurn = (): void => undefined;
  let cancelEnd = (): void => undefined;
  let settled = (): void => undefined;

  const breakOff = (): void => {
    for (const { abort } of flights) abort.abort();
    flights.clear();
    finished = [];
  };
  const roomsOf = (): readonly SenderRoom[] => {
    const targets = deps.targets();
    rotation += 1;
    let left = stopped ? 0 : MOST_AT_ONCE.all - flights.size;
    return targets.map((_, index) => {
      const id = targets[(index + rotation) % targets.length]?.id ?? '';
      const busy = [...flights].flatMap(({ delivery }) => (delivery.endpointId === id ? [delivery.n] : []));
      const free = Math.max(0, Math.min(left, MOST_AT_ONCE.each - busy.length));
      left -= free;
      return { endpointId: id, free, busy };
    });
  };
  const send = async (delivery: DueDelivery): Promise<void> => {
    const target = deps.targets().find(({ id }) => id === delivery.endpointId);
    if (target === undefined || stopped) return;
    const flight: Flight = { delivery, abort: new AbortController() };
    flights.add(flight);
    const [at, begun] = [store.now(), monotonic()];
    const answer = await attempt(deps, target, delivery, { at, signal: flight.abort.signal });
    // It was broken off: whoever sends now knows nothing of it.
    if (!flights.delete(flight)) return;
    const durationMs = Math.round(monotonic() - begun);
    const draw = deps.random(4).readUInt32BE() / 2 ** 32;
    const result = concludeAttempt(delivery, answer, { at, endedAt: store.now(), durationMs, draw });
    finished.push(result);
    tell(result);
    deps.observe(target.id, result.outcome.kind === 'again' ? 'failed' : result.outcome.kind);
    if (flights.size === 0) settled();
    turn();
  };
  const takeTurns = async (): Promise<number> => {
    do {
      again = false;
      const results = finished;
      finished = [];
      const begun = monotonic();
      const outcome = await store.turn({ sender: run, results, rooms: roomsOf() }).catch((error: unknown) => {
        finished = [...results, ...finished];
        throw error;
      });
      if (outcome.kind === 'other') {
        breakOff();
        return PAUSE_MS.other;
      }
      isAway = false;
      cancelEnd();
      cancelEnd = schedule(Math.max(0, SENDER_LEASE_MS - MARGIN_MS - (monotonic() - begun)), breakOff);
      for (const delivery of outcome.due) void send(delivery);
      again ||= outcome.more && !stopped;
    } while (again);
    return PAUSE_MS.ours;
  };
  const turn = (): void => {
    again = true;
    if (turning !== undefined) return;
    cancelTurn();
    turning = takeTurns()
      .catch((error: unknown) => {
        if (!isAway) log.warn('webhooks wait: the store cannot be asked', { error });
        isAway = true;
        return PAUSE_MS.failed;
      })
      .then((pauseMs) => {
        turning = undefined;
        if (stopped) return;
        // An attempt may have ended just behind the last turn.
        if (again && !isAway) turn();
        else cancelTurn = schedule(pauseMs, turn);
      });
  };
  turn();

  return {
    wake: turn,
    close: async () => {
      stopped = true;
      cancelTurn();
      await turning;
      if (flights.size > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        settled = resolve;
        const cancel = schedule(CLOSE_MS, resolve);
        await promise;
        cancel();
      }
      await turning;
      for (const { abort } of flights) abort.abort();
      flights.clear();
      const results = finished;
      // Whoever sends next sends again what is not written now.
      if (results.length > 0) await store.turn({ sender: run, results, rooms: [] }).catch(() => undefined);
      cancelEnd();
      await store.resign(run).catch(() => undefined);
    },
  };
}

async function attempt(
  { bodyOf, post, userAgent, log }: SenderDeps,
  { url, secrets, timeoutMs, allowPrivate }: WebhookTarget,
  { event }: DueDelivery,
  { at, signal }: { readonly at: number; readonly signal: AbortSignal },
): Promise<WebhookAnswer> {
  try {
    const body = bodyOf(event);
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signedHeaders(secrets, { id: event.id, seconds: Math.floor(at / 1000), body }),
    };
    return await post({ url, headers, body, timeoutMs, allowPrivate }, signal);
  } catch (error) {
    log.error('an event could not be written for a webhook', { event: event.id, error });
    return { kind: 'unanswered', reason: 'the event could not be written' };
  }
}

/** Says once that an endpoint fails, and once that it takes events again. */
function createTeller(log: Log): (result: AttemptResult) => void {
  const failing = new Set<string>();
  return ({ delivery: { endpointId }, error, isGone, outcome }) => {
    const named = { webhook_id: endpointId };
    if (error === null) {
      if (failing.delete(endpointId)) log.info('a webhook endpoint takes events again', named);
      return;
    }
    if (isGone) log.error('a webhook endpoint is disabled: it answered 410', named);
    else if (outcome.kind === 'given_up') log.error('an event was given up: no attempt succeeded', { ...named, error });
    else if (!failing.has(endpointId)) log.warn('a webhook endpoint does not take events', { ...named, error });
    failing.add(endpointId);
  };
}
