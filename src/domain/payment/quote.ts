// Quotes: the charge id of a 402. It is stateless, signed and expiring, so that an unpaid request writes nothing and a
// price changed in between does not hurt who holds it. 84 bytes, base64url behind `chg_`:
//   0 version | 1 key id | 2 route id (16) | 18 method (2) | 20 price units (13) | 33 scale | 34 currency (10)
//   44 terms hash (8) | 52 expiry, seconds (4) | 56 MAC (16) | 72 nonce (12)
// If the price depends on what is asked, it is version 2 of 93 bytes: behind the expiry stand a keyed digest of the
// inputs (8) and a zero, so that a quote for a cheap request pays for no dear one.
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
  /** Whether it was made for a request of these inputs; a quote that is bound to none is for any. */
  readonly isForInputs: (inputs: string | undefined) => boolean;
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

const MAC = 16;
const PREFIX = 'chg_';
const NONCE_CHARACTERS = 16;
const INPUTS = 8;
const INPUTS_AT = 56;

/** Form of a charge id. Number of characters of an id without its nonce, which begins at a character's edge. */
type Version = { readonly version: number; readonly signed: number; readonly characters: number };
const versionOf = (version: number, signed: number): Version => ({
  ...{ version, signed },
  characters: PREFIX.length + ((signed + MAC) / 3) * 4,
});
const PLAIN = versionOf(1, INPUTS_AT);
const BOUND = versionOf(2, INPUTS_AT + INPUTS + 1);
const ID = /^chg_[A-Za-z0-9_-]+$/;
/** Form of an id of any version, with its nonce or at least without. */
const EXPLAINED = /^chg_[A-Za-z0-9_-]{96,124}$/;

/** Length of the charge ids of an offer: every one is as long as every other. */
export function chargeIdBytes({ inputs }: Pick<Offer, 'inputs'>): number {
  return (inputs === undefined ? PLAIN : BOUND).characters + NONCE_CHARACTERS;
}

/** Version of an id, with its nonce or at least without. */
function findVersion(id: string): Version | undefined {
  if (!ID.test(id)) return undefined;
  const first = Buffer.from(id.slice(PREFIX.length, PREFIX.length + 4), 'base64url')[0];
  const found = [PLAIN, BOUND].find(({ version }) => version === first);
  if (found === undefined || id.length < found.characters) return undefined;
  return id.length <= found.characters + NONCE_CHARACTERS ? found : undefined;
}

type Key = { readonly id: number; readonly secret: KeyObject; readonly inputs: KeyObject };
type Terms = Omit<Quote, 'id'>;
type SignedId = {
  readonly method: string;
  readonly second: number;
  readonly inputs: string | undefined;
  readonly text: string;
};

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
    const { inputs, shared = offer } = offer;
    const known = latest.get(shared);
    if (known !== undefined && known.second === second && known.method === method && known.inputs === inputs)
      return known.text;
    const bytes = writeTerms(offer, method, second + Math.ceil(ttlMs / 1000), signer);
    const text = PREFIX + Buffer.concat([bytes, mac(signer, bytes)]).toString('base64url');
    latest.set(shared, { method, second, inputs, text });
    return text;
  };

  /** The terms that we signed, from an id of `form`. */
  const readSigned = (id: string, { signed: length, characters }: Version): Terms | undefined => {
    const bytes = Buffer.from(id.slice(PREFIX.length, characters), 'base64url');
    const signed = bytes.subarray(0, length);
    const presented = bytes.subarray(length);
    const key = keys.find((each) => each.id === bytes[1] && timingSafeEqual(mac(each, signed), presented));
    return key === undefined ? undefined : readTerms(bytes, key);
  };

  return {
    explain: (id) => {
      const form = findVersion(id);
      if (form === undefined) return { kind: EXPLAINED.test(id) ? 'foreign' : 'none' };
      const terms = readSigned(id, form);
      return terms === undefined ? { kind: 'foreign' } : { kind: 'quote', quote: { id, ...terms } };
    },
    issue: (offer, method, nowMs) => ({ signed: sign(offer, method, Math.floor(nowMs / 1000)), nonce: nonce() }),
    read: (id, nowMs) => {
      const form = findVersion(id);
      if (form === undefined || id.length !== form.characters + NONCE_CHARACTERS) return undefined;
      const terms = readSigned(id, form);
      return terms === undefined || terms.expiresAt * 1000 <= nowMs ? undefined : { id, ...terms };
    },
  };
}

function writeTerms(offer: Offer, method: string, expiresAt: number, key: Key): Buffer {
  const { version, signed } = offer.inputs === undefined ? PLAIN : BOUND;
  const bytes = Buffer.alloc(signed);
  bytes[0] = version;
  bytes[1] = key.id;
  bytes.write(offer.route.id.replaceAll('-', ''), 2, 'hex');
  methodCode(method).copy(bytes, 18);
  bytes.write(offer.price.units.toString(16).padStart(26, '0'), 20, 'hex');
  bytes[33] = offer.price.scale;
  bytes.write(offer.route.currency, 34, 'latin1');
  offer.termsHash.copy(bytes, 44);
  bytes.writeUInt32BE(expiresAt, 52);
  if (offer.inputs !== undefined) digestInputs(key, offer.inputs).copy(bytes, INPUTS_AT);
  return bytes;
}

function digestInputs({ inputs: key }: Key, inputs: string): Buffer {
  return createHmac('sha256', key).update(inputs).digest().subarray(0, INPUTS);
}

/** Reads the id of the route from the bytes of a charge id. */
export function routeIdIn(bytes: Buffer): string {
  const hex = bytes.toString('hex', 2, 18);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Reads the price from the bytes of a charge id. */
export function priceIn(bytes: Buffer): Price {
  return { units: BigInt(`0x0${bytes.toString('hex', 20, 33)}`), scale: bytes[33] ?? 0 };
}

function readTerms(bytes: Buffer, key: Key): Terms {
  const termsHash = bytes.subarray(44, 52);
  const quoted = priceIn(bytes);
  return {
    routeId: routeIdIn(bytes),
    price: quoted,
    currency: bytes.toString('latin1', 34, 44).replace(/\0+$/, ''),
    expiresAt: bytes.readUInt32BE(52),
    isFor: (method) => methodCode(method).equals(bytes.subarray(18, 20)),
    hasTermsOf: (offer) => offer.termsHash.equals(termsHash),
    isPriceOf: ({ price: { units, scale } }) => units === quoted.units && scale === quoted.scale,
    isForInputs: (inputs) =>
      bytes[0] === PLAIN.version ||
      (inputs !== undefined &&
        timingSafeEqual(digestInputs(key, inputs), bytes.subarray(INPUTS_AT, INPUTS_AT + INPUTS))),
  };
}

function methodCode(method: string): Buffer {
  return hash('sha256', method === 'HEAD' ? 'GET' : method, 'buffer').subarray(0, 2);
}

function deriveKey(secret: string): Key {
  const derive = (purpose: string): Buffer => createHmac('sha256', secret).update(purpose).digest();
  return {
    id: derive('tollgate key id')[0] ?? 0,
    secret: createSecretKey(derive('tollgate charge id v1')),
    inputs: createSecretKey(derive('tollgate price inputs v1')),
  };
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
