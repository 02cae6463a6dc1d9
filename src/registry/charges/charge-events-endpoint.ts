// GET /v1/billing/charges/events: changes of charges as they happen, for a page that is kept open.
import type { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import { fail, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { chargeEventsQuery } from './charge-schemas.ts';
import { withLedger } from './ledger-endpoints.ts';

const RETRY_SECONDS = 60;
/** An id that is not one of ours: no change has it, so its client is told to read everything again. */
const UNREADABLE_ID = -1;
const CHANGE = /^\d{1,15}$/;

export function streamCharges(
  { query, headers, principal }: EndpointCall<unknown, z.output<typeof chargeEventsQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async () => {
    const { chargeStreams } = services;
    if (!chargeStreams.hasRoom(principal)) return fail(tooMany());
    await chargeStreams.watch();
    // Others may have come meanwhile.
    if (!chargeStreams.hasRoom(principal)) return fail(tooMany());
    const id = headers['last-event-id'];
    const isNamed = typeof id === 'string' && id !== '';
    const lastSeen = isNamed ? (CHANGE.test(id) ? Number(id) : UNREADABLE_ID) : undefined;
    return {
      kind: 'stream',
      headers: ['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'],
      open: (res) => {
        if (chargeStreams.hasRoom(principal))
          chargeStreams.open(res, { principal, states: query.status, routeId: query.route_id, lastSeen });
        else res.destroy();
      },
    };
  });
}

function tooMany(): ReturnType<typeof problem> {
  return problem('too_many_requests', 'There are as many streams of charges as there may be; ask for the list.', {
    retryAfter: RETRY_SECONDS,
    headers: { Connection: 'close' },
  });
}
