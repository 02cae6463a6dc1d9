// The 402: the body of the source interface's section 7.1 to the letter, and beside it the x402 v2 header that machines
// read. Everything that a route fixes is serialised once per offer; an answer only puts charge id and URL in between.
// Both are public: nothing here may depend on who asks. Sources: interface 7.1, x402 v1 and v2.
import { LRUCache } from 'lru-cache';
import type { Listing } from '../discovery/listing.ts';
import { type Offer, type OfferedWay, settlesFirst, shortDescription } from './offer.ts';
import {
  bytesWithoutUrl,
  cutUrl,
  fitHeader,
  fitInto,
  HOLE,
  HOLE_JSON,
  writeAround,
  type HeaderForm,
  type ShownWay,
} from './header-form.ts';
import type { Requirement, Way } from './way.ts';
import type { ChargeId } from './quote.ts';

export type Demand = {
  readonly offer: Offer;
  /** Listing of the operation; undefined if it is not listed. */
  readonly listing?: Listing | undefined;
  readonly chargeId: ChargeId;
  /** Scheme and authority under which clients reach the API, such as `https://api.example.com`. */
  readonly origin: string;
  /** The canonical path, without a query. */
  readonly path: string;
  readonly method: string;
  /** Reason of the 402, such as `payment_required` or `quote_mismatch`: a code, and maybe `: ` and a word. */
  readonly reason: string;
};

export type PaymentRequired = {
  readonly body: string;
  /** Length of `body` as UTF-8. */
  readonly bodyBytes: number;
  readonly header: string;
  /** The JSON text of `accepts` as version 1 writes it; undefined if version 1 can name no way, or is not spoken. */
  readonly accepts: string | undefined;
  /** Ways that the header shows, in its order: the same list for as long as it shows the same. */
  readonly ways: readonly OfferedWay[];
};

/** Offers, and listings of them, whose text is kept. */
const KEPT = 1024;

export type PaymentRequiredOptions = {
  /** Adds x402's v1 members to the body, after the interface's fields. */
  readonly v1: boolean;
  readonly requirement: Requirement;
  /** Whether anybody may be asked about payments in this way; one that cannot be is listed last. */
  readonly isCallable?: (way: Way) => boolean;
  /** Counter that is raised whenever an entry of `accepts` changes, moves, or can or cannot be written any more. */
  readonly revision?: () => number;
};

/** Renders 402 answers; undefined: none of the offer's ways can be paid at the moment. */
export function createPaymentRequired(
  options: PaymentRequiredOptions,
): (demand: Demand) => PaymentRequired | undefined {
  const { revision = () => 0 } = options;
  const keep = (upfront: boolean): TextCache => {
    // Texts by the listing, which belongs to one route, or without a listing by the offer. If each is written anew, a
    // 402 takes 1.4 times the CPU (`npm run bench -- --only payment-required --checkout ../without`).
    const kept = new LRUCache<Listing | Offer, Texts>({ max: KEPT });
    return ({ offer, listing }) => {
      const key = listing ?? offer;
      let texts = kept.get(key);
      if (texts === undefined || texts.offer !== offer || texts.revision !== revision()) {
        const template = writeTemplate(offer, listing, upfront, options);
        kept.set(key, (texts = { offer, revision: revision(), template, fixed: undefined }));
      }
      return texts;
    };
  };
  const kept = { first: keep(true), later: keep(false) };
  return (demand) => {
    const { offer, method, chargeId } = demand;
    const texts = settlesFirst(offer.receiver.settle, method) ? kept.first(demand) : kept.later(demand);
    const { template } = texts;
    if (template === undefined) return undefined;
    const { nonce } = chargeId;
    let { fixed } = texts;
    if (fixed === undefined || !isFixedFor(fixed, demand)) texts.fixed = fixed = fix(template, demand);
    const { accepts, bodyStart, bodyMiddle, bodyEnd, bodyBytes, headerStart, headerRest, headerAfter } = fixed;
    let rest = headerRest;
    for (const text of headerAfter) rest += nonce + text;
    return {
      body: bodyStart + nonce + bodyMiddle + nonce + bodyEnd,
      bodyBytes: bodyBytes + 2 * nonce.length,
      header: headerStart + btoa(rest),
      accepts,
      ways: template.ways,
    };
  };
}

