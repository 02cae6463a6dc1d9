// The port of a chain family, as far as it makes no call: what configuration, the registry and commands need of it. Its rail
// (rail.ts) is made of what only a process that takes payments has.
import type { PaymentKey } from '../../domain/charge.ts';
import type { KnownNetwork, WayInput, WayReading } from '../../domain/network.ts';

export type ChainFamily = {
  /** Those that are known by name. */
  readonly networks: readonly KnownNetwork[];
  /** Undefined: it names no network of this family. */
  readonly readWay: (input: WayInput) => WayReading | undefined;
  /** The one spelling of a payment; undefined: it is none of this family. */
  readonly canonicalPayment: (raw: PaymentKey) => PaymentKey | undefined;
  /** What an address of this family is that was written where one of another belongs; undefined: it is none. */
  readonly nameAddress: (text: string) => string | undefined;
  /** How an address is written. */
  readonly addressForm: string;
  /** How a network is named that is not known by name; undefined: it cannot be. */
  readonly otherNetworks: string | undefined;
};
