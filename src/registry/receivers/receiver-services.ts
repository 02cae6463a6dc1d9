// The port between the registry and what the process knows of the services behind its receivers. Receivers are of the
// configuration; who asks their facilitators and nodes is compose's to know.
import type { Facilitator, Receiver } from '../../domain/payment/offer.ts';
import { UNASKED, type FacilitatorHealth, type NodeStatus } from '../../domain/payment/service-health.ts';

/** Levels of a finding, as `tollgate check --online` prints them. */
export const FINDING_LEVELS = ['ok', 'warning', 'cannot_serve', 'away'] as const;
export type ReceiverFinding = { readonly level: (typeof FINDING_LEVELS)[number]; readonly detail: string };

/** Health of the services behind the receivers at one moment. */
export type ServicesHealth = {
  readonly facilitator: (facilitator: Facilitator) => FacilitatorHealth;
  readonly node: (url: string, network: string) => NodeStatus;
};

export type ReceiverServices = {
  /** Never rejects: what is not known is `unasked`. */
  readonly health: () => Promise<ServicesHealth>;
  /** Asks the services of a receiver what `tollgate check --online` asks them. */
  readonly check: (receiver: Receiver) => Promise<readonly ReceiverFinding[]>;
};

/** Stands for the services where nobody asks them. */
export const KNOWS_NO_SERVICES: ReceiverServices = {
  health: () => Promise.resolve({ facilitator: () => UNASKED, node: () => 'unasked' }),
  check: () => Promise.resolve([]),
};
