// What the handlers work with. Handlers are plain functions of a call and these; none of them holds state of its own.
import type { UndeclaredMethods } from '../domain/explain.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { RouteBook } from './book.ts';
import type { Feed } from './feed.ts';
import type { Registrations } from './registrations.ts';
import type { RouteStore } from './store/routes.ts';
import type { Streams } from './streams.ts';

export type Services = {
  readonly book: RouteBook;
  readonly list: RouteStore['list'];
  readonly feed: Feed;
  readonly streams: Streams;
  readonly registrations: Registrations;
  /** Undefined where this registry keeps none: what needs it is 503. */
  readonly ledger: (Ledger & Reports) | undefined;
  /** The set that `match` is answered from: compiled by whoever runs this registry. */
  readonly snapshot: () => Snapshot;
  readonly undeclaredMethods: () => UndeclaredMethods;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
  /** The OpenAPI document, serialised. */
  readonly document: string;
};