type TextCache = (demand: Demand) => Texts;

/** The texts that are written once for an offer, and the last ones that a request shares with the next. */
type Texts = {
  readonly offer: Offer;
  readonly revision: number;
  readonly template: Template | undefined;
  fixed: FixedTexts | undefined;
};

type FixedTexts = {
  readonly signed: string;
  readonly path: string;
  readonly origin: string;
  readonly reason: string;
  readonly accepts: string | undefined;
  readonly bodyStart: string;
  readonly bodyMiddle: string;
  readonly bodyEnd: string;
  /** Bytes of the three texts above. */
  readonly bodyBytes: number;
  /** Header up to a multiple of 3 bytes in base64, and the bytes after that, one character each. */
  readonly headerStart: string;
  readonly headerRest: string;
  /** Texts that follow the charge id, once for each way, one character a byte. */
  readonly headerAfter: readonly string[];
};

function isFixedFor(fixed: FixedTexts, { chargeId, path, origin, reason }: Demand): boolean {
  return fixed.path === path && fixed.signed === chargeId.signed && fixed.origin === origin && fixed.reason === reason;
}

function fix(template: Template, { chargeId: { signed }, path, origin, reason }: Demand): FixedTexts {
  const whole = origin + path;
  const accepts = template.v1?.join(JSON.stringify(cutUrl(whole)));
  const v1 = accepts === undefined ? '' : `,"x402Version":1,"accepts":${accepts}`;
  const shown = fitInto(template.bytes, whole, reason);
  const { headerFirst, headerAfter } = template;
  const { beforeReason, beforeUrl } = template.around;
  const header = `${beforeReason}${JSON.stringify(shown.reason)}${beforeUrl}${JSON.stringify(shown.url)}${headerFirst}${signed}`;
  const bodyStart = template.bodyStart + signed;
  const bodyMiddle = template.bodyMiddle + signed;
  const bodyEnd = `${template.bodyEnd}${v1}}`;
  const bytes = Buffer.from(header);
  const thirds = bytes.length - (bytes.length % 3);
  return {
    ...{ signed, path, origin, reason, accepts, bodyStart, bodyMiddle, bodyEnd },
    bodyBytes: template.bodyBytes + 2 * signed.length + Buffer.byteLength(v1) + 1,
    headerStart: bytes.toString('base64', 0, thirds),
    headerRest: bytes.toString('latin1', thirds),
    headerAfter: headerAfter.map((text, index) => (index < headerAfter.length - 1 ? text + signed : text)),
  };
}

type Template = {
  readonly ways: readonly OfferedWay[];
  readonly bodyStart: string;
  readonly bodyMiddle: string;
  readonly bodyEnd: string;
  /** Bytes of the three texts above. */
  readonly bodyBytes: number;
  /** The text of version 1's `accepts` around its URLs. */
  readonly v1: readonly string[] | undefined;
  /** The header's text after the URL, up to the first charge id. */
  readonly headerFirst: string;
  /** Texts that follow the charge id, once for each way, one character a byte. */
  readonly headerAfter: readonly string[];
  readonly around: Pick<ReturnType<typeof writeAround>, 'beforeReason' | 'beforeUrl'>;
  /** Length of the header's JSON, without URL and reason. */
  readonly bytes: number;
};

