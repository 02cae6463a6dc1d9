// Asks the services behind every receiver whether they can take payments for it: each facilitator for the scheme,
// network and protocol versions, and the chain, if a node is configured, for the token's EIP-712 domain. Only
// `tollgate check --online` does; a start never waits for any of them. Names services by host, never by URL.
import { z } from 'zod';
import type { Facilitator, Receiver } from '../../domain/receiver.ts';
import type { Clock } from '../../host/clock.ts';
import { ANSWER_LIMITS, MAX_ANSWER_BYTES } from './x402/facilitators.ts';
import { createWriteRequest, readSupportedAnswer, speaksOfPayment } from './x402/facilitator-wire.ts';
import { createRpc } from './json-rpc.ts';
import { callService, urlBelow, type Fetch, type JsonReply } from './service-call.ts';
import { readToken, type Token } from './evm/token.ts';
import type { Authorize } from './x402/auth.ts';
import { UNSIGNED_PAYMENT } from './evm/payload.ts';
import { EVM_WORDS } from './evm/rail.ts';
import { readNotTaken } from './x402/not-taken.ts';

/** `cannot_serve`: payments would be refused. `away`: no answer came. `warning`: worth knowing. */
export type Finding = {
  readonly receiver: string;
  readonly level: 'ok' | 'warning' | 'cannot_serve' | 'away';
  /** A sentence for an operator: what was found and, if it is wrong, what to do. */
  readonly detail: string;
};

export type OnlineDeps = {
  readonly fetch: Fetch;
  readonly clock: Pick<Clock, 'now'>;
  readonly authorize: Authorize;
  /** x402 v1 is enabled. */
  readonly v1: boolean;
};

/** Everything found about `receivers`, in their order. */
export async function checkReceivers(receivers: readonly Receiver[], deps: OnlineDeps): Promise<readonly Finding[]> {
  const found = await Promise.all(
    receivers.map(async (receiver) => [
      ...(await Promise.all(receiver.facilitators.map((facilitator) => checkFacilitator(receiver, facilitator, deps)))),
      ...(await Promise.all(receiver.rpcUrls.map((url) => checkNode(receiver, url, deps)))).flat(),
    ]),
  );
  return found.flat();
}

async function checkFacilitator(receiver: Receiver, facilitator: Facilitator, deps: OnlineDeps): Promise<Finding> {
  const supports = await checkSupported(receiver, facilitator, deps);
  return supports.level === 'ok' ? ((await tryVerify(receiver, facilitator, deps)) ?? supports) : supports;
}

async function checkSupported(receiver: Receiver, facilitator: Facilitator, deps: OnlineDeps): Promise<Finding> {
  const { id, scheme, caip2, v1Network } = receiver;
  const { host } = new URL(facilitator.url);
  const reply = await ask(facilitator, 'supported', undefined, deps);
  const refused = findRefused(receiver, facilitator, reply, deps);
  if (refused !== undefined) return refused;
  if (reply.kind === 'failed') {
    return {
      receiver: id,
      level: 'away',
      detail: `the facilitator ${host} did not say what it supports: ${reply.why}`,
    };
  }
  const kinds = readSupportedAnswer(reply.status, reply.body);
  if (kinds === undefined) {
    const detail = `${host} answers /supported with status ${reply.status} and not as a facilitator does; check facilitators.url and its headers`;
    return { receiver: id, level: 'away', detail };
  }
  const wanted = [{ x402Version: 2, network: caip2 }];
  if (deps.v1 && v1Network !== undefined) wanted.push({ x402Version: 1, network: v1Network });
  const missing = wanted.filter(
    ({ x402Version, network }) =>
      !kinds.some((kind) => kind.x402Version === x402Version && kind.scheme === scheme && kind.network === network),
  );
  if (missing.length === 0) {
    return { receiver: id, level: 'ok', detail: `the facilitator ${host} serves ${scheme} on ${caip2}` };
  }
  const lacks = missing.map(({ x402Version, network }) => `x402 v${x402Version} ${scheme} on ${network}`).join(' and ');
  const detail = `the facilitator ${host} does not serve ${lacks}; use another one${deps.v1 ? ', or switch x402.v1 off if only that is missing' : ''}`;
  return { receiver: id, level: 'cannot_serve', detail };
}

/** Asks about a payment with no valid signature that ended in 1970: any verdict is fine, and nothing can move. */
async function tryVerify(receiver: Receiver, facilitator: Facilitator, deps: OnlineDeps): Promise<Finding | undefined> {
  const offer = { receiver, atomic: 1n, description: 'a question of tollgate check --online' };
  const body = createWriteRequest(EVM_WORDS)({ version: 2, payload: UNSIGNED_PAYMENT }, offer);
  const reply = await ask(facilitator, 'verify', body, deps);
  return findRefused(receiver, facilitator, reply, deps);
}

