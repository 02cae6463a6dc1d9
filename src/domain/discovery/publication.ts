// What the origin tells everybody of what it sells: `/openapi.json` and `/llms.txt`, made once for each change of the
// routes and written around the origin that a request names. Plain data: a thread makes it, and workers are handed it.
import { createHash } from 'node:crypto';
import type { Pattern } from '../pattern.ts';
import type { PathOptions, Resolution } from '../resolve.ts';
import type { Route } from '../route.ts';
import { compileSnapshot } from '../snapshot.ts';
import { writeLlmsText } from './llms-text.ts';
import type { OwnerDocument } from './owner-document.ts';
import { titleOf, writePaths, type WrittenPaths } from './public-openapi.ts';
import { findSold, type LeftOut } from './sold-operations.ts';

export type Publication = {
  readonly openapi: string;
  /** Undefined: the host of the origin. */
  readonly title: string | undefined;
  readonly version: string;
  readonly contact: string | undefined;
  readonly guidance: string;
  readonly docsUrl: string | undefined;
  /** The rest of the document's members, as JSON. */
  readonly rest: string;
  /** The owner's own text, or what follows the title, around the origin. */
  readonly llms: string | readonly string[];
  /** Of all this. */
  readonly digest: string;
};

export type PublicationReport = {
  readonly operations: readonly Pick<Price, 'method' | 'path' | 'amount' | 'currency'>[];
  readonly leftOut: readonly LeftOut[];
  /** Paths of ours that a route covers. `by`: in words. */
  readonly taken: readonly { readonly path: string; readonly by: string }[];
  /** Operations that a document of the largest size has no room for. */
  readonly cut: number;
  readonly without: WrittenPaths['without'];
  /** Of `/openapi.json`, at an origin of usual length. */
  readonly bytes: number;
};
type Price = { readonly method: string; readonly path: string; readonly amount: string; readonly currency: string };

export type PublicationSettings = {
  readonly title: string | undefined;
  readonly contact: string | undefined;
  readonly docsUrl: string | undefined;
  /** The owner's own text of `/llms.txt`. */
  readonly llms: string | undefined;
  readonly exclude: readonly Pattern[];
  /** Names who asks, if a route does not take anybody. */
  readonly customerHeader: string;
  readonly paths: PathOptions;
  /** By receiver: networks with their tokens. Undefined: nobody can pay to it. */
  readonly ways: ReadonlyMap<string, readonly string[]>;
};

export const OPENAPI_PATH = '/openapi.json';
export const LLMS_PATH = '/llms.txt';
/** Of `/openapi.json`. */
export const MOST_BYTES = 1024 * 1024;
/** Crawlers read no more. */
export const CRAWLED_BYTES = 64 * 1024;

const ORIGIN_BYTES = 'https://'.length + 255 + ':65535'.length;
const LONGEST_ORIGIN = `https://${'x'.repeat(ORIGIN_BYTES - 8)}`;
const USUAL_ORIGIN = 'https://api.example.com';
/** Operations that the guidance names, of so many. */
const NAMED = 5;
const MOST_ASKED = 50;

