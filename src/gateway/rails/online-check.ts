// Asks the services behind every receiver whether they can take payments for it: each facilitator for the scheme,
// network and protocol versions, and the chain, where a node is configured, for the token's EIP-712 domain. Only
// `tollgate check --online` does; a start never waits for any of them. Names services by host, never by URL.
import { z } from 'zod';
import type { Facilitator, Receiver } from '../../domain/receiver.ts';
import { ANSWER_LIMITS, MAX_ANSWER_BYTES } from './x402/facilitators.ts';
import { readSupportedAnswer } from './x402/facilitator-wire.ts';
import { createRpc } from './evm/json-rpc.ts';
import { callService, urlBelow, type Fetch } from './service-call.ts';
import { readToken, type Token } from './evm/token.ts';

/** `cannot_serve`: payments would be refused. `away`: nobody could say. `warning`: worth knowing. */
export type Finding = {
  readonly receiver: string;
  readonly level: 'ok' | 'warning' | 'cannot_serve' | 'away';
  /** A sentence for an operator: what was found and, where it is wrong, what to do. */
  readonly detail: string;
};

export type OnlineDeps = {
  readonly fetch: Fetch;
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
  const { id, scheme, caip2, v1Network } = receiver;
  const { host } = new URL(facilitator.url);
  const reply = await callService(
    {
      method: 'GET',
      url: urlBelow(facilitator.url, 'supported'),
      headers: facilitator.headers,
      body: undefined,
      timeoutMs: facilitator.timeouts.verifyMs,
      mayRepeat: () => true,
      maxBytes: MAX_ANSWER_BYTES * 16,
      limits: { ...ANSWER_LIMITS, nodes: 100_000 },
    },
    deps.fetch,
  );
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
