// Routes that SDKs register. They take turns: those that wait are added together in one transaction. In one process
// free requests wait for a turn's checks. So after each turn there is a pause as long as the turn was. One API key may
// add so many a minute. An SDK that registers what is stored already, as at its start, is never refused.
import type { IncomingHttpHeaders } from 'node:http';
import { problem, secondsToWait, type Problem } from '../../domain/problem.ts';
import type { RouteInput } from '../../domain/routing/route.ts';
import type { Schedule } from '../../host/clock.ts';
import { createRateLimit, type RateLimit } from '../../host/rate-limit.ts';
import type { CreateResult, Creation, Routes } from './registry-routes.ts';
import { authorOf } from '../auth/author.ts';
import { nameKey, type Principal } from '../auth/credentials.ts';
import type { StoredRoute } from '../store/ports.ts';

export type Registrations = {
  /** A problem if `principal` has added its share. Rejects if the store fails. */
  readonly add: (
    input: RouteInput,
    principal: Principal,
    headers?: IncomingHttpHeaders,
  ) => Promise<CreateResult | Problem>;
};

type RegistrationsDeps = {
  readonly routes: Pick<Routes, 'createAll' | 'find' | 'refresh'>;
  /** The route whose price a new one would undercut. */
  readonly findLowered: (input: RouteInput) => StoredRoute | undefined;
  /** Limit of registrations a minute; 0: none. A minute's worth may come at once: SDKs register all at their start. */
  readonly perMinute: number;
  readonly monotonic: () => number;
  readonly schedule: Schedule;
};

type QueuedCreation = Creation & {
  readonly key: string;
  readonly resolve: (outcome: CreateResult | Problem) => void;
  readonly reject: (error: unknown) => void;
};

/** API keys are made by operators; so many are remembered at a time. */
const KEYS = 10_000;
/** Number of routes that are added together at most: so long a turn takes a few milliseconds beside the disk. */
const GROUP = 8;

export function createRegistrations({
  routes,
  findLowered,
  perMinute,
  monotonic,
  schedule,
}: RegistrationsDeps): Registrations {
  const limit: RateLimit | undefined =
    perMinute === 0 ? undefined : createRateLimit({ perMinute, burst: perMinute, keys: KEYS }, monotonic);
  const waiting: QueuedCreation[] = [];
  let busy = false;

  const refusal = (waitMs: number): Problem =>
    problem('too_many_requests', `This API key may add ${perMinute} routes a minute; try again later.`, {
      retryAfter: secondsToWait(waitMs),
    });

  /** Says why a route may not be added. Over a key's share only stored routes may be registered: that adds nothing. */
  const judge = (each: QueuedCreation, counted: Set<QueuedCreation>): Problem | undefined => {
    if (limit !== undefined) {
      const waitMs = limit.takeMs(each.key);
      if (waitMs === 0) counted.add(each);
      else return routes.find(each.input) === undefined ? refusal(waitMs) : undefined;
    }
    const lowered = routes.find(each.input) === undefined ? findLowered(each.input) : undefined;
    return lowered && refuseLowered(each.input, lowered);
  };

  const addGroup = async (group: readonly QueuedCreation[]): Promise<void> => {
    const counted = new Set<QueuedCreation>();
    try {
      const refusals = new Map<QueuedCreation, Problem>();
      for (const each of group) {
        const refused = judge(each, counted);
        if (refused !== undefined) refusals.set(each, refused);
      }
      // Another process may have stored it a moment ago.
      if (refusals.size > 0) await routes.refresh();
      const admitted = group.filter((each) => {
        const refused = routes.find(each.input) === undefined ? refusals.get(each) : undefined;
        if (refused !== undefined) each.resolve(refused);
        return refused === undefined;
      });
      const outcomes = await routes.createAll(admitted);
      for (const [index, each] of admitted.entries()) {
        const outcome = outcomes[index];
        if (outcome === undefined) throw new Error('a registration had no outcome');
        if (outcome.kind === 'created') counted.delete(each);
        each.resolve(outcome);
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    // A registration that added nothing does not count.
    for (const { key } of counted) limit?.giveBack(key);
  };

  const turn = async (): Promise<void> => {
    const group = waiting.splice(0, GROUP);
    if (group.length === 0) {
      busy = false;
      return;
    }
    const since = monotonic();
    await addGroup(group);
    schedule(monotonic() - since, () => void turn());
  };

  return {
    add: (input, principal, headers) =>
      new Promise((resolve, reject) => {
        waiting.push({ input, by: authorOf({ principal, headers }), key: nameKey(principal), resolve, reject });
        if (busy) return;
        busy = true;
        void turn();
      }),
  };
}

function refuseLowered(input: RouteInput, { id, method, pattern, amount, currency }: StoredRoute): Problem {
  const why =
    input.status !== 'paused' && input.currency !== currency
      ? `This route's price in ${input.currency} cannot be compared with that of`
      : 'This route would be cheaper than';
  const detail = `${why} ${method} ${pattern}, ${amount} ${currency}, for paths that both cover. That price was set on the dashboard or in the configuration: change it there.`;
  return problem('price_lowered', detail, { members: { existing_id: id } });
}
