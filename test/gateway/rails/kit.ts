// What the tests of the rail share: an offer, credentials written by hand, and facilitators and nodes that are only a
// socket with a script, so that they can say anything.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished, vi } from 'vitest';
import type { RailOffer, Way } from '../../../src/domain/payment/way.ts';
import type { Facilitator, Receiver, WayServices } from '../../../src/domain/payment/offer.ts';
import { createRandom, systemClock, systemSchedule } from '../../../src/host/clock.ts';
import { createLog } from '../../../src/host/log.ts';
import type { LookSubject, PresentedPayment, Rail, SendGuard, SettleHistory } from '../../../src/gateway/rails/rail.ts';
import { createAuthorize } from '../../../src/gateway/rails/x402/auth.ts';
import { createRails, type Rails } from '../../../src/gateway/rails/rails.ts';
import type { FacilitatorDeps } from '../../../src/gateway/rails/x402/facilitator-calls.ts';
import { receiverOf, wayOf, type PlainReceiver } from '../../cases/receivers.ts';
import type { Payer, Signed, Wanted } from '../../support/chain/payer.ts';

export const PAY_TO = '0x00000000000000000000000000000000000BeeF0';
export const PRICE = 100_000n;

export function makeReceiver(overrides: Partial<PlainReceiver> = {}): Receiver {
  return receiverOf({ payTo: PAY_TO, ...overrides });
}

/** Who is asked about the offers that were made here. */
const SERVICES = new WeakMap<Way, WayServices>();
export const servicesOf = (way: Way): WayServices | undefined => SERVICES.get(way);

/** An offer of the one way of `receiver`. */
export function offerOf(receiver: Receiver, amount = PRICE): RailOffer {
  const { way, ...services } = wayOf(receiver);
  SERVICES.set(way, services);
  return { way, amount, description: 'a report', resource: 'http://api.test/report' };
}

export function makeOffer(overrides: Partial<PlainReceiver> = {}, amount = PRICE): RailOffer {
  return offerOf(makeReceiver(overrides), amount);
}

/** `offer` in a way that differs in this. */
export function changed(offer: RailOffer, changes: Partial<Way & WayServices>): RailOffer {
  const { facilitators, rpcUrls, rpcPublic, confirmations } = {
    ...wayOf(makeReceiver()),
    ...servicesOf(offer.way),
    ...changes,
  };
  const { receiverId, network, scheme, asset, decimals, payTo, timeoutSeconds, terms } = { ...offer.way, ...changes };
  const way = { receiverId, network, scheme, asset, decimals, payTo, timeoutSeconds, terms };
  SERVICES.set(way, { facilitators, rpcUrls, rpcPublic, confirmations });
  return { ...offer, way };
}

export function facilitatorAt(
  url: string,
  timeouts: Partial<Facilitator['timeouts']> = {},
  limits: Facilitator['limits'] = { calls: 512, waiting: 512 },
): Facilitator {
  return {
    url,
    headers: {},
    timeouts: { verifyMs: 5000, settleMs: 15_000, ...timeouts },
    limits,
    auth: undefined,
    account: undefined,
  };
}

export type RailKit = { readonly rail: Rails; readonly lines: string[]; readonly calls: string[] };

/** A rail, what it logged, and `operation:result` of every call it made. */
export function makeRail(overrides: Partial<FacilitatorDeps> = {}): RailKit {
  const lines: string[] = [];
  const calls: string[] = [];
  const rail = createRails({
    fetch,
    schedule: systemSchedule,
    clock: systemClock,
    services: servicesOf,
    authorize: createAuthorize(systemClock, createRandom()),
    log: createLog('debug', (line) => lines.push(line), Date.now),
    observe: ({ operation, result }) => calls.push(`${operation}:${result}`),
    ...overrides,
  });
  return { rail, lines, calls };
}

export function encode(json: unknown): string {
  return Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)).toString('base64');
}

/** The terms that a v2 client echoes. */
export function acceptedOf(offer: RailOffer, externalRef = 'chg_test'): Record<string, unknown> {
  const { way, amount } = offer;
  return {
    scheme: way.scheme,
    network: way.network,
    amount: amount.toString(),
    asset: way.asset,
    payTo: way.payTo,
    maxTimeoutSeconds: way.timeoutSeconds,
    extra: { ...way.terms, external_ref: externalRef },
  };
}

