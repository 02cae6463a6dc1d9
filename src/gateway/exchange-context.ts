// The parts that every exchange of one configuration uses: transport, telemetry, log, and what is configured about the
// upstream and the clients. A change of the configuration makes a new one; an exchange keeps the one that it began with.
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { WriteBatch } from '../host/write-batch.ts';
import type { Transport } from '../http/transport.ts';
import type { Paywall } from './paywall.ts';
import type { Assert } from './selling/assertion.ts';
import type { Telemetry } from './telemetry.ts';

/** The parts that every exchange of a configuration uses. */
export type ExchangeContext = {
  readonly transport: Transport;
  readonly writeBatch: WriteBatch;
  readonly telemetry: Pick<Telemetry, 'begin' | 'end'>;
  readonly refuse: Paywall['refuse'];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  readonly upstream: URL;
  /** The Host that the upstream is told; undefined: the client's. */
  readonly host: string | undefined;
  readonly publicUrl: string | undefined;
  readonly passPaymentHeaders: boolean;
  /** Signs for the upstream what let a request pass; left out: nothing is signed. */
  readonly assert?: Assert | undefined;
  /** A proxy in front authenticates the customer header. */
  readonly customerHeaderTrusted: boolean;
  /** A tunnel without a byte for so long is closed. */
  readonly idleMs: number;
};
