// The forwarding half of the data plane with the smallest decision in front of it: what lies under `/free/` is forwarded,
// everything else is answered 402. The tests of forwarding run against it; the whole proxy is put in its place where a
// test is about the journey.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LISTENER_REFUSALS, renderProblem, type Problem } from '../../src/domain/problem.ts';
import { profileFolding } from '../../src/domain/profile.ts';
import { allowedMethods } from '../../src/domain/method.ts';
import { canonicalPath, splitTarget, type TargetOptions } from '../../src/domain/target.ts';
import { createForwarder } from '../../src/gateway/forward.ts';
import type { ForwardOrder, ForwardOutcome } from '../../src/gateway/forward-order.ts';
import type { UpstreamTimeouts } from '../../src/http/transport.ts';
import { inspectInbound, responseHeaders, upstreamHeaders } from '../../src/gateway/headers.ts';
import { createResponseMemory, KeptResponse, type ResponseMemory } from '../../src/gateway/kept-responses.ts';
import { mintPermit, type Permit } from '../../src/gateway/permit.ts';
import { createUpgrader } from '../../src/gateway/upgrade.ts';
import { createLog, type LogFields } from '../../src/host/log.ts';
import { respond, type Answer } from '../../src/host/respond.ts';
import { createListener, responseOn, type Listener, type ListenerOptions } from '../../src/host/server.ts';

export type SmallGateway = {
  readonly port: number;
  readonly listener: Listener;
  readonly outcomes: readonly ForwardOutcome[];
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
  readonly beforeResponse?: ForwardOrder['beforeResponse'];
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

export const PAYMENT_REQUIRED: Answer = {
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
  const outcomes: ForwardOutcome[] = [];
  let forwards = 0;
  const timeouts = { connectMs: 2000, headersMs: 5000, idleMs: 5000, ...options.timeouts };
  const maxSockets = options.maxSockets === undefined ? {} : { maxSockets: options.maxSockets };
  const forwarder = createForwarder({ upstream: options.upstream, timeouts, log, ...maxSockets });
  const { transport } = forwarder;
  const upgrader = createUpgrader({ transport, idleMs: timeouts.idleMs, log });
  const memory = options.memory ?? createResponseMemory();
  const permit = options.permit ?? mintPermit('unprotected', undefined);

  const decide = (
    req: IncomingMessage,
    answer: (answer: Answer) => void,
    send: (order: ForwardOrder) => void,
  ): void => {
    options.onRequest?.(req);
    const refuse = (problem: Problem): void => answer(renderProblem(problem));
    const malformed = inspectInbound(req);
    if (malformed !== undefined) return refuse(malformed);
    const { headers } = req;
    const target = splitTarget({ method: req.method ?? '', target: req.url ?? '', host: headers.host }, TARGET);
    if ('code' in target) return refuse(target);
    const canonical = canonicalPath(target.rawPath, TARGET);
    if (!canonical.ok) return refuse({ code: 'target_ambiguous', detail: canonical.reason });
    if (!canonical.path.startsWith('/free/')) return answer(PAYMENT_REQUIRED);
    forwards++;
    const passPaymentHeaders = options.passPaymentHeaders ?? false;
    const facts = {
      requestId: REQUEST_ID,
      paid: permit.because === 'paid',
      passPaymentHeaders,
      upstream: options.upstream,
      publicOrigin: () => `http://${headers.host}`,
    };
    send({
      permit,
      target: canonical.path + target.query,
      headers: upstreamHeaders(req, {
        permit,
        trace: { requestId: REQUEST_ID, traceparent: undefined, tracestate: undefined, traceId: undefined },
        trusted: options.trusted ?? false,
        protectedPath: options.protectedPath ?? true,
        passPaymentHeaders,
        host: headers.host,
        unconditional: options.unconditional ?? false,
      }),
      responseHeaders: (status, raw) => responseHeaders(facts, status, raw),
      keep: options.keepBytes === undefined ? undefined : new KeptResponse(memory, options.keepBytes),
      beforeResponse: options.beforeResponse,
      done: (outcome) => {
        outcomes.push(outcome);
        if (outcome.kind === 'failed' && !outcome.headersSent)
          refuse({ code: outcome.code, detail: 'The upstream failed.' });
        if (outcome.kind === 'client_gone' && outcome.upload === 'stalled')
          refuse({ code: 'request_timeout', detail: 'The upload stopped.' });
      },
    });
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
          (answer) => respond(res, answer, req.method === 'HEAD'),
          (order) => forwarder.forward(req, res, order),
        ),
      upgrade: (req: IncomingMessage, socket: Socket, head: Buffer) =>
        decide(
          req,
          (answer) => respond(responseOn(req, socket), answer),
          (order) => upgrader.forwardUpgrade(req, socket, head, order),
        ),
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
      await forwarder.close();
    },
  };
}
