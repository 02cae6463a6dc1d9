// Every network that is known by name, whichever chain family it is of, how a way to pay on one is read, and how a payment
// is spelled.
import type { Spelling } from '../../domain/charge.ts';
import type { Networks, WayInput, WayIssue, WayReading } from '../../domain/network.ts';
import type { Requirement } from '../../domain/payment/way.ts';
import { suggest } from '../../domain/suggest.ts';
import { FAMILIES } from './families.ts';
import type { ChainFamily } from './family.ts';

/** An entry of `accepts` at its longest, for whoever has no rails at hand. */
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

/** Whether the page for people can ask a wallet of the network (CAIP-2). */
export function isPaidInBrowser(network: string): boolean {
  return FAMILIES.some((family) => family.isPaidInBrowser(network));
}

/** Of any network that the code knows, whether or not this process takes payments on it. */
export const SPELLING: Spelling = {
  payment: (raw) => firstOf(({ canonicalPayment }) => canonicalPayment(raw)),
  identifier: (text) => firstOf(({ canonicalIdentifier }) => canonicalIdentifier(text)) ?? text,
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
