// Finds the way that a payment names: in version 2 by network, asset and receiving address, in version 1 by its network
// alone. A payment is never tried as another way than the one that it names. What a mismatch is told is made of our own words.
import type { Way } from '../../../domain/payment/way.ts';
import type { Refusal } from '../rail.ts';
import type { ChainWords } from './chain-words.ts';
import type { Envelope } from './envelope.ts';

/** To a payment that names none of the ways that it was read for, or that holds one of another kind than its way's. */
export function wayMismatch(expected: string): Refusal {
  return { reason: 'way_mismatch', expected };
}

/** `chain`: of the network that `envelope` names; undefined: it is of no chain that is known here. */
export function chooseWay(
  { version, network, accepted }: Envelope,
  ways: readonly Way[],
  chain: ChainWords | undefined,
): Way | Refusal {
  const there = ways.filter((way) => (version === 2 ? way.network : chain?.v1NameOf(way.network)) === network);
  const [first] = there;
  if (first === undefined || chain === undefined) return wayMismatch(whereNone(version, network, ways, chain));
  // Version 1 says no more.
  if (accepted === undefined) return first;
  const inAsset = there.filter(({ asset }) => chain.isSameAddress(asset, accepted.asset));
  const found = inAsset.find(({ payTo }) => chain.isSameAddress(payTo, accepted.payTo));
  if (found !== undefined) return found;
  return inAsset.length === 0
    ? wayMismatch(`asset ${oneOf(there.map(({ asset }) => asset))} on ${first.network}`)
    : wayMismatch(`payTo ${oneOf(inAsset.map(({ payTo }) => payTo))} on ${first.network}`);
}

/** Only a name that is known is repeated: then it is ours. */
function whereNone(
  version: Envelope['version'],
  network: string,
  ways: readonly Way[],
  chain: ChainWords | undefined,
): string {
  const caip2 = chain?.isKnown(network) === true ? chain.findCaip2(network) : undefined;
  if (chain === undefined || caip2 === undefined) return 'this network is not offered';
  if (!ways.some((way) => way.network === caip2)) return `network ${caip2} is not offered`;
  const name = version === 2 ? caip2 : chain.v1NameOf(caip2);
  return name === undefined
    ? `network ${caip2} is not offered in version 1`
    : `network ${name}, as version ${version} names it`;
}

function oneOf(values: readonly string[]): string {
  return [...new Set(values)].join(' or ');
}
