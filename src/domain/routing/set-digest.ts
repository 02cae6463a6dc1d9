// The digest that proves a set of routes: the sum modulo 2^256 of the SHA-256 of each route's JSON as the feed writes it.
// It knows no order, and a change costs one subtraction and one addition.
import { hash } from 'node:crypto';
import { toWire, type Route } from './route.ts';

export type SetDigest = {
  readonly add: (route: Route) => void;
  readonly remove: (route: Route) => void;
  /** Digest as 64 hex digits. */
  readonly hex: () => string;
};

const BITS = 256;
/** Routes that are hashed before others run: about a millisecond. */
const SLICE = 250;

export function createSetDigest(): SetDigest {
  let sum = 0n;
  return {
    add: (route) => void (sum = BigInt.asUintN(BITS, sum + hashOf(route))),
    remove: (route) => void (sum = BigInt.asUintN(BITS, sum - hashOf(route))),
    hex: () => sum.toString(16).padStart(BITS / 4, '0'),
  };
}

/** Adds `routes` in slices. Routes that are added and removed meanwhile count as well: a sum knows no order. */
export async function addAll(
  digest: SetDigest,
  routes: readonly Route[],
  breathe: () => Promise<unknown>,
): Promise<void> {
  for (const [index, route] of routes.entries()) {
    digest.add(route);
    if (index % SLICE === SLICE - 1) await breathe();
  }
}

function hashOf(route: Route): bigint {
  const bytes = hash('sha256', JSON.stringify(toWire(route)), 'buffer');
  let number = 0n;
  for (let at = 0; at < bytes.length; at += 8) number = (number << 64n) | bytes.readBigUInt64BE(at);
  return number;
}
