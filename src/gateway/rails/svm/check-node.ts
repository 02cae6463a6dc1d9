// Asks a node of a Solana network three things: which network it is of, whether the mint can be paid with, and whether
// the receiving account exists.
import type { FamilyPayments, FindingLevel, NodeFinding } from '../chain-family.ts';
import { findTokenAccount, TOKEN_PROGRAM } from './addresses.ts';
import { caip2OfGenesis } from './known-networks.ts';
import { z } from 'zod';
import { createRpc } from '../json-rpc.ts';

const accountSchema = z.object({ value: z.object({ owner: z.string() }).nullable() });

export async function checkNode(
  ...[{ network, asset, payTo }, services, url, fetch]: Parameters<FamilyPayments['checkNode']>
): Promise<readonly NodeFinding[]> {
  const { host } = new URL(url);
  const away = services.rpcPublic ? 'warning' : 'away';
  const rpc = createRpc(url, fetch);
  const genesis = await rpc('getGenesisHash', [], z.string().max(64));
  if (genesis.kind !== 'result') return [found(away, `the node ${host} did not say of which network it is`)];
  const caip2 = caip2OfGenesis(genesis.value);
  if (caip2 !== network)
    return [
      found('cannot_serve', `the node ${host} is of ${caip2}, and this receiver is on ${network}; correct rpc_url`),
    ];
  const options = { encoding: 'base64', commitment: 'confirmed' };
  const mint = await rpc('getAccountInfo', [asset, options], accountSchema);
  const account = findTokenAccount(payTo, asset) ?? '';
  const receiving = await rpc('getAccountInfo', [account, options], accountSchema);
  if (mint.kind !== 'result' || receiving.kind !== 'result')
    return [found(away, `the node ${host} did not answer about the token`)];
  if (mint.value.value?.owner !== TOKEN_PROGRAM)
    return [
      found('cannot_serve', `${asset} is no mint of the SPL Token program on ${network}; correct asset or network`),
    ];
  if (receiving.value.value === null) {
    const how = 'send any amount of the token to pay_to_address once, which makes it';
    return [found('cannot_serve', `the token account ${account} of pay_to_address does not exist; ${how}`)];
  }
  return [found('ok', `the mint and the token account on ${network} are there`)];
}

function found(level: FindingLevel, detail: string): NodeFinding {
  return { level, detail };
}
