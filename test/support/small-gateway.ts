// The forwarding half of the data plane with the smallest decision in front of it: what lies under `/free/` is forwarded,
// everything else is answered 402. The tests of forwarding run against it; the whole proxy is put in its place where a
// test is about the journey.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LISTENER_REFUSALS, renderProblem, type Problem } from '../../src/domain/problem.ts';
import { profileFolding } from '../../src/domain/routing/profile.ts';
import { allowedMethods } from '../../src/domain/routing/method.ts';
import { canonicalPath, splitTarget, type TargetOptions } from '../../src/domain/routing/target.ts';
import type { End } from '../../src/gateway/outcome.ts';
import type { RequestRecord } from '../../src/gateway/telemetry.ts';
import { Exchange } from '../../src/gateway/exchange.ts';
import type { ExchangeContext } from '../../src/gateway/exchange-context.ts';
import { inspectInbound } from '../../src/gateway/headers.ts';
import { createResponseMemory, KeptResponse, type ResponseMemory } from '../../src/gateway/pay/kept-responses.ts';
import type { PaidOutcome } from '../../src/gateway/outcome.ts';
import { mintPermit, type Permit } from '../../src/domain/decide.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createLog, type LogFields } from '../../src/host/log.ts';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { respond, type OwnResponse } from '../../src/host/respond.ts';
import { createListener, responseOn, type Listener, type ListenerOptions } from '../../src/host/server.ts';
import { createPool } from '../../src/http/pool.ts';
import type { UpstreamTimeouts } from '../../src/http/transport.ts';
import { steadyPoolClock } from './steady-clock.ts';

export type SmallGateway = {
  readonly port: number;
  readonly listener: Listener;
  readonly outcomes: readonly End[];
  /** How many requests were sent on their way upstream. */
  readonly forwards: () => number;
  readonly lines: readonly LogFields[];
  readonly close: () => Promise<void>;
};

export type SmallGatewayOptions = {
  readonly upstream: URL;
  readonly timeouts?: Partial<UpstreamTimeouts>;
  readonly listenerTimeouts?: { readonly headersMs?: number; readonly idleMs?: number };
  readonly limits?: Partial<ListenerOptions['limits']>;
  readonly maxSockets?: number;
  readonly trusted?: boolean;
  readonly permit?: Permit;
  readonly protectedPath?: boolean;
  readonly passPaymentHeaders?: boolean;
  readonly unconditional?: boolean;
  readonly keepBytes?: number;
  readonly memory?: ResponseMemory;
  readonly beforeResponse?: PaidOutcome['beforeResponse'];
  readonly hearer?: PaidOutcome['hearer'];
  readonly publicUrl?: string;
  /** Every request is forwarded to the target that it came with, an upgrade as a request like others. */
  readonly asIs?: boolean;
  /** Called with each request before it is decided on. */
  readonly onRequest?: (req: IncomingMessage) => void;
};

const TARGET: TargetOptions = {
  limit: 8192,
  methods: allowedMethods(),
  encodedSlashes: 'refuse',
  doubleSlashes: 'merge',
  folding: profileFolding('unknown'),
};

export const PAYMENT_REQUIRED: OwnResponse = {
  status: 402,
  headers: ['Content-Type', 'application/json'],
  body: '{"error":"payment_required"}',
};
export const REQUEST_ID = 'request-of-the-test';

