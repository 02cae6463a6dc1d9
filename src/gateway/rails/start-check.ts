// Asks the services behind the receivers at a start, so that an owner hears of a mistake before a payer does: every
// facilitator which kinds of payment it takes, every node of which chain it is. It goes over the transport that the
// process has anyway: fetch would take 14 MB of a process that nobody pays yet. Nothing here waits for a request, and a
// service is named by its host, because its URL may hold a key.
import type { Facilitator, Receiver, ReceiverWay } from '../../domain/payment/offer.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import { createWriteBatch } from '../../host/write-batch.ts';
import { createJsonCall } from '../../http/json-call.ts';
import { createPool } from '../../http/pool.ts';
import type { FamilyPayments } from './chain-family.ts';
import { FAMILIES } from './rails.ts';
import { readSupported } from './online-check.ts';
import { urlBelow, type JsonReply } from './service-call.ts';
import type { Authorizer } from './x402/auth.ts';
import type { Kind } from './x402/supported-kinds.ts';

export type ServiceAnswer =
  | { readonly kind: 'fine' }
  /** The facilitator takes these kinds. */
  | { readonly kind: 'kinds'; readonly kinds: readonly Kind[] }
  /** A sentence for an operator. `isRefusal`: the facilitator takes no call of ours. */
  | { readonly kind: 'fault'; readonly sentence: string; readonly isRefusal?: boolean };

/** A question by the name of its service; two ways that ask the same of the same are one question. */
export type ServiceQuestions = ReadonlyMap<string, () => Promise<ServiceAnswer>>;

/** Something wrong, and the questions whose answers show it. */
export type ServiceFault = {
  readonly sentence: string;
  readonly questions: readonly string[];
  /** Receiver that cannot be paid because of it, or the facilitator whose fault it is; undefined: neither. */
  readonly of?: { readonly receiver: string } | { readonly facilitator: string; readonly isRefused: boolean };
};

export type StartCheckDeps = {
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly authorize: Authorizer;
};

const MAX_BYTES = 1024 * 1024;
const NODE_MS = 5_000;

export function startQuestions(receivers: readonly Receiver[], deps: StartCheckDeps): ServiceQuestions {
  const questions = new Map<string, () => Promise<ServiceAnswer>>();
  for (const { way, payments, facilitators, rpcUrls } of waysOf(receivers)) {
    for (const facilitator of facilitators)
      questions.set(nameOfFacilitator(facilitator), () => askFacilitator(facilitator, deps));
    for (const url of rpcUrls)
      questions.set(nameOfNode(url, way.network), () => askNode(url, way.network, payments.identity, deps));
  }
  return questions;
}

/** Finds what is wrong by `answers`; a question without one says nothing yet. `v1`: x402 version 1 is taken too. */
export function findServiceFaults(
  receivers: readonly Receiver[],
  answers: ReadonlyMap<string, ServiceAnswer>,
  v1: boolean,
): readonly ServiceFault[] {
  const faults = [...answers].flatMap(([name, answer]): ServiceFault[] =>
    answer.kind === 'fault'
      ? [{ sentence: answer.sentence, questions: [name], ...faultOf(name, answer.isRefusal) }]
      : [],
  );
  for (const { way, payments, facilitators } of waysOf(receivers)) {
    const questions = facilitators.map(nameOfFacilitator);
    const said = questions.map((name) => answers.get(name));
    // A facilitator that did not say what it takes may take it.
    if (!said.every((answer) => answer?.kind === 'kinds')) continue;
    const v1Network = v1 ? payments.words.v1NameOf(way.network) : undefined;
    const takes = ({ x402Version, scheme, network }: Kind): boolean =>
      scheme === way.scheme &&
      network === (x402Version === 2 ? way.network : x402Version === 1 ? v1Network : undefined);
    if (said.some((answer) => answer?.kind === 'kinds' && answer.kinds.some(takes))) continue;
    const hosts = [...new Set(facilitators.map(({ url }) => new URL(url).host))].join(', ');
    faults.push({
      sentence: `receiver ${way.receiverId}: no facilitator of it (${hosts}) lists ${way.scheme} on ${way.network}, so payments there are refused; name one that does`,
      questions,
      of: { receiver: way.receiverId },
    });
  }
  return faults;
}

function faultOf(question: string, isRefused = false): Pick<ServiceFault, 'of'> {
  const url = new RegExp(`^${FACILITATOR}(\\S+)`).exec(question)?.[1];
  return url === undefined ? {} : { of: { facilitator: new URL(url).host, isRefused } };
}