/** What a facilitator says of the caller rather than of what was asked. */
function findRefused(
  { id }: Receiver,
  { url, auth, account }: Facilitator,
  reply: JsonReply,
  { clock }: OnlineDeps,
): Finding | undefined {
  const notTaken = readNotTaken(reply, (body) => speaksOfPayment('verify', body), clock.now());
  if (notTaken === undefined || notTaken.reason === 'not_carried_out') return undefined;
  const key = auth === undefined || auth.kind === 'bearer' ? '' : ` with the key ${account}`;
  const off =
    notTaken.secondsAhead === undefined ? '' : ` (it is ${notTaken.secondsAhead} s ahead of the facilitator's)`;
  return {
    receiver: id,
    level: notTaken.reason === 'rate_limited' ? 'away' : 'cannot_serve',
    detail: `the facilitator ${new URL(url).host} takes no call${key}: ${notTaken.why}${off}`,
  };
}

async function ask(
  facilitator: Facilitator,
  what: 'supported' | 'verify',
  body: string | undefined,
  { fetch, authorize }: OnlineDeps,
): Promise<JsonReply> {
  const { auth, timeouts } = facilitator;
  const url = urlBelow(facilitator.url, what);
  const method = body === undefined ? 'GET' : 'POST';
  const headers =
    auth === undefined
      ? facilitator.headers
      : { ...facilitator.headers, Authorization: await authorize(auth, method, new URL(url)) };
  const limits = { maxBytes: MAX_ANSWER_BYTES * 16, limits: { ...ANSWER_LIMITS, nodes: 100_000 } };
  // A token is for one call.
  const repeat = auth === undefined && body === undefined ? { mayRepeat: () => true } : {};
  return callService({ method, url, headers, body, timeoutMs: timeouts.verifyMs, ...limits, ...repeat }, fetch);
}

async function checkNode(receiver: Receiver, rpcUrl: string, { fetch }: OnlineDeps): Promise<Finding[]> {
  const { id, caip2, asset } = receiver;
  const { host } = new URL(rpcUrl);
  const found = (level: Finding['level'], detail: string): Finding => ({ receiver: id, level, detail });
  // A public one is only asked about settlements of unknown end: payments are taken without it.
  const away = receiver.rpcPublic ? 'warning' : 'away';
  const rpc = createRpc(rpcUrl, fetch);
  const chainId = await rpc('eth_chainId', [], z.string().regex(/^0x[0-9a-f]{1,16}$/i));
  if (chainId.kind !== 'result') {
    const why = chainId.kind === 'error' ? `error ${chainId.code}` : chainId.detail;
    return [found(away, `the node ${host} did not say which chain it is of: ${why}`)];
  }
  const network = `eip155:${BigInt(chainId.value)}`;
  if (network !== caip2) {
    return [
      found('cannot_serve', `the node ${host} is of ${network}, and this receiver is on ${caip2}; correct rpc_url`),
    ];
  }
  const token = await readToken(rpc, asset);
  switch (token.kind) {
    case 'unavailable':
      return [found(away, `the node ${host} did not answer about the token: ${token.detail}`)];
    case 'no_contract':
      return [found('cannot_serve', `there is no contract at ${asset} on ${caip2}; correct asset or network`)];
    case 'token':
      return compare(receiver, token, found);
    default:
      return token satisfies never;
  }
}

function compare(
  receiver: Receiver,
  token: Token,
  found: (level: Finding['level'], detail: string) => Finding,
): Finding[] {
  const fields = [
    { field: 'asset_name', ours: receiver.assetName, theirs: token.name },
    { field: 'asset_version', ours: receiver.assetVersion, theirs: token.version },
    { field: 'asset_decimals', ours: String(receiver.assetDecimals), theirs: token.decimals?.toString() },
  ];
  const findings = fields.flatMap(({ field, ours, theirs }) => {
    if (theirs === ours) return [];
    if (theirs === undefined) return [found('warning', `the token does not say its ${field}; it cannot be compared`)];
    const effect = field === 'asset_decimals' ? 'prices would be wrong' : 'every payment would be refused';
    return [
      found('cannot_serve', `${field} is ${JSON.stringify(ours)}, the token says ${JSON.stringify(theirs)}; ${effect}`),
    ];
  });
  return findings.length > 0 ? findings : [found('ok', `the token on ${receiver.caip2} is what is configured`)];
}
