// Asks the services behind every receiver whether they can take payments for it. Each facilitator is asked about the
// scheme, the network and the protocol versions. A configured node is asked about the chain and the token. Only
// `tollgate check --online` asks all of it; a start asks less (start-check.ts). Services are named by host, never by URL.
import type { RailOffer, Way } from '../../domain/payment/way.ts';
import type { Facilitator, Receiver, ReceiverWay } from '../../domain/payment/offer.ts';
import type { Clock } from '../../host/clock.ts';
import { FAMILIES } from './rails.ts';
import type { FamilyPayments, NodeFinding } from './chain-family.ts';
import type { Fetch, JsonReply } from './service-call.ts';
import type { Authorizer } from './x402/auth.ts';
import { createWriteRequest, speaksOfPayment } from './x402/facilitator-wire.ts';
import { readSupportedAnswer, type Kind } from './x402/supported-kinds.ts';
import { readNotTaken } from './x402/not-taken.ts';
import { requestFacilitator } from './x402/facilitator-calls.ts';

export type Finding = NodeFinding & { readonly receiver: string };

type OnlineDeps = {
  readonly fetch: Fetch;
  readonly clock: Pick<Clock, 'now'>;
  readonly authorize: Authorizer;
  /** x402 v1 is enabled. */
  readonly v1: boolean;
};

/** Everything found about `receivers`, in their order; what is the same for several ways of one is said once. */
export async function checkReceivers(receivers: readonly Receiver[], deps: OnlineDeps): Promise<readonly Finding[]> {
  const found = await Promise.all(receivers.flatMap(({ ways }) => ways.map((way) => checkWay(way, deps))));
  const said = new Set<string>();
  return found.flat().filter(({ receiver, level, detail }) => {
    const sentence = `${receiver} ${level} ${detail}`;
    return !said.has(sentence) && said.add(sentence);
  });
}

async function checkWay(of: ReceiverWay, deps: OnlineDeps): Promise<readonly Finding[]> {
  const { way, facilitators, rpcUrls } = of;
  const payments = FAMILIES.find(({ payments: each }) => each?.words.findCaip2(way.network) !== undefined)?.payments;
  if (payments === undefined) return [];
  const found = await Promise.all([
    ...facilitators.map(async (facilitator) => [await checkFacilitator(way, payments, facilitator, deps)]),
    ...rpcUrls.map((url) => payments.checkNode(way, of, url, deps.fetch)),
  ]);
  return found.flat().map((finding) => ({ receiver: way.receiverId, ...finding }));
}

async function checkFacilitator(
  way: Way,
  payments: FamilyPayments,
  facilitator: Facilitator,
  deps: OnlineDeps,
): Promise<NodeFinding> {
  const supports = await checkSupported(way, payments, facilitator, deps);
  return supports.level === 'ok' ? ((await tryVerify(way, payments, facilitator, deps)) ?? supports) : supports;
}

async function checkSupported(
  { scheme, network: caip2 }: Way,
  { words }: FamilyPayments,
  facilitator: Facilitator,
  deps: OnlineDeps,
): Promise<NodeFinding> {
  const v1Network = words.v1NameOf(caip2);
  const { host } = new URL(facilitator.url);
  const timeoutMs = facilitator.timeouts.verifyMs;
  const reply = await requestFacilitator(facilitator, { name: 'supported', body: undefined, timeoutMs }, deps);
  const supported = readSupported(facilitator, reply, deps.clock.now());
  if ('finding' in supported) return supported.finding;
  const { kinds } = supported;
  const wanted = [{ x402Version: 2, network: caip2 }];
  if (deps.v1 && v1Network !== undefined) wanted.push({ x402Version: 1, network: v1Network });
  const missing = wanted.filter(
    ({ x402Version, network }) =>
      !kinds.some((kind) => kind.x402Version === x402Version && kind.scheme === scheme && kind.network === network),
  );
  if (missing.length === 0) {
    return { level: 'ok', detail: `the facilitator ${host} serves ${scheme} on ${caip2}` };
  }
  const lacks = missing.map(({ x402Version, network }) => `x402 v${x402Version} ${scheme} on ${network}`).join(' and ');
  const detail = `the facilitator ${host} does not serve ${lacks}; use another one${deps.v1 ? ', or switch x402.v1 off if only that is missing' : ''}`;
  return { level: 'cannot_serve', detail };
}

/** The kinds of payment that `facilitator` takes by its answer to /supported, or why it did not say. */
export function readSupported(
  facilitator: Facilitator,
  reply: JsonReply,
  nowMs: number,
): { readonly kinds: readonly Kind[] } | { readonly finding: NodeFinding } {
  const { host } = new URL(facilitator.url);
  const refused = findRefused(facilitator, reply, nowMs);
  if (refused !== undefined) return { finding: refused };
  if (reply.kind === 'failed') {
    const detail = `the facilitator ${host} did not say what it supports: ${reply.why}`;
    return { finding: { level: 'away', detail } };
  }
  const kinds = readSupportedAnswer(reply.status, reply.body);
  if (kinds !== undefined) return { kinds };
  const detail = `${host} answers /supported with status ${reply.status} and not as a facilitator does; check facilitators.url and its headers`;
  return { finding: { level: 'away', detail } };
}

/** Asks for a verdict; any is fine. */
async function tryVerify(
  way: Way,
  { words, unsignedPayment }: FamilyPayments,
  facilitator: Facilitator,
  deps: OnlineDeps,
): Promise<NodeFinding | undefined> {
  const description = 'a question of tollgate check --online';
  const offer: RailOffer = { way, amount: 1n, description, resource: undefined };
  const body = createWriteRequest(words)({ version: 2, payload: unsignedPayment }, offer);
  const timeoutMs = facilitator.timeouts.verifyMs;
  const reply = await requestFacilitator(facilitator, { name: 'verify', body, timeoutMs }, deps);
  return findRefused(facilitator, reply, deps.clock.now());
}

/** An answer of a facilitator that is about the caller, not about the question. */
function findRefused({ url, auth, account }: Facilitator, reply: JsonReply, nowMs: number): NodeFinding | undefined {
  const isVerdict = reply.kind === 'reply' && speaksOfPayment('verify', reply.body);
  const notTaken = isVerdict ? undefined : readNotTaken(reply, nowMs);
  if (notTaken === undefined || notTaken.reason === 'not_carried_out') return undefined;
  const key = auth === undefined || auth.kind === 'bearer' ? '' : ` with the key ${account}`;
  const off =
    notTaken.secondsAhead === undefined ? '' : ` (it is ${notTaken.secondsAhead} s ahead of the facilitator's)`;
  return {
    level: notTaken.reason === 'rate_limited' ? 'away' : 'cannot_serve',
    detail: `the facilitator ${new URL(url).host} takes no call${key}: ${notTaken.why}${off}`,
  };
}