/** `isPayable`: whether somebody could pay for a route. */
export function publish(
  settings: PublicationSettings,
  owner: OwnerDocument | undefined,
  routes: readonly Route[],
  isPayable: (route: Route) => boolean,
): { readonly publication: Publication; readonly report: PublicationReport } {
  const { resolve } = compileSnapshot({ registryId: '', revision: 0, routes }, settings.paths);
  const sold = findSold({
    routes,
    ...{ resolve, isPayable },
    exclude: settings.exclude,
    operations: owner?.operations ?? [],
  });
  const { title, contact, docsUrl, customerHeader } = settings;
  const titles = new Set(sold.operations.slice(0, MOST_ASKED).map(titleOf));
  const told = [...titles].slice(0, NAMED).join('; ');
  const of = title ?? owner?.title;
  const head = {
    openapi: owner?.openapi ?? '3.1.0',
    title: of,
    version: owner?.version ?? '1.0.0',
    contact,
    guidance: `${of ?? 'This API'} sells ${told === '' ? 'nothing at the moment' : `${told}${titles.size > NAMED ? '; and more' : ''}`}. ${HOW_TO_PAY}`,
    docsUrl,
  };
  const around = Buffer.byteLength(writeHead(head, LONGEST_ORIGIN)) + 2;
  const { components } = owner ?? {};
  const written = writePaths(sold.operations, { components, customerHeader }, MOST_BYTES - around);
  const receivers = new Set(written.operations.map(({ route }) => route.receiverConfigId ?? 'default'));
  const llms =
    settings.llms ??
    writeLlmsText({
      operations: written.operations,
      sold: sold.operations.length,
      ways: [...new Set([...receivers].flatMap((id) => settings.ways.get(id) ?? []))],
      docsUrl,
    });
  const digest = createHash('sha256')
    .update(JSON.stringify([head, written.text, llms]))
    .digest('base64url');
  return {
    publication: { ...head, rest: written.text, llms, digest: digest.slice(0, 22) },
    report: {
      operations: written.operations.map(({ method, path, route: { amount, currency } }) => {
        return { method, path, amount, currency };
      }),
      leftOut: sold.leftOut,
      taken: [OPENAPI_PATH, LLMS_PATH].flatMap((path) => takenBy(path, resolve)),
      cut: sold.operations.length - written.operations.length,
      without: written.without,
      bytes: Buffer.byteLength(writeHead(head, USUAL_ORIGIN)) + 2 + written.bytes,
    },
  };
}

function takenBy(
  path: string,
  resolve: (method: string, path: string) => Resolution,
): readonly { readonly path: string; readonly by: string }[] {
  const resolution = resolve('GET', path);
  if (!resolution.ok || resolution.match.kind === 'none') return [];
  const { match } = resolution;
  const route = match.kind === 'route' ? match.route : match.highestPriced;
  return [{ path, by: route === undefined ? 'a paused route' : `the route ${route.method} ${route.pattern}` }];
}

const HOW_TO_PAY =
  'Each request is paid by itself by x402 version 2, without an account. Send it without a payment: the answer is 402 and names price and ways to pay in the header PAYMENT-REQUIRED (base64 of JSON). Sign a payment for one entry of its accepts and send the same request again with it in the header PAYMENT-SIGNATURE; the receipt comes in PAYMENT-RESPONSE. If an answer is lost, send the very same request again: it is not charged twice. After a 503 send the same request with the same payment again when Retry-After says so.';

export type PublicDocuments = { readonly openapi: string; readonly llms: string };

/** As clients at `origin` (scheme and authority) get them. */
export function renderPublication(publication: Publication, origin: string): PublicDocuments {
  const { rest, llms, title } = publication;
  return {
    openapi: `${writeHead(publication, origin)},${rest}}`,
    llms: typeof llms === 'string' ? llms : `# ${title ?? hostOf(origin)}\n\n${llms.join(origin)}`,
  };
}

type Head = Pick<Publication, 'openapi' | 'title' | 'version' | 'contact' | 'guidance' | 'docsUrl'>;

/** JSON without its last brace. */
function writeHead({ openapi, title, version, contact, guidance, docsUrl }: Head, origin: string): string {
  const llms = origin + LLMS_PATH;
  return JSON.stringify({
    openapi,
    info: {
      title: title ?? hostOf(origin),
      version,
      ...(contact === undefined ? {} : { contact: { email: contact } }),
      'x-guidance': guidance,
    },
    servers: [{ url: origin }],
    'x-service-info': { docs: { ...(docsUrl === undefined ? {} : { homepage: docsUrl }), llms } },
    'x-agentcash-guidance': { llmsTxtUrl: llms },
  }).slice(0, -1);
}

function hostOf(origin: string): string {
  return origin.replace(/^https?:\/\//, '');
}
