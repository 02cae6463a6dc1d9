// Rules of a receiver that need more than one key: which keys belong to its one way or to each of several, and what the
// networks say of each way. They look at raw data that may still be wrong in any way.
import type { Networks, WayReading } from '../domain/payment/network.ts';
import { isMap, type Issue, type Path } from './problems.ts';
import { FACILITATORS, isPlaceholder, NETWORK, PAY_TO, SHARED_KEYS, WAY_KEYS, wayOf } from './receivers.ts';

/** Facilitator of the x402 project. */
const TEST_ONLY = /^https:\/\/(www\.)?x402\.org(\/|$)/i;

type RawFields = Readonly<Record<string, unknown>>;

/** A way as it is written, and what it takes from its receiver. */
type WrittenWay = { readonly raw: RawFields; readonly path: Path; readonly inherited: RawFields };

/** Finds what is wrong with each receiver beyond one key. Looks at raw data, whatever its shape. */
export function receiverIssues(raw: unknown, networks: Networks): Issue[] {
  if (!Array.isArray(raw)) return [];
  return raw.flatMap((input: unknown, index): Issue[] => {
    if (!isMap(input)) return [];
    const path = ['receivers', index];
    const ways = waysOf(input, path);
    return [
      ...(Object.hasOwn(input, 'accepts') ? besideAcceptsIssues(input, path, ways, networks) : flatIssues(input, path)),
      ...ways.flatMap((way) => wayIssues(way, path, networks)),
      ...repeatedWays(ways, networks),
    ];
  });
}

function waysOf(receiver: RawFields, path: Path): readonly WrittenWay[] {
  if (!Object.hasOwn(receiver, 'accepts')) return [{ raw: receiver, path, inherited: {} }];
  const accepts: readonly unknown[] = Array.isArray(receiver['accepts']) ? receiver['accepts'] : [];
  const inherited = Object.fromEntries(Object.keys(SHARED_KEYS).map((key) => [key, receiver[key]]));
  return accepts.flatMap((way, at) => (isMap(way) ? [{ raw: way, path: [...path, 'accepts', at], inherited }] : []));
}

/** Asks of a way that is written flat what the schema asks of one in `accepts`. */
function flatIssues(receiver: RawFields, path: Path): Issue[] {
  const needed = { network: NETWORK, pay_to_address: PAY_TO };
  return Object.entries(needed).flatMap(([key, advice]) =>
    // Networks know more to say of an address.
    receiver[key] !== undefined || (key === 'pay_to_address' && receiver['network'] !== undefined)
      ? []
      : [{ path: [...path, key], message: `is missing; write ${advice}` }],
  );
}

function besideAcceptsIssues(
  receiver: RawFields,
  path: Path,
  ways: readonly WrittenWay[],
  networks: Networks,
): Issue[] {
  const found = new Set(ways.flatMap(({ raw }) => networkOf(raw, networks) ?? []));
  return [
    ...Object.keys(WAY_KEYS).flatMap((key): Issue[] =>
      Object.hasOwn(receiver, key)
        ? [
            {
              path: [...path, key],
              at: 'key',
              message: 'stands beside accepts; write it in the ways of accepts, or take accepts out',
            },
          ]
        : [],
    ),
    ...(receiver['rpc_url'] !== undefined && found.size > 1
      ? [
          {
            path: [...path, 'rpc_url'],
            message: 'stands beside ways on several networks; write it in each way that it is for',
          },
        ]
      : []),
  ];
}

function networkOf({ network }: RawFields, networks: Networks): string | undefined {
  return typeof network === 'string' ? (networks.find(network)?.caip2 ?? network) : undefined;
}

/** Finds issues of a way; `of` is the path of its receiver. */
function wayIssues({ raw, path, inherited }: WrittenWay, of: Path, networks: Networks): Issue[] {
  const { network } = raw;
  const [facilitators, from] =
    raw['facilitators'] === undefined ? [inherited['facilitators'], of] : [raw['facilitators'], path];
  const unserved =
    facilitators === undefined
      ? [
          {
            path: [...path, 'facilitators'],
            message: `is missing; write ${FACILITATORS}${path === of ? '' : ', here or once beside accepts'}`,
          },
        ]
      : [];
  if (typeof network !== 'string') return unserved;
  const reading = readWritten(raw, inherited, networks);
  const wrong = reading.kind === 'way' ? [] : reading.issues;
  return [
    ...unserved,
    ...(networks.find(network)?.testnet === false ? testFacilitatorIssues(facilitators, from) : []),
    ...wrong.flatMap(({ field, message }): Issue[] => {
      const value = raw[field];
      // A value of the wrong type, or the placeholder: the schema has said so.
      if (value !== undefined && message.startsWith('is missing')) return [];
      if (field === 'pay_to_address' && isPlaceholder(value)) return [];
      return [
        { path: [...path, field], message, ...(reading.kind === 'issues' && reading.whole ? { covers: path } : {}) },
      ];
    }),
  ];
}

/** Nodes alone, of what a way inherits, say something about it. */
function readWritten(raw: RawFields, inherited: RawFields, networks: Networks): WayReading {
  return networks.readWay(wayOf({ ...raw, rpc_url: raw['rpc_url'] ?? inherited['rpc_url'] }));
}

/** Complaints about facilitators on a network of real money. */
function testFacilitatorIssues(facilitators: unknown, of: Path): Issue[] {
  const list: readonly unknown[] = Array.isArray(facilitators) ? facilitators : [];
  return list.flatMap((item, at): Issue[] => {
    const url = isMap(item) ? item['url'] : item;
    if (typeof url !== 'string' || !TEST_ONLY.test(url)) return [];
    const message = 'serves test networks only, so nobody could pay here; name a facilitator that serves this network';
    return [{ path: [...of, 'facilitators', at], message }];
  });
}

/** A payment names its way by these three. No two addresses that differ in case alone belong to two. */
function repeatedWays(ways: readonly WrittenWay[], networks: Networks): Issue[] {
  const seen = new Map<string, Path>();
  return ways.flatMap(({ raw, path, inherited }): Issue[] => {
    const reading = readWritten(raw, inherited, networks);
    if (reading.kind !== 'way') return [];
    const { network, asset, payTo } = reading.way;
    const name = `${network} ${asset} ${payTo}`.toLowerCase();
    const earlier = seen.get(name);
    if (earlier === undefined) {
      seen.set(name, path);
      return [];
    }
    const message = `has the network, asset and pay_to_address of accepts[${earlier.at(-1)}]; keep one of the two`;
    return [{ path, message }];
  });
}
