// A payment that is judged for a question, and for the same question asked again meanwhile: all of them get its one end. As long
// as one of them waits, the request has not left.
import type { IncomingMessage } from 'node:http';
import type { UpstreamFault } from '../../http/transport.ts';
import type { AskerFacts, RequestFacts, ResponseOutcome } from '../outcome.ts';
import type { PlannedRequest } from '../selling/way-to-pass.ts';
import type { AskedRequest } from './asked-request.ts';

export type DeliberationFacts = Pick<
  RequestFacts,
  'requestId' | 'method' | 'path' | 'target' | 'publicOrigin' | 'origin' | 'nowMs' | 'customerTrusted'
> & { readonly asker: AskerFacts };

export class Deliberation implements PlannedRequest {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly target: string;
  readonly publicOrigin: string;
  readonly origin: string | undefined;
  readonly nowMs: number;
  readonly customerTrusted: boolean;
  readonly asker: AskerFacts;
  /** The proxy forwards whatever conditions there are. */
  readonly conditionalWrite = false;
  readonly req: IncomingMessage;
  readonly asked: AskedRequest[];
  /** What to say of the charge if the time is over; undefined: there is none yet. */
  stateCharge: (() => ResponseOutcome) | undefined;

  constructor(facts: DeliberationFacts, first: AskedRequest) {
    this.requestId = facts.requestId;
    this.method = facts.method;
    this.path = facts.path;
    this.target = facts.target;
    this.publicOrigin = facts.publicOrigin;
    this.origin = facts.origin;
    this.nowMs = facts.nowMs;
    this.customerTrusted = facts.customerTrusted;
    this.asker = facts.asker;
    this.req = first.req;
    this.asked = [first];
  }

  /** Those that still wait for an answer. */
  waiting(): AskedRequest[] {
    return this.asked.filter(({ isGone }) => !isGone);
  }

  left(): boolean {
    return this.asked.every(({ isGone }) => isGone);
  }

  noteCharge(state: () => ResponseOutcome): void {
    this.stateCharge = state;
  }

  notePayer(payer: string): void {
    for (const { record } of this.asked) record.payer = payer;
  }

  /** No page: the 402 of a decision is the same for everybody. */
  asksForPage(): boolean {
    return false;
  }

  /** The connection to the upstream is the proxy's. */
  connect(): Promise<UpstreamFault | undefined> {
    return Promise.resolve(undefined);
  }
}