export async function startSmallGateway(options: SmallGatewayOptions): Promise<SmallGateway> {
  const lines: LogFields[] = [];
  const log = createLog(
    'debug',
    (line) => void lines.push(JSON.parse(line) as LogFields),
    () => 0,
  );
  const outcomes: End[] = [];
  let forwards = 0;
  const timeouts = { connectMs: 2000, headersMs: 5000, idleMs: 5000, ...options.timeouts };
  const { upstream, maxSockets = 10_000, passPaymentHeaders = false } = options;
  const writeBatch = createWriteBatch();
  const now = options.timeouts === undefined ? systemClock.monotonic : steadyPoolClock(timeouts);
  const transport = createPool({ upstream, timeouts, maxSockets, writeBatch, now });
  const memory = options.memory ?? createResponseMemory();
  const permit = options.permit ?? mintPermit('unprotected', undefined);
  const exchanges = new Map<RequestRecord, Exchange>();
  const context: ExchangeContext = {
    ...{ transport, writeBatch, log, upstream, passPaymentHeaders, clock: systemClock, idleMs: timeouts.idleMs },
    ...{ host: undefined, publicUrl: options.publicUrl, customerHeaderTrusted: false },
    telemetry: {
      begin: () => undefined,
      end: (record) => {
        const phase = exchanges.get(record)?.phase;
        if (exchanges.delete(record) && phase?.at === 'done' && phase.end !== undefined) outcomes.push(phase.end);
      },
    },
    refuse: (problem) => {
      const told = { outcome: 'error', reason: problem.code, chargeId: undefined, routeId: undefined } as const;
      return { kind: 'response', response: renderProblem(problem), ...told };
    },
  };

  /** What is known of the payment, for a request that costs something. */
  const chargeOf = (): PaidOutcome | undefined => {
    const { keepBytes, unconditional = false, beforeResponse, hearer } = options;
    const isFree = keepBytes === undefined && !unconditional && beforeResponse === undefined && hearer === undefined;
    if (isFree && permit.because !== 'paid') return undefined;
    return {
      kind: 'paid',
      grant: { id: 'chg_test', routeId: 'test', price: { amount: '1', currency: 'USD' }, payer: '0x1', headers: [] },
      route: permit.route as PaidOutcome['route'],
      customerId: undefined,
      settles: unconditional ? 'before_response' : 'before_forward',
      keep: keepBytes === undefined ? undefined : new KeptResponse(memory, keepBytes),
      beforeResponse: beforeResponse ?? (() => ({ kind: 'stream', headers: [] })),
      hearer,
      done: () => undefined,
      tookMoney: () => true,
      tell: async (problem) => problem,
    };
  };

  const forward = (exchange: Exchange, target: string): Exchange => {
    forwards++;
    const { record } = exchange;
    exchanges.set(record, exchange);
    exchange.trace = { requestId: REQUEST_ID, traceparent: undefined, tracestate: undefined, traceId: undefined };
    exchange.trusted = options.trusted ?? false;
    exchange.protectedPath = options.protectedPath ?? true;
    record.target = target;
    exchange.forward(permit, chargeOf());
    return exchange;
  };

  /** Undefined: it was answered here. */
  const decide = (
    req: IncomingMessage,
    answer: (answer: OwnResponse) => undefined,
    begin: () => Exchange,
  ): Exchange | undefined => {
    options.onRequest?.(req);
    if (options.asIs === true) return forward(begin(), req.url ?? '');
    const refuse = (problem: Problem): undefined => answer(renderProblem(problem));
    const malformed = inspectInbound(req);
    if (malformed !== undefined) return refuse(malformed);
    const { headers } = req;
    const target = splitTarget({ method: req.method ?? '', target: req.url ?? '', host: headers.host }, TARGET);
    if ('code' in target) return refuse(target);
    const canonical = canonicalPath(target.rawPath, TARGET);
    if (!canonical.ok) return refuse({ code: 'target_ambiguous', detail: canonical.reason });
    if (!canonical.path.startsWith('/free/')) return answer(PAYMENT_REQUIRED);
    return forward(begin(), canonical.path + target.query);
  };

  const upgrade = (req: IncomingMessage, socket: Socket, head: Buffer): void => {
    const res = responseOn(req, socket);
    decide(
      req,
      (answer) => {
        respond(res, answer);
        return undefined;
      },
      () => new Exchange(context, req, res, head),
    );
  };

  const listener = createListener(
    {
      name: 'proxy',
      listen: { host: '127.0.0.1', port: 0 },
      limits: { headers: 16 * 1024, connections: 1000, ...options.limits },
      timeouts: { headersMs: 5000, idleMs: 5000, ...options.listenerTimeouts },
      refusals: LISTENER_REFUSALS,
      log,
    },
    {
      request: (req: IncomingMessage, res: ServerResponse) =>
        decide(
          req,
          (answer) => {
            respond(res, answer, req.method === 'HEAD');
            return undefined;
          },
          () => new Exchange(context, req, res),
        ),
      ...(options.asIs === true ? {} : { upgrade }),
    },
  );
  const { port } = await listener.start();
  return {
    port,
    listener,
    outcomes,
    lines,
    forwards: () => forwards,
    close: async () => {
      await listener.drain(0, 0);
      await transport.close();
    },
  };
}
