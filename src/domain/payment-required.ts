// The 402: the body of the source interface's section 7.1 to the letter, and beside it the x402 v2 header that machines
// read. Everything that a route fixes is serialised once per offer; an answer only puts charge id and URL in between.
// Both are public: nothing here may depend on who asks. Sources: interface 7.1, x402 v1 and v2.
import { LRUCache } from 'lru-cache';
import type { Listing } from './discovery/listing.ts';
import type { Offer, OfferedWay } from './offer.ts';
import type { Requirement } from './payment/way.ts';
import type { ChargeId } from './quote.ts';

export type Demand = {
  readonly offer: Offer;
  /** How what is asked for is listed; undefined: it is not. */
  readonly listing?: Listing | undefined;
  readonly chargeId: ChargeId;
  /** Scheme and authority under which clients reach the API, such as `https://api.example.com`. */
  readonly origin: string;
  /** The canonical path, without a query. */
  readonly path: string;
  /** Why the request was not let through, such as `payment_required` or `quote_mismatch`. */
  readonly reason: string;
};

export type PaymentRequired = {
  readonly body: string;
  /** Of `body` as UTF-8. */
  readonly bodyBytes: number;
  readonly header: string;
  /** That the header shows, in its order: the same list for as long as it shows the same. */
  readonly ways: readonly OfferedWay[];
};

const MAX_URL_BYTES = 1024;
const MAX_DESCRIPTION_BYTES = 256;
/** Proxies take a response's head of 4 KiB. */
const MAX_HEADER_BYTES = 3072;
/** What an answer has of its own, as far as room is kept for it. */
const ROOM = { url: 256, error: 128, chargeId: 116 } as const;
const MIME_TYPE = 'application/json';
/** Offers, and listings of them, whose text is kept. */
const KEPT = 1024;

export type PaymentRequiredOptions = {
  /** Adds x402's v1 members to the body, after the interface's fields. */
  readonly v1: boolean;
  readonly requirement: Requirement;
  /** Raised whenever an entry of `accepts` has become another, or can or cannot be written. */
  readonly revision?: () => number;
};

/** Renders 402 answers; undefined: none of the offer's ways can be paid at the moment. */
export function createPaymentRequired(
  options: PaymentRequiredOptions,
): (demand: Demand) => PaymentRequired | undefined {
  const { revision = () => 0 } = options;
  const write = ({ offer, listing }: Demand): Texts => ({
    offer,
    revision: revision(),
    template: writeTemplate(offer, listing, options),
    fixed: undefined,
  });
  // By the listing, which is of one route, or by the offer if there is none.
  const kept = new LRUCache<Listing | Offer, Texts>({ max: KEPT });
  return (demand) => {
    const { offer, listing = offer } = demand;
    let texts = kept.get(listing);
    if (texts === undefined || texts.offer !== offer || texts.revision !== revision())
      kept.set(listing, (texts = write(demand)));
    const { template } = texts;
    if (template === undefined) return undefined;
    const { nonce } = demand.chargeId;
    let { fixed } = texts;
    if (fixed === undefined || !isFixedFor(fixed, demand)) texts.fixed = fixed = fix(template, demand);
    const { bodyStart, bodyMiddle, bodyEnd, bodyBytes, headerStart, headerRest, headerAfter } = fixed;
    let rest = headerRest;
    for (const text of headerAfter) rest += nonce + text;
    return {
      body: bodyStart + nonce + bodyMiddle + nonce + bodyEnd,
      bodyBytes: bodyBytes + 2 * nonce.length,
      header: headerStart + btoa(rest),
      ways: template.ways,
    };
  };
}

/** What is written once for an offer, and what was written last of all that one request shares with the next. */
type Texts = {
  readonly offer: Offer;
  readonly revision: number;
  readonly template: Template | undefined;
  fixed: Fixed | undefined;
};

type Fixed = {
  readonly signed: string;
  readonly path: string;
  readonly origin: string;
  readonly reason: string;
  readonly bodyStart: string;
  readonly bodyMiddle: string;
  readonly bodyEnd: string;
  /** Of these three. */
  readonly bodyBytes: number;
  /** base64 of the header up to a multiple of 3 bytes; the bytes after that, one character each. */
  readonly headerStart: string;
  readonly headerRest: string;
  /** What follows the charge id, once for each way, one character a byte. */
  readonly headerAfter: readonly string[];
};

function isFixedFor(fixed: Fixed, { chargeId, path, origin, reason }: Demand): boolean {
  return fixed.path === path && fixed.signed === chargeId.signed && fixed.origin === origin && fixed.reason === reason;
}

function fix(template: Template, { chargeId: { signed }, path, origin, reason }: Demand): Fixed {
  const url = JSON.stringify(resourceUrl(origin, path));
  const error = JSON.stringify(reason);
  const accepts = template.v1?.join(url) ?? '';
  const [first = '', ...others] = template.header;
  const header = `{"x402Version":2,"error":${error},"resource":{"url":${url}${first}${others.length > 0 ? signed : ''}`;
  const bodyStart = template.bodyStart + signed;
  const bodyMiddle = template.bodyMiddle + signed;
  const bodyEnd = `${template.bodyEnd}${accepts}}`;
  const bytes = Buffer.from(header);
  const whole = bytes.length - (bytes.length % 3);
  return {
    ...{ signed, path, origin, reason, bodyStart, bodyMiddle, bodyEnd },
    bodyBytes: Buffer.byteLength(bodyStart) + Buffer.byteLength(bodyMiddle) + Buffer.byteLength(bodyEnd),
    headerStart: bytes.toString('base64', 0, whole),
    headerRest: bytes.toString('latin1', whole),
    headerAfter: others.map((text, index) =>
      Buffer.from(index < others.length - 1 ? text + signed : text).toString('latin1'),
    ),
  };
}

