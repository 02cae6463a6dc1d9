// Remembers the last requests that this process refused or asked to pay, with the reason why. They stand in memory
// alone, in a ring: 10,000 of them hold some 5 MB at most. A request is kept as its log line says it, without the
// query.
import type { Clock } from '../host/clock.ts';
import type { RequestOutcome } from '../domain/totals/request-counts.ts';
import type { RequestRecord } from './telemetry.ts';

export type RefusedRequest = {
  /** Time at which the request came, in milliseconds since the epoch: always the same for one request. */
  readonly at: number;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: RequestOutcome;
  readonly reason: string | undefined;
  readonly routeId: string | undefined;
  /** Charge id that the 402 offered. */
  readonly chargeId: string | undefined;
};

export type RefusedRequests = {
  readonly add: (record: RequestRecord, at: number) => void;
  /** Newest first. */
  readonly find: (accepts: (refusal: RefusedRequest) => boolean, limit: number) => readonly RefusedRequest[];
};

const KEPT = 10_000;
const PATH_CHARACTERS = 256;

export function createRefusals(kept = KEPT): RefusedRequests {
  const ring: RefusedRequest[] = [];
  let next = 0;
  return {
    add: (record, at) => {
      const { requestId, method, status, outcome, reason, routeId, chargeId } = record;
      ring[next] = { at, requestId, method, path: pathOf(record), status, outcome, reason, routeId, chargeId };
      next = (next + 1) % kept;
    },
    find: (accepts, limit) => {
      const found: RefusedRequest[] = [];
      for (let age = 1; age <= ring.length && found.length < limit; age++) {
        const refusal = ring[(next - age + kept) % kept];
        if (refusal !== undefined && accepts(refusal)) found.push(refusal);
      }
      return found;
    },
  };
}

/** Copies the path: a part of a longer text would keep the whole of it in memory. */
function pathOf({ path, target }: RequestRecord): string {
  if (path.length <= PATH_CHARACTERS && target.length <= path.length) return path;
  return Buffer.from(path.slice(0, PATH_CHARACTERS), 'latin1').toString('latin1');
}

/** Remembers each request that telemetry tells of as refused. `now`: its end, by the monotonic clock. */
export function rememberRefusals(
  refusals: Pick<RefusedRequests, 'add'>,
  clock: Pick<Clock, 'now'>,
): (record: RequestRecord, now: number) => void {
  return (record, now) => refusals.add(record, clock.now() - (now - record.startedAt));
}