export function v2Json(offer: RailOffer, payload: unknown): Record<string, unknown> {
  const resource = { url: 'http://api.test/report', description: 'a report', mimeType: 'application/json' };
  return { x402Version: 2, resource, accepted: acceptedOf(offer), payload };
}

/** A signed payment of `offer`, read by `rail`. */
export async function present(
  rail: Rail,
  payer: Payer,
  offer: RailOffer,
  wanted: Partial<Wanted> = {},
): Promise<PresentedPayment> {
  const signed = await payer.authorize({ to: offer.way.payTo, value: offer.amount, ...wanted });
  return read(rail, offer, signed);
}

export function read(rail: Rail, offer: RailOffer, signed: Signed): PresentedPayment {
  const presented = rail.read({ version: 2, value: encode(v2Json(offer, signed)) }, [offer.way]);
  if (!('key' in presented)) throw new Error(JSON.stringify(presented));
  return presented;
}

/** Nothing was asked before, and nobody objects. */
export const FRESH: SettleHistory = { afterUnknown: false, via: undefined };
export const GO: SendGuard = async () => true;

/** Nobody's signature over nobody's money: for everything that is decided before a signature matters. */
export const SIGNED: Signed = {
  signature: `0x${'ab'.repeat(65)}`,
  authorization: {
    from: '0x1111111111111111111111111111111111111111',
    to: PAY_TO,
    value: PRICE.toString(),
    validAfter: '0',
    validBefore: '99999999999',
    nonce: `0x${'cd'.repeat(32)}`,
  },
};

/** A charge as the chain is looked at for it. */
export function looked({
  payer = '0x1111111111111111111111111111111111111111',
  nonce = `0x${'cd'.repeat(32)}`,
  createdAt = Date.now(),
  validBefore = BigInt(Math.floor(Date.now() / 1000) + 300),
  payTo = PAY_TO,
  amount = PRICE,
}: {
  payer?: string;
  nonce?: string;
  createdAt?: number;
  validBefore?: bigint;
  payTo?: string;
  amount?: bigint;
} = {}): LookSubject {
  const { way } = wayOf(makeReceiver());
  const { network, asset } = way;
  return {
    payment: { network, asset: asset.toLowerCase(), payer, unique: nonce },
    way: { ...way, payTo },
    amount,
    deadline: validBefore,
    search: null,
    credential: null,
    x402Version: 2,
    createdAt,
  };
}

export type Answering = (req: IncomingMessage, res: ServerResponse, body: string) => void;
export type Scripted = {
  readonly url: string;
  readonly requests: {
    readonly method: string;
    readonly url: string;
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
  }[];
  answer: Answering;
  readonly close: () => Promise<void>;
};

/** An HTTP server that does what it is told. */
export async function startScripted(answer: Answering): Promise<Scripted> {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('error', () => undefined);
    req.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      scripted.requests.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers, body });
      scripted.answer(req, res, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const scripted: Scripted = {
    url: `http://127.0.0.1:${port}`,
    requests: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return scripted;
}

export function json(res: ServerResponse, body: unknown, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** An address on loopback where nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = await startScripted((_, res) => res.end());
  await server.close();
  return server.url;
}

/** Time that moves when it is told to, for the rest of the test: that of everything, ky's as well. */
export function fakeTime(): {
  readonly schedule: FacilitatorDeps['schedule'];
  readonly clock: FacilitatorDeps['clock'];
  /** Timers of `schedule` that run. */
  readonly pending: () => number;
  readonly advance: (ms: number) => void;
} {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const scheduled = new Set<symbol>();
  return {
    // The system's clock is bound to the real one.
    clock: { now: systemClock.now, monotonic: () => performance.now() },
    schedule: (ms, run) => {
      const id = Symbol('timer');
      scheduled.add(id);
      const cancel = systemSchedule(ms, () => scheduled.delete(id) && run());
      return () => {
        scheduled.delete(id);
        cancel();
      };
    },
    pending: () => scheduled.size,
    advance: (ms) => void vi.advanceTimersByTime(ms),
  };
}
