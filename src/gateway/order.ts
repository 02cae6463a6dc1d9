// What is to be sent upstream for one request that may pass, and what crosses back: the Permit, the canonical target and
// the headers that were decided, together with the record that its end is written to. Only the handler makes orders, from
// a Permit; what they carry is fixed when they are made.
import type { Exchange, Exchanges } from './exchange.ts';
import type { ForwardOrder, ForwardOutcome } from './forward-order.ts';
import { responseHeaders, upstreamHeaders, type ResponseFacts } from './headers.ts';
import type { PaidOutcome } from './outcome.ts';
import { publicOrigin } from './peer.ts';
import type { Permit } from './permit.ts';
import type { RequestOutcome } from './telemetry.ts';

/** What is the same for every order of a configuration. */
export type OrderContext = {
  readonly exchanges: Pick<Exchanges, 'finish'>;
  readonly upstream: URL;
  /** The Host that the upstream is told; undefined: the client's. */
  readonly host: string | undefined;
  readonly publicUrl: string | undefined;
  readonly passPaymentHeaders: boolean;
};

/** `paid`: the claimed charge, for a request that costs something. */
export function createOrder(
  exchange: Exchange,
  permit: Permit,
  paid: PaidOutcome | undefined,
  context: OrderContext,
): ForwardOrder {
  return new Order(exchange, permit, paid, context);
}

/** A class, because every request makes one. */
class Order implements ForwardOrder, ResponseFacts {
  readonly permit: Permit;
  readonly headers: readonly string[];
  readonly passPaymentHeaders: boolean;
  private readonly exchange: Exchange;
  private readonly context: OrderContext;
  private readonly charged: PaidOutcome | undefined;

  constructor(exchange: Exchange, permit: Permit, paid: PaidOutcome | undefined, context: OrderContext) {
    const { req, trace, trusted, protectedPath } = exchange;
    this.permit = permit;
    this.passPaymentHeaders = context.passPaymentHeaders && paid === undefined;
    this.headers = upstreamHeaders(req, {
      permit,
      trace,
      trusted,
      protectedPath,
      passPaymentHeaders: this.passPaymentHeaders,
      host: context.host ?? req.headers.host,
      unconditional: paid?.settles === 'before_response',
    });
    this.exchange = exchange;
    this.context = context;
    this.charged = paid;
  }

  get target(): string {
    return this.exchange.record.target;
  }

  get keep(): ForwardOrder['keep'] {
    return this.charged?.keep;
  }

  get beforeResponse(): ForwardOrder['beforeResponse'] {
    return this.charged?.beforeResponse;
  }

  get requestId(): string {
    return this.exchange.trace.requestId;
  }

  get paid(): boolean {
    return this.charged !== undefined;
  }

  get upstream(): URL {
    return this.context.upstream;
  }

  responseHeaders(status: number, raw: string[]): string[] {
    return responseHeaders(this, status, raw);
  }

  publicOrigin(): string {
    return publicOrigin(this.exchange.req, this.context.publicUrl, this.exchange.trusted);
  }

  done(outcome: ForwardOutcome): void {
    if (this.charged !== undefined) {
      this.charged.done(outcome);
      this.exchange.record.outcome = paidOutcome(outcome, this.charged.tookMoney());
    }
    this.context.exchanges.finish(this.exchange, outcome);
  }
}

/** What a request came to for which a charge was claimed. A failure that is answered with a Problem is an error anyway. */
function paidOutcome(outcome: ForwardOutcome, tookMoney: boolean): RequestOutcome {
  switch (outcome.kind) {
    case 'replaced':
      return outcome.status === 402 ? 'payment_required' : 'error';
    case 'delivered':
      return tookMoney ? 'paid' : 'released';
    case 'client_gone':
      return !tookMoney ? 'released' : outcome.headSent ? 'paid' : 'error';
    case 'not_sent':
      return tookMoney ? 'error' : 'released';
    case 'failed':
      return 'error';
    default:
      return outcome satisfies never;
  }
}
