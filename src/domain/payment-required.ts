// The 402: the body of the source interface's section 7.1 to the letter, and beside it the x402 v2 header that machines
// read. Everything that a route fixes is serialised once per offer; an answer only puts charge id and URL in between.
// Both are public: nothing here may depend on who asks. Sources: interface 7.1, x402 v1 and v2.
import { LRUCache } from 'lru-cache';
import type { Offer } from './offer.ts';
import type { ChargeId } from './quote.ts';

export type Demand = {
  readonly offer: Offer;
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
};

const MAX_URL_BYTES = 1024;
const MAX_DESCRIPTION_BYTES = 256;
const MIME_TYPE = 'application/json';
/** Offers whose text is kept. */
const KEPT = 1024;

/** Renders 402 answers; `v1` adds x402's v1 members to the body, after the interface's fields. */
export function createPaymentRequired({ v1 }: { readonly v1: boolean }): (demand: Demand) => PaymentRequired {
  const kept = new LRUCache<Offer, Texts>({
    max: KEPT,
    memoMethod: (offer) => ({ template: writeTemplate(offer, v1), fixed: undefined }),
  });
  return (demand) => {
    const texts = kept.memo(demand.offer);
    const { nonce } = demand.chargeId;
    let { fixed } = texts;
    if (fixed === undefined || !isFixedFor(fixed, demand)) texts.fixed = fixed = fix(texts.template, demand);
    const { bodyStart, bodyMiddle, bodyEnd, bodyBytes, headerStart, headerRest } = fixed;
    return {
      body: bodyStart + nonce + bodyMiddle + nonce + bodyEnd,
      bodyBytes: bodyBytes + 2 * nonce.length,
      header: headerStart + btoa(headerRest + nonce + texts.template.headerEnd),
    };
  };
}

/** What is written once for an offer, and what was written last of all that one request shares with the next. */
type Texts = { readonly template: Template; fixed: Fixed | undefined };

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
};

function isFixedFor(fixed: Fixed, { chargeId, path, origin, reason }: Demand): boolean {
  return fixed.path === path && fixed.signed === chargeId.signed && fixed.origin === origin && fixed.reason === reason;
}

function fix(template: Template, { chargeId: { signed }, path, origin, reason }: Demand): Fixed {
  const url = JSON.stringify(resourceUrl(origin, path));
  const error = JSON.stringify(reason);
  const accepts = template.v1Start === undefined ? '' : `${template.v1Start}${url}${template.v1End}`;
  const header = `{"x402Version":2,"error":${error},"resource":{"url":${url}${template.headerStart}${signed}`;
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
  };
}

type Template = {
  readonly bodyStart: string;
  readonly bodyMiddle: string;
  readonly bodyEnd: string;
  readonly v1Start: string | undefined;
  readonly v1End: string;
  readonly headerStart: string;
  /** Behind the charge id stand brackets only. */
  readonly headerEnd: string;
};

// Stands where the charge id goes. A route's own text may hold it too, but never before the first or after the last of ours.
const HOLE = '\u0000';
const HOLE_JSON = JSON.stringify(HOLE).slice(1, -1);

function writeTemplate(offer: Offer, v1: boolean): Template {
  const { route, receiver } = offer;
  const body = JSON.stringify({
    error: 'Payment Required',
    charge_id: HOLE,
    amount: route.amount,
    currency: route.currency,
    description: offer.description,
    x402_requirements: {
      rail_config: {
        scheme: receiver.scheme,
        network: receiver.network,
        asset: receiver.asset,
        pay_to_address: receiver.payTo,
        max_timeout_seconds: receiver.maxTimeoutSeconds,
      },
      amount: route.amount,
      currency: route.currency,
      external_ref: HOLE,
    },
  });
  const first = body.indexOf(HOLE_JSON);
  const last = body.lastIndexOf(HOLE_JSON);
  const description = clip(offer.description.replace(/[\u0000-\u001f\u007f]+/g, ' '), MAX_DESCRIPTION_BYTES);
  const header = JSON.stringify({
    resource: { description, mimeType: MIME_TYPE },
    accepts: [
      {
        scheme: receiver.scheme,
        network: receiver.caip2,
        amount: offer.atomic.toString(),
        asset: receiver.asset,
        payTo: receiver.payTo,
        maxTimeoutSeconds: receiver.maxTimeoutSeconds,
        extra: { name: receiver.assetName, version: receiver.assetVersion, external_ref: HOLE },
      },
    ],
  }).slice('{"resource":{'.length);
  const hole = header.lastIndexOf(HOLE_JSON);
  return {
    bodyStart: body.slice(0, first),
    bodyMiddle: body.slice(first + HOLE_JSON.length, last),
    bodyEnd: body.slice(last + HOLE_JSON.length, -1),
    ...writeV1(offer, v1, description),
    headerStart: `,${header.slice(0, hole)}`,
    headerEnd: header.slice(hole + HOLE_JSON.length),
  };
}

/** v1 clients know networks by name only: if the receiver's has none, the v1 members stay away. */
function writeV1(offer: Offer, v1: boolean, description: string): Pick<Template, 'v1Start' | 'v1End'> {
  const { receiver } = offer;
  if (!v1 || receiver.v1Network === undefined) return { v1Start: undefined, v1End: '' };
  const start = JSON.stringify({
    scheme: receiver.scheme,
    network: receiver.v1Network,
    maxAmountRequired: offer.atomic.toString(),
    description,
    mimeType: MIME_TYPE,
    payTo: receiver.payTo,
    maxTimeoutSeconds: receiver.maxTimeoutSeconds,
    asset: receiver.asset,
    extra: { name: receiver.assetName, version: receiver.assetVersion },
  }).slice(0, -1);
  return { v1Start: `,"x402Version":1,"accepts":[${start},"resource":`, v1End: '}]' };
}

/** At most 1,024 bytes; a longer one is cut, never inside a percent-escape. */
function resourceUrl(origin: string, path: string): string {
  const url = origin + path;
  return url.length <= MAX_URL_BYTES ? url : url.slice(0, MAX_URL_BYTES).replace(/%[0-9A-F]?$/, '');
}

/** `text` cut to `bytes` bytes of UTF-8, at a character. */
function clip(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const cut = Buffer.from(text).subarray(0, bytes).toString();
  return cut.replace(/\uFFFD+$/, '');
}
