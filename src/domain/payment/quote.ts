// Quotes: the charge id of a 402. It is stateless, signed and expiring, so that an unpaid request writes nothing and a
// price changed in between does not hurt who holds it. 84 bytes, base64url behind `chg_`:
//   0 version | 1 key id | 2 route id (16) | 18 method (2) | 20 price units (13) | 33 scale | 34 currency (10)
//   44 terms hash (8) | 52 expiry, seconds (4) | 56 MAC (16) | 72 nonce (12)
// The MAC leaves the nonce out and is the same for all quotes of one route and second: it is kept for that second, and
// only the nonce is drawn per answer. The nonce proves nothing; the ledger sees to it that an id is good for one charge.
import { createHmac, createSecretKey, hash, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { Price } from './money.ts';
import type { Offer } from './offer.ts';

export type Quote = {
  readonly id: string;
  readonly routeId: string;
  readonly price: Price;
  readonly currency: string;
  /** Seconds since the epoch; the quote is void from then on. */
  readonly expiresAt: number;
  /** Whether it was made for `method` (HEAD counts as GET). */
  readonly isFor: (method: string) => boolean;
  /** Whether `offer`'s receiver still has the terms that were quoted. */
  readonly hasTermsOf: (offer: Offer) => boolean;
  /** Whether `offer` has the price that was quoted. */
  readonly isPriceOf: (offer: Offer) => boolean;
};

/** A charge id in its two parts: one is the same for all of one offer, method and second, the other is drawn for each. */
export type ChargeId = { readonly signed: string; readonly nonce: string };

export type Quotes = {
  readonly issue: (offer: Offer, method: string, nowMs: number) => ChargeId;
  /** The quote in `id`; undefined if it holds none, is not signed by us or has expired. */
  readonly read: (id: string, nowMs: number) => Quote | undefined;
  /** The quote of `id`, with or without its nonce, expired or not. For people to read, not to take a payment by. */
  readonly explain: (id: string) => QuoteExplanation;
};

type QuoteExplanation =
  | { readonly kind: 'quote'; readonly quote: Quote }
  /** The id is signed with no secret that is known here. */
  | { readonly kind: 'foreign' }
  /** The id is not in the form of a quote, or too little of one. */
  | { readonly kind: 'none' };

type QuoteOptions = {
  /** Secrets, at least one: the first signs, all verify. */
  readonly secrets: readonly string[];
  readonly ttlMs: number;
  /** Draws 12 fresh random bytes as base64url. */
  readonly nonce: () => string;
};

/** Length of a charge id: every one is as long as every other. */
export const CHARGE_ID_BYTES = 116;

const VERSION = 1;
const SIGNED = 56;
const MAC = 16;
const FORM = /^chg_[A-Za-z0-9_-]{112}$/;
const EXPLAINED = /^chg_[A-Za-z0-9_-]{96,112}$/;
const PREFIX = 'chg_';
/** Number of characters of an id without its nonce, which begins at a character's edge. */
const SIGNED_CHARACTERS = PREFIX.length + ((SIGNED + MAC) / 3) * 4;

type Key = { readonly id: number; readonly secret: KeyObject };
type Terms = Omit<Quote, 'id'>;
type SignedId = { readonly method: string; readonly second: number; readonly text: string };

/** The id as it is presented and kept. */
export function joinChargeId({ signed, nonce }: ChargeId): string {
  return signed + nonce;
}

export function createQuotes({ secrets, ttlMs, nonce }: QuoteOptions): Quotes {
  const keys = secrets.map(deriveKey);
  const [signer] = keys;
  if (signer === undefined) throw new Error('charges.secrets is empty: quotes need a secret to be signed with');
  // Remembers the latest signature of each offer. Without it a 402 takes 1.4 times the CPU (`npm run bench -- --only
  // payment-required --checkout ../without`).
  const latest = new WeakMap<Offer, SignedId>();

  const sign = (offer: Offer, method: string, second: number): string => {
    const known = latest.get(offer);
    if (known !== undefined && known.second === second && known.method === method) return known.text;
    const bytes = writeTerms(offer, method, second + Math.ceil(ttlMs / 1000), signer.id);
    const text = PREFIX + Buffer.concat([bytes, mac(signer, bytes)]).toString('base64url');
    latest.set(offer, { method, second, text });
    return text;
  };

  /** The terms that we signed, from an id without its nonce. */
  const readSigned = (text: string): Terms | undefined => {
    const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url');
    const signed = bytes.subarray(0, SIGNED);
    const presented = bytes.subarray(SIGNED);
    const isGenuine = keys.some((key) => key.id === bytes[1] && timingSafeEqual(mac(key, signed), presented));
    return bytes[0] === VERSION && isGenuine ? readTerms(bytes) : undefined;
  };

  return {
    explain: (id) => {
      if (!EXPLAINED.test(id)) return { kind: 'none' };
      const terms = readSigned(id.slice(0, SIGNED_CHARACTERS));
      return terms === undefined ? { kind: 'foreign' } : { kind: 'quote', quote: { id, ...terms } };
    },
    issue: (offer, method, nowMs) => ({ signed: sign(offer, method, Math.floor(nowMs / 1000)), nonce: nonce() }),
    read: (id, nowMs) => {
      if (!FORM.test(id)) return undefined;
      const terms = readSigned(id.slice(0, SIGNED_CHARACTERS));
      return terms === undefined || terms.expiresAt * 1000 <= nowMs ? undefined : { id, ...terms };
    },
  };
}

function writeTerms(offer: Offer, method: string, expiresAt: number, keyId: number): Buffer {
  const bytes = Buffer.alloc(SIGNED);
  bytes[0] = VERSION;
  bytes[1] = keyId;
  bytes.write(offer.route.id.replaceAll('-', ''), 2, 'hex');
  methodCode(method).copy(bytes, 18);
  bytes.write(offer.price.units.toString(16).padStart(26, '0'), 20, 'hex');
  bytes[33] = offer.price.scale;
  bytes.write(offer.route.currency, 34, 'latin1');
  offer.termsHash.copy(bytes, 44);
  bytes.writeUInt32BE(expiresAt, 52);
  return bytes;
}

/** Reads the id of the route from the bytes of a charge id. */
export function routeIdIn(bytes: Buffer): string {
  const hex = bytes.toString('hex', 2, 18);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

function readTerms(bytes: Buffer): Terms {
  const termsHash = bytes.subarray(44, 52);
  const quoted = { units: BigInt(`0x${bytes.toString('hex', 20, 33)}`), scale: bytes[33] ?? 0 };
  return {
    routeId: routeIdIn(bytes),
    price: quoted,
    currency: bytes.toString('latin1', 34, 44).replace(/\0+$/, ''),
    expiresAt: bytes.readUInt32BE(52),
    isFor: (method) => methodCode(method).equals(bytes.subarray(18, 20)),
    hasTermsOf: (offer) => offer.termsHash.equals(termsHash),
    isPriceOf: ({ price: { units, scale } }) => units === quoted.units && scale === quoted.scale,
  };
}

function methodCode(method: string): Buffer {
  return hash('sha256', method === 'HEAD' ? 'GET' : method, 'buffer').subarray(0, 2);
}

function deriveKey(secret: string): Key {
  const derive = (purpose: string): Buffer => createHmac('sha256', secret).update(purpose).digest();
  return { id: derive('tollgate key id')[0] ?? 0, secret: createSecretKey(derive('tollgate charge id v1')) };
}

function mac(key: Key, bytes: Buffer): Buffer {
  return createHmac('sha256', key.secret).update(bytes).digest().subarray(0, MAC);
}

// Charge ids as lists show them and as commands take them. The end of an id tells two charges of one route apart. Its
// beginning says for which route, price and second it was made.

const GAP = '...';
const SHOWN = 12;

/** Shortens an id to `chg_...` and its last characters; one that is not longer than that stays whole. */
export function shortId(id: string): string {
  if (id.length <= PREFIX.length + GAP.length + SHOWN) return id;
  return `${PREFIX}${GAP}${id.slice(-SHOWN)}`;
}

/** Part of a charge id that a person gives: its first and its last characters. */
export type IdPart = { readonly start: string; readonly end: string };

/** Least number of characters, so that no id is meant by accident. */
const LEAST = 6;

/** A whole id, its beginning, its end, or both with dots in between; undefined if `text` is none of them. */
export function readIdPart(text: string): IdPart | undefined {
  const [, prefix = '', start = '', gap = '', end = ''] =
    /^(chg_)?([A-Za-z0-9_-]{0,124})(?:(\.{2,3}|\u2026)([A-Za-z0-9_-]{0,124}))?$/.exec(text) ?? [];
  if (start.length + end.length < LEAST) return undefined;
  if (gap !== '') return { start: PREFIX + start, end };
  return prefix === '' ? { start: PREFIX, end: start } : { start: PREFIX + start, end: '' };
}

export function isOfPart(id: string, { start, end }: IdPart): boolean {
  return id.startsWith(start) && id.endsWith(end);
}
