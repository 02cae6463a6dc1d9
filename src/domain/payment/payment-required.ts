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
import { pricesShown } from './pass-offers.ts';
import { chargeIdBytes, type ChargeId } from './quote.ts';
import { SIGN_IN_HOLE_JSON, writeSignIn, type SignInNonce, type SignInSite } from '../selling/sign-in.ts';
import type { PassTerms } from '../selling/pass.ts';

export type Demand = {
  readonly offer: Offer;
  /** Listing of the operation; undefined if it is not listed. */
  readonly listing?: Listing | undefined;
  /** Charge id of the first price that is shown. */
  readonly chargeId: ChargeId;
  /** Signed parts of the charge ids of the others, in their order; the nonce is the same. */
  readonly further?: readonly string[] | undefined;
  /** Nonce for a wallet's signature; undefined: none is asked for. */
  readonly signIn?: SignInNonce | undefined;
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
  /** Where wallets sign in; undefined: nowhere. */
  readonly signInSite?: SignInSite | undefined;
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
    return ({ offer: given, listing }) => {
      const offer = given.shared ?? given;
      const key = given.shared ?? listing ?? given;
      let texts = kept.get(key);
      if (texts === undefined || texts.offer !== offer || texts.listing !== listing || texts.revision !== revision()) {
        const template = writeTemplate(offer, listing, upfront, options);
        kept.set(key, (texts = { offer, listing, revision: revision(), template, fixed: undefined }));
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
  readonly listing: Listing | undefined;
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
  readonly signIn: SignInNonce | undefined;
};

function isFixedFor(fixed: FixedTexts, { chargeId, path, origin, reason, signIn }: Demand): boolean {
  // Charge ids of the other prices are of the same second.
  const isSame = fixed.path === path && fixed.signed === chargeId.signed;
  return isSame && fixed.origin === origin && fixed.reason === reason && fixed.signIn === signIn;
}

function fix(template: Template, demand: Demand): FixedTexts {
  const { chargeId, further = [], path, origin, reason, signIn } = demand;
  const { signed } = chargeId;
  const signedOf = (place: number): string => (place === 0 ? signed : (further[place - 1] ?? signed));

  const whole = origin + path;
  const accepts = template.v1?.join(JSON.stringify(cutUrl(whole)));
  const v1 = accepts === undefined ? '' : `,"x402Version":1,"accepts":${accepts}`;
  const shown = fitInto(template.bytes, whole, reason);
  const { headerFirst, headerAfter, prices } = template;
  const { beforeReason, beforeUrl } = template.around;
  const header = `${beforeReason}${JSON.stringify(shown.reason)}${beforeUrl}${JSON.stringify(shown.url)}${headerFirst}${signedOf(prices[0] ?? 0)}`;
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
    headerAfter: headerAfter.map((text, index) =>
      index < headerAfter.length - 1 ? text + signedOf(prices[index + 1] ?? 0) : fillSignIn(text, signIn),
    ),
    signIn,
  };
}

/** Puts nonce and times into the holes of the header's end. */
function fillSignIn(text: string, signIn: SignInNonce | undefined): string {
  if (signIn === undefined) return text;
  const [before = '', afterNonce, afterIssued, rest] = text.split(SIGN_IN_HOLE_JSON);
  if (afterNonce === undefined || afterIssued === undefined || rest === undefined) return text;
  return before + signIn.nonce + afterNonce + signIn.issuedAt + afterIssued + signIn.expirationTime + rest;
}

type Template = {
  readonly ways: readonly OfferedWay[];
  /** Places of the prices of the entries. */
  readonly prices: readonly number[];
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
  const [first = offer] = pricesShown(offer);
  const write = createWrite(first, upfront, options.requirement);
  const form = formOf(offer, listing, upfront, options);
  const listed = <T>(ways: readonly T[], wayIn: (each: T) => Way): readonly T[] =>
    ways.toSorted((one, other) => Number(isCallable(wayIn(other))) - Number(isCallable(wayIn(one))));
  const shown = listed(form.ways, ({ offered }) => offered.way).toSorted((one, other) => one.price - other.price);
  const [preferred] = shown;
  if (preferred === undefined) return undefined;
  const body = writeBody(first, preferred.offered);
  const v1 = options.v1 ? listed(namedInV1(first), ({ way }) => way).flatMap((offered) => write(offered, 1) ?? []) : [];
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
    ways: shown.flatMap(({ offered, price }) => (price === 0 ? [offered] : [])),
    prices: shown.map(({ price }) => price),
    // If version 1 can name no way, its members stay away.
    v1: v1.length === 0 ? undefined : cut('[', v1, `"${HOLE_JSON}"`, ']'),
    headerFirst,
    headerAfter: headerAfter.map((text) => Buffer.from(text).toString('latin1')),
    around,
    bytes: bytesWithoutUrl(form),
  };
}

