// What a process knows of the services behind its receivers, for people: by the payments that its proxy or its workers asked
// about, and, before there were any, by what they said at the start. And the check that `tollgate check --online` makes.
import type { Config } from '../config/config.ts';
import type { Facilitator, Receiver } from '../domain/payment/offer.ts';
import {
  facilitatorKey,
  UNASKED,
  type FacilitatorHealth,
  type FacilitatorHealths,
} from '../domain/payment/service-health.ts';
import { checkReceivers, type Finding } from '../gateway/rails/online-check.ts';
import { nameOfFacilitator, nameOfNode } from '../gateway/rails/start-check.ts';
import { createAuthorize } from '../gateway/rails/x402/auth.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { ReceiverServices } from '../registry/receivers/receiver-services.ts';
import type { KnownAnswer, ServicesCheck } from './services-check.ts';
import type { Settings } from './settings.ts';

type Asker = { readonly clock: Clock; readonly random: Random };

/** Asks the services of `receivers` whether they can take payments. */
export function checkOnline(
  receivers: readonly Receiver[],
  { x402 }: Pick<Config, 'x402'>,
  { clock, random }: Asker,
): Promise<readonly Finding[]> {
  return checkReceivers(receivers, { fetch, clock, authorize: createAuthorize(clock, random), v1: x402.v1 });
}

type ReceiverServicesDeps = Asker & {
  readonly settings: Settings;
  /** Undefined before the start is over, and in a process without a proxy. */
  readonly services: () => ServicesCheck | undefined;
  /** Health by the calls of the proxy; undefined without one. */
  readonly healths: () => Promise<FacilitatorHealths> | undefined;
};

/** An answer over a sidecar's relay has to begin within ten seconds, and a facilitator is asked twice. */
const CALL_MS = 4_000;

export function createReceiverServices({
  settings,
  services,
  healths,
  clock,
  random,
}: ReceiverServicesDeps): ReceiverServices {
  return {
    health: async () => {
      const known = services()?.look() ?? new Map<string, KnownAnswer>();
      const byCalls = (await healths()) ?? {};
      return {
        facilitator: (facilitator) => {
          const health = byCalls[facilitatorKey(facilitator)];
          if (health !== undefined && health.status !== 'unasked') return health;
          return healthBy(known.get(nameOfFacilitator(facilitator)));
        },
        node: (url, network) => {
          const { answer } = known.get(nameOfNode(url, network)) ?? {};
          return answer === undefined ? 'unasked' : answer.kind === 'fault' ? 'failing' : 'ok';
        },
      };
    },
    check: async (receiver) => {
      const findings = await checkOnline([withinTime(receiver)], settings.config, { clock, random });
      // What was found stands in the list as well.
      void services()?.ask();
      return findings;
    },
  };
}

function healthBy(known: KnownAnswer | undefined): FacilitatorHealth {
  if (known === undefined) return UNASKED;
  const { answer, sinceMs } = known;
  if (answer.kind !== 'fault') return { ...UNASKED, status: 'ok', sinceMs };
  const status = answer.isRefusal === true ? 'unauthorized' : 'failing';
  return { ...UNASKED, status, sinceMs, lastError: answer.sentence };
}

function withinTime(receiver: Receiver): Receiver {
  const shorten = (facilitator: Facilitator): Facilitator => {
    const verifyMs = Math.min(facilitator.timeouts.verifyMs, CALL_MS);
    return { ...facilitator, timeouts: { ...facilitator.timeouts, verifyMs } };
  };
  return {
    ...receiver,
    ways: receiver.ways.map((way) => ({ ...way, facilitators: way.facilitators.map(shorten) })),
  };
}
