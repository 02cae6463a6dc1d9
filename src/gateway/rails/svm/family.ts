// The Solana networks as a chain family: those that are known by name.
import type { ChainFamily, FamilyPayments, FindingLevel, NodeFinding } from '../chain-family.ts';
import { isSvmAddress, findTokenAccount, TOKEN_PROGRAM } from './addresses.ts';
import { SVM_IDENTITY } from './look.ts';
import { SVM_NETWORKS, caip2OfGenesis } from './known-networks.ts';
import { hasTransaction, UNSIGNED_PAYMENT, canonicalPayment } from './payload.ts';
import { createSvmRail, fullRequirement, SVM_WORDS } from './svm-rail.ts';
import { readSvmWay } from './read-way.ts';
import { z } from 'zod';
import { createRpc } from '../nodes.ts';

export const SVM: ChainFamily = {
  networks: SVM_NETWORKS,
  readWay: readSvmWay,
  canonicalPayment,
  // Base58 means something else in another letter case.
  canonicalIdentifier: () => undefined,
  nameAddress: (text) => (isSvmAddress(text) ? 'an address of Solana' : undefined),
  addressForm: 'base58 of 32 bytes, in quotes',
  otherNetworks: undefined,
  isPaidInBrowser: () => false,
  payments: {
    createRail: createSvmRail,
    words: SVM_WORDS,
    fullRequirement,
    isPayment: hasTransaction,
    unsignedPayment: UNSIGNED_PAYMENT,
    identity: SVM_IDENTITY,
    checkNode,
  },
};

// Asks a node of a Solana network three things: which network it is of, whether the mint can be paid with, and whether
// the receiving account exists.

const accountSchema = z.object({ value: z.object({ owner: z.string() }).nullable() });

async function checkNode(
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
