// Admits requests by limits. Challenges may have a limit per client. Payments under way are limited all together, so that a
// slow ledger or facilitator never holds the places of free requests. They may be limited per client too, and so may refused
// payments. A refusal here comes before anything is looked up or written: nothing was charged.
import type { Verdict } from '../domain/decide.ts';
import { problem, secondsToWait, type Problem } from '../domain/problem.ts';
import { createRateLimit } from '../host/rate-limit.ts';
import { LRUCache } from 'lru-cache';
import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** Undefined: go on. A ReleasePlace is to be called once, when the payment of the request was taken or refused. */
type Admit = (verdict: Verdict, req: Addressed) => Problem | ReleasePlace | undefined;

export type AdmissionOptions = {
  /** Requests that present a payment, at a time, until they are forwarded or answered. */
  readonly payments: number;
  /** Of one client; 0: as many as there are. */
  readonly paymentsPerClient: number;
  /** A minute, of one client, by a facilitator; 0: as many as there are. */
  readonly refusedPaymentsPerClient: number;
  readonly challengesPerClient: ChallengeLimitOptions;
};

export type Admission = {
  readonly admit: Admit;
  /** A facilitator was asked about a payment of `req` and refused it. */
  readonly refused: (req: Addressed) => void;
};

const RETRY_SECONDS = 1;

export function createAdmission(
  { payments, paymentsPerClient, refusedPaymentsPerClient, challengesPerClient }: AdmissionOptions,
  trusts: (address: string | undefined) => boolean,
  monotonic: () => number,
): Admission {
  const refusalLimit = createRefusalLimit(refusedPaymentsPerClient, monotonic);
  const challengeLimit = createChallengeLimit(challengesPerClient, monotonic);
  const placeOf = createClientSemaphores(paymentsPerClient, trusts);
  let taken = 0;

  const pay = (req: Addressed): Problem | ReleasePlace => {
    const excess = refusalLimit?.findExcess(clientGroup(req, trusts));
    if (excess !== undefined) return excess;
    if (taken >= payments) {
      return problem(
        'too_many_requests_in_flight',
        `More than ${payments} payments are being taken; nothing was charged, try again.`,
        { retryAfter: RETRY_SECONDS },
      );
    }
    const release = placeOf?.(req);
    if (placeOf !== undefined && release === undefined) {
      return problem(
        'too_many_payments',
        `More than ${paymentsPerClient} payments of this client are being taken; nothing was charged, try again.`,
        { retryAfter: RETRY_SECONDS },
      );
    }
    taken++;
    return () => {
      taken--;
      release?.();
    };
  };

  const admit: Admit = (verdict, req) => {
    switch (verdict.kind) {
      case 'demand':
        return challengeLimit?.(clientGroup(req, trusts));
      case 'verify':
        return pay(req);
      case 'pass':
      case 'answer_preflight':
      case 'refuse':
        return undefined;
      default:
        return verdict satisfies never;
    }
  };
  return { admit, refused: (req) => refusalLimit?.refused(clientGroup(req, trusts)) };
}

type ChallengeLimitOptions = {
  /** 402 answers a minute for one client; 0: as many as it likes. */
  readonly perMinute: number;
  /** How many at once. */
  readonly burst: number;
  /** Clients that are remembered, at most. */
  readonly clients: number;
};

/** Counts one 402 for `client`; the Problem to answer instead if it had its share. */
type ChallengeLimit = (client: string) => Problem | undefined;

/**
 * A 402 costs next to nothing and stores nothing, so by default there is no limit; it counts answers to requests that
 * present no payment. Undefined: no limit.
 */
function createChallengeLimit(
  { perMinute, burst, clients }: ChallengeLimitOptions,
  monotonic: () => number,
): ChallengeLimit | undefined {
  if (perMinute === 0) return undefined;
  const limit = createRateLimit({ perMinute, burst, keys: clients }, monotonic);
  return (client) => {
    const waitMs = limit.takeMs(client);
    if (waitMs === 0) return undefined;
    return problem(
      'too_many_challenges',
      `More than ${perMinute} answers about what to pay were asked for in a minute. Send a payment, or ask again later.`,
      { retryAfter: secondsToWait(waitMs) },
    );
  };
}

// Limits the payments of one client that a facilitator refuses within a minute. Each of them costs a call that the
// facilitator counts, and any client can make up such payments. Beyond the limit no facilitator is asked: the client is told
// to wait for what is left of its minute. Payments that are good count for nothing here.

