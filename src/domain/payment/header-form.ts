// Fits an offer into the header of a 402. Its size is bounded, because proxies in front keep little room for the head
// of a response: nginx 4 KiB by default. A part that does not fit is left out in a fixed order, once for an offer and
// not for each request. It can be paid all the same.
import { type OfferedWay, clip } from './offer.ts';
import { SIGN_IN_BYTES, SIGN_IN_HOLE_JSON } from '../selling/sign-in.ts';

/** Size of the header as it is sent: base64. */
const MAX_HEADER_BYTES = 3072;
const MAX_JSON_BYTES = (MAX_HEADER_BYTES / 4) * 3;
/** A URL up to this is shown whole, and a longer one as far as there is room left. */
const URL_BYTES = { sure: 256, most: 1024 } as const;
/** The longest reason that is a code alone. */
const CODE_BYTES = 'x402_version_unsupported'.length;
/** Size of a description that has to make room. */
const SHORT_DESCRIPTION_BYTES = 64;

const MIME_TYPE = 'application/json';

// Stands where the charge id goes. A route's own text may hold it too, but never behind that of an entry.
export const HOLE = '\u0000';
export const HOLE_JSON = JSON.stringify(HOLE).slice(1, -1);

/** An entry of `accepts`, and the way that it is for. */
export type ShownWay = {
  readonly offered: OfferedWay;
  readonly entry: object;
  /** Place of its price among those that are shown. */
  readonly price: number;
  /** Length of the charge id that it will hold. */
  readonly idBytes: number;
};

export type HeaderForm = {
  readonly description: string;
  readonly ways: readonly ShownWay[];
  /** Listing as JSON; undefined: none is shown. */
  readonly bazaar: string | undefined;
  /** Declaration of sign-in-with-x as JSON, with holes; undefined: none is shown. */
  readonly signIn: string | undefined;
};

/** What may be left out of a header. */
type Wanted = {
  readonly description: string;
  readonly ways: readonly ShownWay[];
  /** Listings, fullest first. */
  readonly bazaars?: readonly string[] | undefined;
  /** Declarations of sign-in-with-x, fullest first. */
  readonly signIns?: readonly string[] | undefined;
};

/** Picks the fullest form that there is room for. `ways` hold the hole in the place of the charge id, once in each entry. */
export function fitHeader(wanted: Wanted): HeaderForm {
  const { description, ways } = wanted;
  let form: HeaderForm = { description, ways, bazaar: undefined, signIn: undefined };
  for (form of formsOf(wanted)) if (bytesWithoutUrl(form) + CODE_BYTES + URL_BYTES.sure <= MAX_JSON_BYTES) break;
  return form;
}

/** Yields the forms, the fullest first. The last one is taken in any case: it has one way, and room. */
function* formsOf({ description, ways, bazaars = [], signIns = [] }: Wanted): Generator<HeaderForm> {
  const [fullest] = signIns;
  for (const bazaar of [...bazaars, undefined]) yield { description, ways, bazaar, signIn: fullest };
  const short = clip(description, SHORT_DESCRIPTION_BYTES);
  const bare = { description: short, bazaar: undefined };
  for (const signIn of [...signIns, undefined]) yield { ...bare, ways, signIn };
  for (const shown of shortened(ways)) yield { ...bare, ways: shown, signIn: undefined };
}

/** Yields fewer and fewer ways: passes go before ways, the last ones first, each with all of its ways. */
function* shortened(ways: readonly ShownWay[]): Generator<readonly ShownWay[]> {
  let left = ways;
  for (let price = ways.at(-1)?.price ?? 0; price > 0; price--) yield (left = left.filter((way) => way.price < price));
  for (let count = left.length - 1; count > 0; count--) yield left.slice(0, count);
}

/** Text of the header around URL, reason and the entries of `accepts`. */
export function writeAround({ description, bazaar, signIn }: HeaderForm): {
  readonly beforeReason: string;
  readonly beforeUrl: string;
  readonly beforeAccepts: string;
  readonly after: string;
} {
  const resource = JSON.stringify({ description, mimeType: MIME_TYPE }).slice(1);
  const extensions = [
    ...(bazaar === undefined ? [] : [`"bazaar":${bazaar}`]),
    ...(signIn === undefined ? [] : [`"sign-in-with-x":${signIn}`]),
  ];
  return {
    beforeReason: '{"x402Version":2,"error":',
    beforeUrl: ',"resource":{"url":',
    beforeAccepts: `,${resource},"accepts":[`,
    after: extensions.length === 0 ? ']}' : `],"extensions":{${extensions.join(',')}}}`,
  };
}

/** Counts the bytes of the JSON, with charge ids, and with nothing between the quotes of reason and URL. */
export function bytesWithoutUrl(form: HeaderForm): number {
  const { beforeReason, beforeUrl, beforeAccepts, after } = writeAround(form);
  const entries = form.ways.map(({ entry }) => JSON.stringify(entry)).join(',');
  const text = `${beforeReason}""${beforeUrl}""${beforeAccepts}${entries}${after}`;
  const ids = form.ways.reduce((sum, { idBytes }) => sum + idBytes - HOLE_JSON.length, 0);
  const nonces = form.signIn === undefined ? 0 : SIGN_IN_BYTES - 3 * SIGN_IN_HOLE_JSON.length;
  return Buffer.byteLength(text) + ids + nonces;
}

/** Cuts `url` and `reason` to the room there is. `bytes` is the size of the form without both. */
export function fitInto(bytes: number, url: string, reason: string): { readonly url: string; readonly reason: string } {
  const room = MAX_JSON_BYTES - bytes;
  // A word behind the code is for people, and stands in full in another header.
  const code = reason.length + Math.min(url.length, URL_BYTES.sure) <= room ? reason : reason.replace(/:.*$/, '');
  const most = Math.min(URL_BYTES.most, Math.max(URL_BYTES.sure, room - code.length));
  return { url: cutUrl(url, most), reason: code };
}

/** Cuts `url` to at most `bytes` bytes, never inside a percent-escape. */
export function cutUrl(url: string, bytes: number = URL_BYTES.most): string {
  return url.length <= bytes ? url : url.slice(0, bytes).replace(/%[0-9A-F]?$/, '');
}
