// Joins all networks to one, of whatever chain family: their names, how a way to pay is read, how a payment is spelled,
// and the rails that take payments. Each call goes to the rail of the payment's network. All rails ask the same
// facilitators.
import type { Spelling } from '../../domain/payment/charge.ts';
import type { Networks, WayInput, WayIssue, WayReading } from '../../domain/payment/network.ts';
import type { Requirement, Way } from '../../domain/payment/way.ts';
import { problem } from '../../domain/problem.ts';
import { suggest } from '../../domain/suggest.ts';
import { EVM } from './evm/family.ts';
import type { ChainFamily, CheckWallet } from './chain-family.ts';
import type { NetworkRail, Rail, Refusal } from './rail.ts';
import { SVM } from './svm/family.ts';
import type { ChainWords } from './x402/chain-words.ts';
import { readEnvelope, type Envelope } from './x402/client-wire.ts';
import type { FacilitatorDeps } from './x402/facilitator-calls.ts';
import { createFacilitators, type Facilitators } from './x402/facilitators.ts';

/** Families in the order in which they are asked whether a network is theirs. */
export const FAMILIES: readonly ChainFamily[] = [EVM, SVM];

/** An entry of `accepts` at its longest, without rails. */
export const fullRequirement: Requirement = (offer, quote, version) =>
  FAMILIES.find(
    ({ payments }) => payments?.words.findCaip2(offer.way.network) !== undefined,
  )?.payments?.fullRequirement(offer, quote, version);

const KNOWN = FAMILIES.flatMap(({ networks }) => networks);

export const NETWORKS: Networks = {
  known: KNOWN,
  find: (name) =>
    KNOWN.find(
      (network) => network.name === name || network.caip2 === name || network.aliases?.includes(name) === true,
    ),
  suggest: (name) =>
    suggest(
      name,
      KNOWN.map((network) => network.name),
    ),
  readWay: (input) => {
    for (const family of FAMILIES) {
      const reading = family.readWay(input);
      if (reading === undefined) continue;
      return reading.kind === 'way'
        ? reading
        : { ...reading, issues: reading.issues.map((issue) => nameFamily(issue, input, family)) };
    }
    return unknownNetwork(input.network);
  },
};

/** A way's token and network by the names that people know; what has none is named as it is configured. */
export function nameWay({ network, asset }: Pick<Way, 'network' | 'asset'>): string {
  const known = NETWORKS.find(network);
  const token = known?.tokens.find(({ address }) => address.toLowerCase() === asset.toLowerCase());
  return `${token?.symbol ?? asset} on ${known?.name ?? network}`;
}

/** Whether the page for people can ask a wallet of the network (CAIP-2). */
export function isPaidInBrowser(network: string): boolean {
  return FAMILIES.some((family) => family.isPaidInBrowser(network));
}

/** Checks a signature by the family of its chain. */
export const checkWallet: CheckWallet = async (chainId, signed) => {
  const family = FAMILIES.find(({ payments }) => payments?.words.findCaip2(chainId) === chainId);
  return family === undefined ? 'unsupported' : family.wallets.isSigned(signed);
};

/** Spelling of payments on any network that the code knows, whether or not this process takes payments on it. */
export const SPELLING: Spelling = {
  payment: (raw) => firstOf(({ canonicalPayment }) => canonicalPayment(raw)),
  identifier: (text) => firstOf(({ canonicalIdentifier }) => canonicalIdentifier(text)) ?? text,
  formOf: (text) => {
    if (FAMILIES.some(({ nameAddress }) => nameAddress(text) !== undefined)) return 'account';
    return FAMILIES.some(({ isTransaction }) => isTransaction(text)) ? 'transaction' : undefined;
  },
};