type RefusalLimit = {
  /** The Problem to answer instead, if `client` has had its share. */
  readonly findExcess: (client: string) => Problem | undefined;
  readonly refused: (client: string) => void;
};

const MINUTE_MS = 60_000;
/** Strangers cannot fill memory: who is forgotten begins anew. */
const CLIENTS = 65_536;

type Minute = { readonly endsAt: number; refusals: number };

/** `perMinute` 0: no limit. */
function createRefusalLimit(perMinute: number, monotonic: () => number): RefusalLimit | undefined {
  if (perMinute === 0) return undefined;
  // With `max` it would make room for all of them at once: 1.4 MB.
  const minutes = new LRUCache<string, Minute>({ maxSize: CLIENTS, sizeCalculation: () => 1 });
  const current = (client: string): Minute | undefined => {
    const minute = minutes.get(client);
    return minute !== undefined && minute.endsAt > monotonic() ? minute : undefined;
  };
  return {
    findExcess: (client) => {
      const minute = current(client);
      if (minute === undefined || minute.refusals < perMinute) return undefined;
      const waitMs = minute.endsAt - monotonic();
      return problem(
        'too_many_payments',
        `${perMinute} payments of this client were refused within a minute; nothing was charged. Send the next one when the minute is over.`,
        { retryAfter: secondsToWait(waitMs) },
      );
    },
    refused: (client) => {
      const minute = current(client);
      if (minute === undefined) minutes.set(client, { endsAt: monotonic() + MINUTE_MS, refusals: 1 });
      else minute.refusals++;
    },
  };
}

// The client that a request counts for in limits per client: an IPv4 address, or an IPv6 network of 64 bits. One
// subscriber has such a network, and could draw a new address from it for every request. Behind trusted proxies it is
// the last address of X-Forwarded-For that is not a trusted proxy itself. Addresses before that one are only the
// client's word.

type Addressed = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** `trusts`: whether an address is that of a trusted proxy. */
export function clientGroup({ socket, headers }: Addressed, trusts: (address: string | undefined) => boolean): string {
  let address = socket.remoteAddress ?? '';
  const forwarded = headers['x-forwarded-for'];
  let rest = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  while (rest !== '' && trusts(address)) {
    const comma = rest.lastIndexOf(',');
    const named = readAddress(rest.slice(comma + 1).trim());
    // An unreadable entry counts for the proxy that passed it on.
    if (named === undefined) break;
    address = named;
    rest = comma < 0 ? '' : rest.slice(0, comma);
  }
  return groupOf(address);
}

/** An address as proxies write it: bare, in brackets, or with a port. */
function readAddress(text: string): string | undefined {
  if (isIPv4(text) || isIPv6(text)) return text;
  const inside = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1];
  return inside !== undefined && (isIPv4(inside) || isIPv6(inside)) ? inside : undefined;
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS = 8;
const NETWORK_GROUPS = 4;

function groupOf(address: string): string {
  const [bare = ''] = address.split('%');
  if (!isIPv6(bare)) return bare;
  const mapped = MAPPED.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = bare.split('::');
  const before = split(head);
  const after = split(tail ?? '');
  const zeros = tail === undefined ? 0 : GROUPS - before.length - after.length;
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, NETWORK_GROUPS);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}

/** An IPv4 address at the end stands for two groups; which ones does not matter, they are past the network. */
function split(part: string): string[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]));
}

// A semaphore for each client, so that one client cannot take every place. Only clients that hold a place are
// remembered.

/** To be called once, when the place is free again. */
export type ReleasePlace = () => void;

/** Undefined: this client has none left. */
export type TakePlace = (req: Addressed) => ReleasePlace | undefined;

/** `places`: of one client; 0: no limit, and undefined is returned. */
export function createClientSemaphores(
  places: number,
  trusts: (address: string | undefined) => boolean,
): TakePlace | undefined {
  if (places === 0) return undefined;
  const taken = new Map<string, number>();
  return (req) => {
    const client = clientGroup(req, trusts);
    const own = taken.get(client) ?? 0;
    if (own >= places) return undefined;
    taken.set(client, own + 1);
    return () => {
      const left = (taken.get(client) ?? 1) - 1;
      if (left === 0) taken.delete(client);
      else taken.set(client, left);
    };
  };
}
