// Asks a node of an EVM chain which network it is of, and a way's token for its name and version. A receiver that is
// configured with another EIP-712 name or version refuses every honest payment, which is the classic mistake. Asked by
// `tollgate check --online`, never on the way of a request.
import { z } from 'zod';
import type { Way } from '../../../domain/payment/way.ts';
import type { FamilyPayments, FindingLevel, NodeFinding } from '../chain-family.ts';
import { createRpc } from '../json-rpc.ts';
import { type Token, readToken } from './token-facts.ts';

export const checkNode: FamilyPayments['checkNode'] = async (way, services, rpcUrl, fetch) => {
  const { network: caip2, asset } = way;
  const { host } = new URL(rpcUrl);
  // A public one is only asked about settlements of unknown end: payments are taken without it.
  const away = services.rpcPublic ? 'warning' : 'away';
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
      return compare(way, token);
    default:
      return token satisfies never;
  }
};

function found(level: FindingLevel, detail: string): NodeFinding {
  return { level, detail };
}

function compare({ network, decimals, terms }: Way, token: Token): readonly NodeFinding[] {
  const fields = [
    { field: 'asset_name', ours: terms['name'], theirs: token.name },
    { field: 'asset_version', ours: terms['version'], theirs: token.version },
    { field: 'asset_decimals', ours: String(decimals), theirs: token.decimals?.toString() },
  ];
  const findings = fields.flatMap(({ field, ours, theirs }) => {
    if (theirs === ours) return [];
    if (theirs === undefined) return [found('warning', `the token does not say its ${field}; it cannot be compared`)];
    const effect = field === 'asset_decimals' ? 'prices would be wrong' : 'every payment would be refused';
    return [
      found('cannot_serve', `${field} is ${JSON.stringify(ours)}, the token says ${JSON.stringify(theirs)}; ${effect}`),
    ];
  });
  return findings.length > 0 ? findings : [found('ok', `the token on ${network} is what is configured`)];
}
