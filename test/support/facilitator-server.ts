// A facilitator on loopback: the reference's, as it is, behind a small HTTP server that can be told to misbehave: to answer
// late or never, to lose the connection before or after the money moved, to lie. For tests and the demo.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { x402Facilitator } from '@x402/core/facilitator';

export type FacilitatorOperation = 'verify' | 'settle' | 'supported';

/** What happens to a call instead of, before or after what it asks for. */
export type Fault =
  /** Goes on once `until` is there. */
  | { readonly kind: 'wait'; readonly until: Promise<unknown> }
  /** Never answers; `hold_after` does it first. */
  | { readonly kind: 'hold' }
  | { readonly kind: 'hold_after' }
  /** Ends the connection without an answer; `drop_after` does it first. */
  | { readonly kind: 'drop_before' }
  | { readonly kind: 'drop_after' }
  /** Answers this without doing anything. A string is sent as it is. */
  | {
      readonly kind: 'answer';
      readonly status?: number;
      readonly body: unknown;
      readonly headers?: Record<string, string>;
    }
  /** Does what is asked, and answers under this status. */
  | { readonly kind: 'status'; readonly status: number }
  /** Writes these bytes to the socket and ends it. */
  | { readonly kind: 'raw'; readonly bytes: string }
  /** Answers, and then nobody listens there before `comeBack`. */
  | { readonly kind: 'leave_after' };

export type SeenCall = {
  readonly operation: FacilitatorOperation;
  readonly headers: IncomingMessage['headers'];
  /** Parsed JSON; undefined for /supported. */
  readonly body: unknown;
};

export type TestFacilitator = {
  readonly url: string;
  readonly calls: readonly SeenCall[];
  /** Resolves when the next call of `operation` has been read, before anything is done about it. */
  readonly next: (operation: FacilitatorOperation) => Promise<SeenCall>;
  /** Puts `fault` on the next `times` calls of `operation`. */
  readonly fault: (operation: FacilitatorOperation, fault: Fault, times?: number) => void;
  readonly clearFaults: () => void;
  /** Listens again, where it left. */
  readonly comeBack: () => Promise<void>;
  /** A new facilitator behind the same address: it has forgotten what it sent. */
  readonly forget: () => void;
  readonly close: () => Promise<void>;
};

/** `build` makes one that remembers nothing. */
export async function serveFacilitator(build: () => x402Facilitator, wantedPort = 0): Promise<TestFacilitator> {
  let facilitator = build();

  const perform = async (operation: FacilitatorOperation, body: unknown): Promise<unknown> => {
    if (operation === 'supported') return facilitator.getSupported();
    const { paymentPayload, paymentRequirements } = body as Record<'paymentPayload' | 'paymentRequirements', never>;
    return operation === 'verify'
      ? facilitator.verify(paymentPayload, paymentRequirements)
      : facilitator.settle(paymentPayload, paymentRequirements);
  };

  let left: Promise<unknown> | undefined;
  const calls: SeenCall[] = [];
  const faults = new Map<FacilitatorOperation, { readonly fault: Fault; times: number }[]>();
  const waiting = new Map<FacilitatorOperation, ((call: SeenCall) => void)[]>();

  const takeFault = (operation: FacilitatorOperation): Fault | undefined => {
    const [first] = faults.get(operation) ?? [];
    if (first === undefined) return undefined;
    if (--first.times <= 0) faults.get(operation)?.shift();
    return first.fault;
  };

  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const operation = OPERATIONS.get(`${req.method} ${req.url}`);
    if (operation === undefined) return reply(res, 404, { error: 'not found' });
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body: unknown = operation === 'supported' ? undefined : JSON.parse(Buffer.concat(chunks).toString());
    const call = { operation, headers: req.headers, body };
    calls.push(call);
    for (const resolve of waiting.get(operation)?.splice(0) ?? []) resolve(call);

    const fault = takeFault(operation);
    switch (fault?.kind) {
      case 'hold':
        return;
      case 'drop_before':
        return void req.socket.destroy();
      case 'raw':
        return void req.socket.end(fault.bytes);
      case 'answer':
        return reply(res, fault.status ?? 200, fault.body, fault.headers);
      case 'wait':
        await fault.until;
        break;
      case 'status':
        return reply(res, fault.status, await perform(operation, body));
      case 'leave_after': {
        const said = await perform(operation, body);
        left = once(server, 'close');
        server.close();
        return reply(res, 200, said, { connection: 'close' });
      }
      case 'hold_after':
      case 'drop_after':
        await perform(operation, body);
        if (fault.kind === 'drop_after') req.socket.destroy();
        return;
      case undefined:
        break;
    }
    return reply(res, 200, await perform(operation, body));
  };

  const server = createServer((req, res) => {
    handle(req, res).catch((error: unknown) => reply(res, 500, { error: String(error) }));
  });
  await once(server.listen(wantedPort, '127.0.0.1'), 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    next: (operation) =>
      new Promise((resolve) => {
        waiting.set(operation, [...(waiting.get(operation) ?? []), resolve]);
      }),
    fault: (operation, fault, times = 1) => {
      faults.set(operation, [...(faults.get(operation) ?? []), { fault, times }]);
    },
    clearFaults: () => faults.clear(),
    comeBack: async () => {
      if (left === undefined) return;
      await left;
      left = undefined;
      await once(server.listen(port, '127.0.0.1'), 'listening');
    },
    forget: () => {
      facilitator = build();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const OPERATIONS: ReadonlyMap<string, FacilitatorOperation> = new Map([
  ['POST /verify', 'verify'],
  ['POST /settle', 'settle'],
  ['GET /supported', 'supported'],
]);

function reply(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text =
    typeof body === 'string'
      ? body
      : JSON.stringify(body, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(text);
}