const FACILITATOR = 'facilitator ';

type PaidWay = ReceiverWay & { readonly payments: FamilyPayments };

function waysOf(receivers: readonly Receiver[]): readonly PaidWay[] {
  return receivers.flatMap(({ ways }) =>
    ways.flatMap((each) => {
      const payments = FAMILIES.find(
        (family) => family.payments?.words.findCaip2(each.way.network) !== undefined,
      )?.payments;
      return payments === undefined ? [] : [{ ...each, payments }];
    }),
  );
}

/** Name of the question that asks a facilitator. */
export function nameOfFacilitator({ url, account }: Facilitator): string {
  return `${FACILITATOR}${url} ${account ?? ''}`;
}

/** Name of the question that asks a node. */
export function nameOfNode(url: string, network: string): string {
  return `node ${url} ${network}`;
}

async function askFacilitator(facilitator: Facilitator, deps: StartCheckDeps): Promise<ServiceAnswer> {
  const url = new URL(urlBelow(facilitator.url, 'supported'));
  const { auth, timeouts } = facilitator;
  const token = auth && { Authorization: await deps.authorize(auth, 'GET', url) };
  const headers = { ...facilitator.headers, ...token };
  const reply = await ask(url, { method: 'GET', headers, withinMs: timeouts.verifyMs }, deps);
  const supported = readSupported(facilitator, reply, deps.clock.now());
  return 'kinds' in supported
    ? { kind: 'kinds', kinds: supported.kinds }
    : { kind: 'fault', sentence: supported.finding.detail, isRefusal: supported.finding.level === 'cannot_serve' };
}

async function askNode(
  nodeUrl: string,
  network: string,
  { method, caip2 }: FamilyPayments['identity'],
  deps: StartCheckDeps,
): Promise<ServiceAnswer> {
  const url = new URL(nodeUrl);
  const json = { jsonrpc: '2.0', id: 1, method, params: [] };
  const reply = await ask(url, { method: 'POST', headers: {}, json, withinMs: NODE_MS }, deps);
  const body = reply.kind === 'reply' ? reply.body : undefined;
  const result: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'result') : undefined;
  const { success, data } = caip2.safeParse(result);
  if (!success) {
    const why = reply.kind === 'failed' ? reply.why : `status ${reply.status}, and no such answer`;
    return { kind: 'fault', sentence: `the node ${url.host} did not say of which chain it is: ${why}` };
  }
  if (data === network) return { kind: 'fine' };
  return {
    kind: 'fault',
    sentence: `the node ${url.host} is of ${data}, and its receiver is on ${network}; correct rpc_url`,
  };
}

type CheckRequest = {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly withinMs: number;
};

async function ask(
  url: URL,
  { method, headers, json, withinMs }: CheckRequest,
  { schedule, clock }: StartCheckDeps,
): Promise<JsonReply> {
  const transport = createPool({
    ...{ upstream: url, writeBatch: createWriteBatch(), maxSockets: 1, now: clock.monotonic },
    timeouts: { connectMs: withinMs, headersMs: withinMs, idleMs: withinMs },
  });
  try {
    const call = createJsonCall({ transport, maxBytes: MAX_BYTES, schedule });
    const written = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'host');
    const response = await call({
      ...{ method, json, withinMs },
      target: `${url.pathname}${url.search}`,
      headers: ['Host', url.host, 'User-Agent', 'tollgate', 'Accept-Encoding', 'identity', ...written.flat()],
    });
    switch (response.kind) {
      case 'response': {
        const { status, dateMs } = response;
        const date = dateMs === undefined ? null : new Date(dateMs).toUTCString();
        const answered = { get: (name: string) => (name === 'date' ? date : null) };
        return { kind: 'reply', status, body: response.json, slow: false, headers: answered };
      }
      case 'unusable':
        return { kind: 'failed', why: `status ${response.status}, ${response.detail}`, sent: true, slow: false };
      case 'failed': {
        const code = /^[A-Z][A-Z0-9_]+(?=:)/.exec(response.detail)?.[0];
        const why = code === undefined ? response.detail : `it cannot be reached (${code})`;
        return { kind: 'failed', why, sent: response.sent, slow: true };
      }
      default:
        return response satisfies never;
    }
  } finally {
    await transport.close();
  }
}
