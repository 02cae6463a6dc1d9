// Fits an offer into the header of a 402. Its size is bounded, because proxies in front keep little room for the head
// of a response: nginx 4 KiB by default. A part that does not fit is left out in a fixed order, once for an offer and
// not for each request. It can be paid all the same.
import { type OfferedWay, clip } from './offer.ts';
import { CHARGE_ID_BYTES } from './quote.ts';

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
export type ShownWay = { readonly offered: OfferedWay; readonly entry: object };

export type HeaderForm = {
  readonly description: string;
  readonly ways: readonly ShownWay[];
  /** Listing as JSON; undefined: none is shown. */
  readonly bazaar: string | undefined;
};

/**
 * Picks the fullest form that there is room for. `ways` hold the hole in the place of the charge id, once in each
 * entry. `bazaars` come fullest first.
 */
export function fitHeader(description: string, ways: readonly ShownWay[], bazaars: readonly string[] = []): HeaderForm {
  let form: HeaderForm = { description, ways, bazaar: undefined };
  for (form of formsOf(description, ways, bazaars))
    if (bytesWithoutUrl(form) + CODE_BYTES + URL_BYTES.sure <= MAX_JSON_BYTES) break;
  return form;
}

/** Yields the forms, the fullest first. The last one is taken in any case: it has one way, and room. */
function* formsOf(description: string, ways: readonly ShownWay[], bazaars: readonly string[]): Generator<HeaderForm> {
  for (const bazaar of [...bazaars, undefined]) yield { description, ways, bazaar };
  const short = clip(description, SHORT_DESCRIPTION_BYTES);
  for (let count = ways.length; count > 0; count--)
    yield { description: short, ways: ways.slice(0, count), bazaar: undefined };
}

/** Text of the header around URL, reason and the entries of `accepts`. */
export function writeAround({ description, bazaar }: HeaderForm): {
  readonly beforeReason: string;
  readonly beforeUrl: string;
  readonly beforeAccepts: string;
  readonly after: string;
} {
  const resource = JSON.stringify({ description, mimeType: MIME_TYPE }).slice(1);
  return {
    beforeReason: '{"x402Version":2,"error":',
    beforeUrl: ',"resource":{"url":',
    beforeAccepts: `,${resource},"accepts":[`,
    after: bazaar === undefined ? ']}' : `],"extensions":{"bazaar":${bazaar}}}`,
  };
}

/** Counts the bytes of the JSON, with charge ids, and with nothing between the quotes of reason and URL. */
export function bytesWithoutUrl(form: HeaderForm): number {
  const { beforeReason, beforeUrl, beforeAccepts, after } = writeAround(form);
  const entries = form.ways.map(({ entry }) => JSON.stringify(entry)).join(',');
  const text = `${beforeReason}""${beforeUrl}""${beforeAccepts}${entries}${after}`;
  return Buffer.byteLength(text) + form.ways.length * (CHARGE_ID_BYTES - HOLE_JSON.length);
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