type Write = (offered: OfferedWay, version: 1 | 2) => object | undefined;

function createWrite({ description, pass }: Offer, upfront: boolean, requirement: Requirement): Write {
  const shown = shortDescription(description);
  return (offered, version) => {
    const offer = { ...offered, description: shown, resource: HOLE };
    const entry = requirement(offer, { chargeId: HOLE, upfront }, version);
    return entry === undefined || pass === undefined || version === 1 ? entry : namePass(entry, pass.terms);
  };
}

/** Adds to `extra` what the entry buys, before the charge id: behind that stands nothing of a plan's. */
function namePass(entry: object, terms: PassTerms): object {
  const { id, scope, validMs } = terms;
  const given = 'extra' in entry && typeof entry.extra === 'object' ? entry.extra : {};
  return { ...entry, extra: { pass: { id, ...measureOf(terms), scope, valid: validMs / 1000 }, ...given } };
}

function measureOf(terms: PassTerms): object {
  switch (terms.kind) {
    case 'seconds':
      return { seconds: terms.seconds };
    case 'uses':
      return { uses: terms.uses };
    case 'credit':
      return { credit: terms.credit };
    default:
      return terms satisfies never;
  }
}

type FormOptions = Pick<PaymentRequiredOptions, 'requirement' | 'signInSite'>;

/** A route shows the same ways to every method: it is fitted as if each said the most that one of them may be told. */
function formOf(offer: Offer, listing: Listing | undefined, upfront: boolean, options: FormOptions): HeaderForm {
  const { description, receiver, route } = offer;
  const prices = pricesShown(offer);
  const write = (first: boolean): readonly ShownWay[] =>
    prices.flatMap((each, price) => {
      const writeEntry = createWrite(each, first, options.requirement);
      return each.ways.flatMap((offered): ShownWay[] => {
        const entry = writeEntry(offered, 2);
        return entry === undefined ? [] : [{ offered, entry, price, idBytes: chargeIdBytes(each) }];
      });
    });
  const maySettleFirst = upfront || settlesFirst(receiver.settle, route.method === '*' ? 'POST' : route.method);
  const form = fitHeader({
    description: shortDescription(description),
    ways: write(maySettleFirst),
    bazaars: listing?.bazaar,
    signIns: signInsFor(offer, options.signInSite),
  });
  if (maySettleFirst === upfront) return form;
  const isShown = ({ offered, price }: ShownWay): boolean =>
    form.ways.some((each) => each.offered === offered && each.price === price);
  return { ...form, ways: write(upfront).filter(isShown) };
}

/** Declarations of sign-in-with-x, fullest first. */
function signInsFor({ passes, ways }: Offer, site: SignInSite | undefined): readonly string[] {
  if (passes?.wallet !== true || site === undefined) return [];
  const chains = ways.map(({ way }) => way.network);
  return [true, false].flatMap((withSchema) => writeSignIn(site, chains, withSchema) ?? []);
}

/** The ways of a single request that the header has no room for. They are payable all the same. */
export function waysNotShown(offer: Offer, requirement: Requirement): readonly OfferedWay[] {
  const shown = new Set(formOf(offer, undefined, false, { requirement }).ways.map(({ offered }) => offered));
  return offer.ways.filter((offered) => !shown.has(offered));
}

/** What a plan sells and the header has no room for, so that nobody is offered it. */
export type NotOffered = { readonly passes: readonly PassTerms[]; readonly signIn: boolean };

export function notOffered(offer: Offer, options: FormOptions): NotOffered {
  const form = formOf(offer, undefined, false, options);
  const shown = new Set(form.ways.map(({ price }) => price));
  const passes = pricesShown(offer).flatMap(({ pass }, price) =>
    pass === undefined || shown.has(price) ? [] : [pass.terms],
  );
  return { passes, signIn: form.signIn === undefined && signInsFor(offer, options.signInSite).length > 0 };
}

/** Version 1 names a way by its network alone, so only the first of each can be paid by it. */
function namedInV1({ ways, receiver }: Offer): readonly OfferedWay[] {
  return ways.filter(({ way }) => receiver.ways.find((each) => each.way.network === way.network)?.way === way);
}

function writeBody(
  { route, amount, description }: Offer,
  { way, networkName }: OfferedWay,
): Pick<Template, 'bodyStart' | 'bodyMiddle' | 'bodyEnd'> {
  const body = JSON.stringify({
    error: 'Payment Required',
    charge_id: HOLE,
    amount,
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
      amount,
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
