// The services that the handlers work with. Handlers are plain functions of a call and these; none of them holds state of
// its own.
import type { AttentionEntry } from '../../domain/attention/attention.ts';
import type { MatchRules } from '../../domain/explanation.ts';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { RefundProver } from '../../domain/payment/refund-proof.ts';
import type { Receivers } from '../../domain/payment/offer.ts';
import type { CustomerEntries } from '../../domain/selling/customer.ts';
import type { CounterChanger } from '../../domain/selling/counter.ts';
import type { PassStore } from '../../domain/selling/pass-store.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { Snapshot } from '../../domain/routing/snapshot.ts';
import type { Clock, Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Routes } from '../routes/registry-routes.ts';
import type { SignInResult } from '../desk/desk-admission.ts';
import type { DeskDoor } from '../desk/desk-door.ts';
import type { SignInWay } from '../store/desk-ports.ts';
import type { Feed } from '../stream/feed.ts';
import type { WholeSets } from '../stream/feed-queue.ts';
import type { Registrations } from '../routes/registrations.ts';
import type { Sidecars } from '../stream/sidecars.ts';
import type { Streams } from '../stream/open-streams.ts';
import type { TotalsBook } from '../totals/totals-book.ts';
import type { Webhooks } from '../webhooks/webhook-standings.ts';
import type { WhyReport } from '../charges/charge-schemas.ts';
import type { ChargeStreams } from '../charges/charge-stream.ts';
import type { ExportPlaces } from '../charges/export-places.ts';
import type { NamedNetworks } from '../charges/charge-view.ts';
import type { ConfiguredKey } from '../auth/api-keys.ts';
import type { ReceiverChecks } from '../receivers/receiver-checks.ts';
import type { ReceiverServices } from '../receivers/receiver-services.ts';
import type { Trial } from '../trying/trial.ts';
import type { AuditStore } from '../store/audit-ports.ts';
import type { ApiKeyStore } from '../store/ports.ts';

export type Services = {
  readonly routes: Routes;
  /** Whether the configuration names this route: deleted, it is made again by the next start. */
  readonly isDeclared: (route: Route) => boolean;
  readonly feed: Feed;
  readonly wholeSets: WholeSets;
  readonly streams: Streams;
  readonly sidecars: Sidecars;
  /** Undefined if the store keeps no sessions. */
  readonly desk: DeskDoor | undefined;
  readonly registrations: Registrations;
  /** Ledger; undefined if this registry keeps none: what needs it is 503. */
  readonly ledger: (Ledger & ChargeReports) | undefined;
  /** Counters of requests beside the ledger. */
  readonly counters: CounterChanger | undefined;
  /** Passes that were sold, beside the ledger. */
  readonly passes: PassStore | undefined;
  /** The networks that are known by name, with their explorers. */
  readonly networks: NamedNetworks;
  /** Reads of a chain what it says of a refund. */
  readonly prover: RefundProver;
  readonly exports: ExportPlaces;
  readonly chargeStreams: ChargeStreams;
  /** Undefined if this registry keeps none: what needs them is 503. */
  readonly totals: TotalsBook | undefined;
  /** Undefined if this registry has no endpoints that events are sent to. */
  readonly webhooks: Webhooks | undefined;
  /** What became of a charge, a request or a transaction; compose says it. */
  readonly why: (id: string) => Promise<WhyReport>;
  /** The set that `match` is answered from: compose compiles it. */
  readonly snapshot: () => Snapshot;
  /** Rules of the proxy of this process, or the widest if it has none. */
  readonly matchRules: () => MatchRules;
  /** What the proxy of this process would answer; undefined if it has none. */
  readonly trial: () => Trial | undefined;
  /** Receivers of the configuration in force. */
  readonly receivers: () => Receivers;
  /** Customers who need not pay, of the configuration in force. */
  readonly customers: () => CustomerEntries;
  readonly receiverServices: Pick<ReceiverServices, 'health'>;
  readonly receiverChecks: ReceiverChecks;
  readonly apiKeys: ApiKeyStore;
  /** What needs somebody at this moment, over all processes of the store, worst first. */
  readonly attention: () => Promise<readonly AttentionEntry[]>;
  /** Undefined if the store keeps none. */
  readonly audit: AuditStore | undefined;
  /** Keys of the configuration in force. */
  readonly configuredKeys: () => readonly Pick<ConfiguredKey, 'name' | 'scopes'>[];
  readonly random: Random;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
  /** The OpenAPI document as text, for the origin under which the registry is asked; `/` if that is not known. */
  readonly document: (origin: string) => Promise<string>;
};

/** Hears what the registry was asked: `endpoint` is the id of a row of the table, or `none`. */
export type RegistryObserver = {
  readonly request: (endpoint: string, code: number) => void;
  /** Counts a failed sign-in. `kind` is the credential that was needed. */
  readonly signInRefused: (kind: 'jwt' | 'api_key') => void;
  /** Somebody asked to be let in to the desk. */
  readonly deskSignIn: (via: SignInWay, result: SignInResult) => void;
};