/** Writes the texts around the charge id; undefined if no way can be named in version 2, which all ways are of. */
function writeTemplate(
  offer: Offer,
  listing: Listing | undefined,
  upfront: boolean,
  options: PaymentRequiredOptions,
): Template | undefined {
  const { isCallable = () => true } = options;
  const write = createWrite(offer, upfront, options.requirement);
  const form = formOf(offer, listing, upfront, options.requirement);
  const listed = <T>(ways: readonly T[], wayIn: (each: T) => Way): readonly T[] =>
    ways.toSorted((one, other) => Number(isCallable(wayIn(other))) - Number(isCallable(wayIn(one))));
  const shown = listed(form.ways, ({ offered }) => offered.way);
  const [preferred] = shown;
  if (preferred === undefined) return undefined;
  const body = writeBody(offer, preferred.offered);
  const v1 = options.v1 ? listed(namedInV1(offer), ({ way }) => way).flatMap((offered) => write(offered, 1) ?? []) : [];
  const around = writeAround(form);
  const [headerFirst = '', ...headerAfter] = cut(
    around.beforeAccepts,
    shown.map(({ entry }) => entry),
    HOLE_JSON,
    around.after,
  );
  return {
    ...body,
    bodyBytes: Buffer.byteLength(body.bodyStart + body.bodyMiddle + body.bodyEnd),
    ways: shown.map(({ offered }) => offered),
    // If version 1 can name no way, its members stay away.
    v1: v1.length === 0 ? undefined : cut('[', v1, `"${HOLE_JSON}"`, ']'),
    headerFirst,
    headerAfter: headerAfter.map((text) => Buffer.from(text).toString('latin1')),
    around,
    bytes: bytesWithoutUrl(form),
  };
}

type Write = (offered: OfferedWay, version: 1 | 2) => object | undefined;

function createWrite({ description }: Offer, upfront: boolean, requirement: Requirement): Write {
  const shown = shortDescription(description);
  return (offered, version) =>
    requirement({ ...offered, description: shown, resource: HOLE }, { chargeId: HOLE, upfront }, version);
}

/** A route shows the same ways to every method: it is fitted as if each said the most that one of them may be told. */
function formOf(offer: Offer, listing: Listing | undefined, upfront: boolean, requirement: Requirement): HeaderForm {
  const { description, ways, receiver, route } = offer;
  const write = (offered: readonly OfferedWay[], first: boolean): readonly ShownWay[] => {
    const writeEntry = createWrite(offer, first, requirement);
    return offered.flatMap((each): ShownWay[] => {
      const entry = writeEntry(each, 2);
      return entry === undefined ? [] : [{ offered: each, entry }];
    });
  };
  const maySettleFirst = upfront || settlesFirst(receiver.settle, route.method === '*' ? 'POST' : route.method);
  const form = fitHeader(shortDescription(description), write(ways, maySettleFirst), listing?.bazaar);
  const shown = form.ways.map(({ offered }) => offered);
  return maySettleFirst === upfront ? form : { ...form, ways: write(shown, upfront) };
}

/** The ways that the header has no room for. They are payable all the same. */
export function waysNotShown(offer: Offer, requirement: Requirement): readonly OfferedWay[] {
  const shown = new Set(formOf(offer, undefined, false, requirement).ways.map(({ offered }) => offered));
  return offer.ways.filter((offered) => !shown.has(offered));
}

/** Version 1 names a way by its network alone, so only the first of each can be paid by it. */
function namedInV1({ ways, receiver }: Offer): readonly OfferedWay[] {
  return ways.filter(({ way }) => receiver.ways.find((each) => each.way.network === way.network)?.way === way);
}

function writeBody(
  { route, description }: Offer,
  { way, networkName }: OfferedWay,
): Pick<Template, 'bodyStart' | 'bodyMiddle' | 'bodyEnd'> {
  const body = JSON.stringify({
    error: 'Payment Required',
    charge_id: HOLE,
    amount: route.amount,
    currency: route.currency,
    description,
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
  return {
    bodyStart: body.slice(0, first),
    bodyMiddle: body.slice(first + HOLE_JSON.length, last),
    bodyEnd: body.slice(last + HOLE_JSON.length, -1),
  };
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