type Template = {
  readonly ways: readonly OfferedWay[];
  readonly bodyStart: string;
  readonly bodyMiddle: string;
  readonly bodyEnd: string;
  /** The text around the URLs of version 1. */
  readonly v1: readonly string[] | undefined;
  /** The text around the charge ids. */
  readonly header: readonly string[];
};

// Stands where the charge id goes. A route's own text may hold it too, but never before the first or after the last of ours.
const HOLE = '\u0000';
const HOLE_JSON = JSON.stringify(HOLE).slice(1, -1);

/** Undefined: no way can be named in version 2, which all ways are of. */
function writeTemplate(
  offer: Offer,
  listing: Listing | undefined,
  options: PaymentRequiredOptions,
): Template | undefined {
  const { route } = offer;
  const description = shortDescription(offer.description);
  const write = (offered: OfferedWay, version: 1 | 2): object | undefined =>
    options.requirement({ ...offered, description, resource: HOLE }, { chargeId: HOLE }, version);
  const ways = offer.ways.filter((offered) => write(offered, 2) !== undefined);
  const [preferred] = ways;
  if (preferred === undefined) return undefined;
  const { way, networkName } = preferred;
  const body = JSON.stringify({
    error: 'Payment Required',
    charge_id: HOLE,
    amount: route.amount,
    currency: route.currency,
    description: offer.description,
    x402_requirements: {
      rail_config: {
        scheme: way.scheme,
        network: networkName,
        asset: way.asset,
        pay_to_address: way.payTo,
        max_timeout_seconds: way.timeoutSeconds,
      },
      amount: route.amount,
      currency: route.currency,
      external_ref: HOLE,
    },
  });
  const first = body.indexOf(HOLE_JSON);
  const last = body.lastIndexOf(HOLE_JSON);
  const shown = (version: 1 | 2): readonly object[] => ways.flatMap((offered) => write(offered, version) ?? []);
  const resource = JSON.stringify({ description, mimeType: MIME_TYPE }).slice(1);
  const v1 = options.v1 ? shown(1) : [];
  return {
    ways,
    bodyStart: body.slice(0, first),
    bodyMiddle: body.slice(first + HOLE_JSON.length, last),
    bodyEnd: body.slice(last + HOLE_JSON.length, -1),
    // Where version 1 can name no way, its members stay away.
    v1: v1.length === 0 ? undefined : cut(',"x402Version":1,"accepts":[', v1, `"${HOLE_JSON}"`, ']'),
    header: cut(`,${resource},"accepts":[`, shown(2), HOLE_JSON, `]${bazaarThatFits(listing, resource, shown(2))}}`),
  };
}

/** Whole, or without the output's example, or nothing: whichever leaves the header in its limits. */
function bazaarThatFits(listing: Listing | undefined, resource: string, accepts: readonly object[]): string {
  const written = accepts.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)) + 1, 0);
  const own = ROOM.url + ROOM.error + accepts.length * ROOM.chargeId;
  const around = Buffer.byteLength(`{"x402Version":2,"error":"","resource":{"url":"",${resource},"accepts":[]}`);
  for (const bazaar of listing?.bazaar ?? []) {
    const text = `,"extensions":{"bazaar":${bazaar}}`;
    const bytes = around + own + written + Buffer.byteLength(text);
    if (Math.ceil(bytes / 3) * 4 <= MAX_HEADER_BYTES) return text;
  }
  return '';
}

/** The text before, between and after the holes of a list: each entry has one, and nothing of a route's behind it. */
function cut(before: string, entries: readonly object[], hole: string, after: string): readonly string[] {
  let text = before;
  const pieces: string[] = [];
  for (const entry of entries) {
    const written = JSON.stringify(entry);
    const at = written.lastIndexOf(hole);
    if (at < 0) throw new TypeError('an entry of accepts without a place for what each answer has of its own');
    pieces.push(text + written.slice(0, at));
    text = `${written.slice(at + hole.length)},`;
  }
  return [...pieces, (entries.length === 0 ? text : text.slice(0, -1)) + after];
}

/** At most 1,024 bytes; a longer one is cut, never inside a percent-escape. */
function resourceUrl(origin: string, path: string): string {
  const url = origin + path;
  return url.length <= MAX_URL_BYTES ? url : url.slice(0, MAX_URL_BYTES).replace(/%[0-9A-F]?$/, '');
}

/** As x402 shows it: one line of at most 256 bytes. */
export function shortDescription(description: string): string {
  return clip(description.replace(/[\u0000-\u001f\u007f]+/g, ' '), MAX_DESCRIPTION_BYTES);
}

/** `text` cut to `bytes` bytes of UTF-8, at a character. */
function clip(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const cut = Buffer.from(text).subarray(0, bytes).toString();
  return cut.replace(/\uFFFD+$/, '');
}
