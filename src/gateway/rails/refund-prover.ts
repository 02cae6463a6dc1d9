// Asks the nodes of a charge's network whether a transaction gave its money back. The nodes of its way are asked in their order,
// or those that answer anybody if the way is not configured here, as in a registry that only keeps charges. What one node does
// not have yet another may.
import type { RefundProof, RefundProver, RefundSubject } from '../../domain/payment/refund-proof.ts';
import type { WayServices } from '../../domain/payment/offer.ts';
import type { Way } from '../../domain/payment/way.ts';
import type { FamilyPayments } from './chain-family.ts';
import { createNodes, type ChainNode, type NodesDeps } from './nodes.ts';
import { FAMILIES, NETWORKS } from './rails.ts';

type RefundProverDeps = NodesDeps & {
  /** Services of a way, as configured now. */
  readonly services: (way: Way) => WayServices | undefined;
};

const CALLS_PER_NODE = 8;

export function createRefundProver(deps: RefundProverDeps): RefundProver {
  const families = FAMILIES.flatMap(({ payments, isTransaction }) =>
    payments === undefined ? [] : [{ payments, isTransaction, nodes: createNodes(deps, payments.identity) }],
  );
  const familyOf = (network: string): (typeof families)[number] | undefined =>
    families.find(({ payments }) => payments.words.findCaip2(network) !== undefined);
  let looks = 0;

  return {
    isTransaction: (network, text) => familyOf(network)?.isTransaction(text) ?? false,
    prove: async (charge, sought) => {
      const { network } = charge.payment;
      const family = familyOf(network);
      const services = deps.services(charge.way);
      const urls = services?.rpcUrls ?? NETWORKS.find(network)?.rpcUrls ?? [];
      if (family === undefined || urls.length === 0)
        return { kind: 'unreadable', why: 'no node is configured for this network' };
      const said: string[] = [];
      let unproven: RefundProof | undefined;
      for (const url of urls) {
        const turn = { first: false, number: looks++, left: CALLS_PER_NODE };
        const confirmations = services?.confirmations ?? 1;
        const view = { node: family.nodes(url), turn, charge, sought, confirmations };
        const found = await askNode(family.payments, view);
        if ('away' in found) said.push(`${new URL(url).host}: ${found.away}`);
        else if (found.kind === 'proven') return found;
        else unproven ??= found;
      }
      return unproven ?? { kind: 'unavailable', why: said.join('; ') };
    },
  };
}

async function askNode(
  { findRefund }: Pick<FamilyPayments, 'findRefund'>,
  view: Parameters<FamilyPayments['findRefund']>[0],
): ReturnType<FamilyPayments['findRefund']> {
  const { node, turn, charge }: { node: ChainNode; turn: typeof view.turn; charge: RefundSubject } = view;
  const fault = await node.findFault(turn, charge.payment.network);
  return fault === undefined ? findRefund(view) : { away: fault };
}