function firstOf<T>(ask: (family: ChainFamily) => T | undefined): T | undefined {
  for (const family of FAMILIES) {
    const answer = ask(family);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

function unknownNetwork(name: string): WayReading {
  const meant = NETWORKS.suggest(name);
  const others = FAMILIES.flatMap(({ otherNetworks }) => otherNetworks ?? []);
  const advice =
    meant === undefined
      ? ['`tollgate networks` lists those that are', ...others].join(', and ')
      : `did you mean ${meant}?`;
  return {
    kind: 'issues',
    issues: [{ field: 'network', message: `is not a network that is known here; ${advice}` }],
    whole: false,
  };
}

/** An address of another chain family is the likeliest mistake: it is named. */
function nameFamily(issue: WayIssue, input: WayInput, family: ChainFamily): WayIssue {
  const { field } = issue;
  const written = field === 'pay_to_address' || field === 'asset' ? input[field] : undefined;
  if (written === undefined) return issue;
  const other = FAMILIES.find((each) => each !== family && each.nameAddress(written) !== undefined);
  return other === undefined
    ? issue
    : { field, message: `is ${other.nameAddress(written)}; write one of this network: ${family.addressForm}` };
}

// The rails. A credential is read for the way that it names.

/** All rails as one, with the latest state of facilitators, whichever rail asked them. */
export type Rails = Rail &
  Pick<Facilitators, 'standing' | 'healthOf'> &
  Pick<NetworkRail, 'revision' | 'watch'> & {
    /** Rail of a network; undefined: none serves it. */
    readonly for: (network: string) => NetworkRail | undefined;
  };

export function createRails(deps: FacilitatorDeps): Rails {
  const facilitators = createFacilitators(deps);
  const served = FAMILIES.flatMap(({ payments }) =>
    payments === undefined
      ? []
      : [{ ...payments, rail: payments.createRail({ ...deps, fetch: deps.chainFetch ?? deps.fetch, facilitators }) }],
  );
  const rails = served.map(({ rail }) => rail);
  const find = (network: string): NetworkRail | undefined => rails.find(({ serves }) => serves(network));
  const railOf = ({ network }: Pick<Way, 'network'>): NetworkRail => {
    const rail = find(network);
    if (rail === undefined) throw new TypeError('a payment of a network that no rail serves');
    return rail;
  };

  return {
    for: find,
    standing: facilitators.standing,
    healthOf: facilitators.healthOf,
    requirement: (offer, quote, version) => railOf(offer.way).requirement(offer, quote, version),
    read: (credential, ways) => {
      const reading = readEnvelope(credential);
      if (!reading.ok) return problem('payment_malformed', reading.detail);
      const { envelope } = reading;
      const own = served.find(({ rail }) => rail.serves(envelope.network));
      const way = chooseWay(envelope, ways, own?.words);
      const isNamed = !('reason' in way);
      // A single way takes no payment of another kind, and its own rail says what is wrong.
      const isOfAnother =
        (ways.length > 1 || !isNamed) &&
        served.some(
          ({ rail, isPayment }) =>
            rail !== own?.rail && isPayment(envelope.payload) && ways.some(({ network }) => rail.serves(network)),
        );
      if (isOfAnother) return isNamed ? wayMismatch(`a payment of the kind of ${way.network}`) : way;
      const read = own?.rail.read(envelope, isNamed ? way : undefined);
      if (read !== undefined) return 'code' in read ? read : { ...read, way };
      return !isNamed && ways.length > 0
        ? way
        : problem('payment_malformed', 'The payment names a network or an asset that none is taken in.');
    },
    check: (presented, offer, nowMs) => railOf(presented.key).check(presented, offer, nowMs),
    verify: (presented, offer) => railOf(presented.key).verify(presented, offer),
    settle: (presented, offer, history, sending) => railOf(presented.key).settle(presented, offer, history, sending),
    firstVia: (presented, offer) => railOf(presented.key).firstVia(presented, offer),
    revision: () => rails.reduce((sum, { revision }) => sum + revision(), facilitators.revision()),
    isCallable: (way) =>
      facilitators.standing(deps.services(way)?.facilitators ?? []).some(({ open }) => open === undefined),
    watch: (ways) => {
      const stops = rails.map(({ serves, watch }) => watch(() => ways().filter(({ network }) => serves(network))));
      return () => stops.forEach((stop) => stop());
    },
    receiptHeader: (version, receipt) => railOf(receipt.payment).receiptHeader(version, receipt),
    look: async (charge, asker) =>
      find(charge.payment.network)?.look(charge, asker) ?? {
        kind: 'unavailable',
        detail: 'no rail serves this network',
      },
  };
}

// Finds the way that a payment names: in version 2 by network, asset and receiving address, in version 1 by its network
// alone. A payment is never tried as another way than the one that it names. A mismatch is told in words of ours.

/** Refuses a payment that names none of the ways that it was read for, or that holds one of another kind than its way's. */
function wayMismatch(expected: string): Refusal {
  return { reason: 'way_mismatch', expected };
}

/** Chooses the way. `chain` is that of the network in `envelope`; undefined: it is of no chain that is known here. */
function chooseWay(
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

/** Names a network only if it is known here: then the name is ours. */
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
