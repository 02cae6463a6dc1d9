// Writes what the origin tells everybody that it sells: `/openapi.json` and `/llms.txt`, made once for each change of
// the routes and written around the origin that a request names. It is plain data: a thread makes it, and workers are
// handed it.
import { createHash } from 'node:crypto';
import type { Pattern } from '../routing/pattern.ts';
import type { Resolution } from '../routing/resolve.ts';
import type { Route } from '../routing/route.ts';
import { writeLlmsText } from './llms-text.ts';
import type { OwnerDocument } from './owner-document.ts';
import { firstPrice, passesOf, type PublishedPrices } from './published-price.ts';
import { titleOf, writePaths, type WrittenPaths } from './public-openapi.ts';
import {
  createSale,
  type OmittedOperation,
  type Sale,
  type SaleRoute,
  type SampleRequest,
  type SaleList,
} from './sold-operations.ts';

export type Publication = {
  readonly openapi: string;
  /** Title; undefined: the host of the origin. */
  readonly title: string | undefined;
  readonly version: string;
  readonly contact: string | undefined;
  readonly guidance: string;
  readonly docsUrl: string | undefined;
  /** Text of the document's other members, as JSON. */
  readonly rest: string;
  /** The owner's own text, or what follows the title, around the origin. */
  readonly llms: string | readonly string[];
  /** Digest of everything that is published. */
  readonly digest: string;
};

export type PublicationReport = {
  readonly operations: readonly Pick<Price, 'method' | 'path' | 'amount' | 'currency'>[];
  /** The first routes and operations that were left out. */
  readonly leftOut: readonly OmittedOperation[];
  readonly leftOutCounts: SaleList['leftOutCounts'];
  /** Paths of ours that a route covers. `by`: in words. */
  readonly taken: readonly { readonly path: string; readonly by: string }[];
  /** Operations that a document of the largest size has no room for. */
  readonly cut: number;
  readonly without: WrittenPaths['without'];
  /** Size of `/openapi.json` at an origin of usual length. */
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
  /** Header that names who asks, if a route does not take anybody. */
  readonly customerHeader: string;
  /** Networks with their tokens, by receiver. Undefined: nobody can pay to it. */
  readonly ways: ReadonlyMap<string, readonly string[]>;
  /** Plans that sell otherwise than by the price of a route; left out: there are none. */
  readonly prices?: PublishedPrices | undefined;
};

export const OPENAPI_PATH = '/openapi.json';
export const LLMS_PATH = '/llms.txt';
/** Largest size of `/openapi.json`. */
export const MOST_BYTES = 1024 * 1024;
/** Size of a document that crawlers read, at most. */
export const CRAWLED_BYTES = 64 * 1024;

const ORIGIN_BYTES = 'https://'.length + 255 + ':65535'.length;
const LONGEST_ORIGIN = `https://${'x'.repeat(ORIGIN_BYTES - 8)}`;
const USUAL_ORIGIN = 'https://api.example.com';
/** Number of operations that the guidance names. */
const NAMED = 5;
const NO_PRICES: PublishedPrices = new Map();
const MOST_ASKED = 50;

export type MadePublication = { readonly publication: Publication; readonly report: PublicationReport };

/** Name of a route that covers a path of ours. */
export type TakenPath = PublicationReport['taken'][number];

export type PublicationDraft = Pick<Sale, 'add' | 'questions'> & {
  /** Finishes the publication. `winners` has, for each question, the active route that it pays for. */
  readonly finish: (winners: readonly (Route | undefined)[], taken: readonly TakenPath[]) => MadePublication;
};

export function draftPublication(settings: PublicationSettings, owner: OwnerDocument | undefined): PublicationDraft {
  const { add, questions, close } = createSale(owner?.operations ?? [], settings.exclude);
  return { add, questions, finish: (winners, taken) => write(settings, owner, close(winners), taken) };
}

/** Makes the publication at once. `resolve` looks routes up as the proxy does. */
export function publish(
  draft: PublicationDraft,
  routes: readonly Route[],
  resolve: RouteLookup,
  isPayable: (route: Route) => boolean,
): MadePublication {
  for (const route of routes) draft.add(saleRouteOf(route, isPayable(route)));
  return draft.finish(
    draft.questions().map((question) => winnerOf(question, resolve)),
    takenPaths(resolve),
  );
}

export function saleRouteOf({ id, method, pattern, status }: Route, isPayable: boolean): SaleRoute {
  return { id, method, pattern, isActive: status === 'active', isPayable };
}

type RouteLookup = (method: string, path: string) => Resolution;

/** The active route that a request pays for. */
export function winnerOf({ method, path }: SampleRequest, resolve: RouteLookup): Route | undefined {
  const resolution = resolve(method, path);
  if (!resolution.ok || resolution.match.kind !== 'route') return undefined;
  const { route } = resolution.match;
  return route.status === 'active' ? route : undefined;
}

function write(
  { title, contact, docsUrl, customerHeader, llms: ownText, ways, prices = NO_PRICES }: PublicationSettings,
  owner: OwnerDocument | undefined,
  sold: SaleList,
  taken: readonly TakenPath[],
): MadePublication {
  const titles = new Set(sold.operations.slice(0, MOST_ASKED).map(titleOf));
  const told = [...titles].slice(0, NAMED).join('; ');
  const of = title ?? owner?.title;
  const hasPasses = sold.operations.some(({ route }) => passesOf(route, prices).length > 0);
  const head = {
    openapi: owner?.openapi ?? '3.1.0',
    title: of,
    version: owner?.version ?? '1.0.0',
    contact,
    guidance: `${of ?? 'This API'} sells ${told === '' ? 'nothing at the moment' : `${told}${titles.size > NAMED ? '; and more' : ''}`}. ${HOW_TO_PAY}${hasPasses ? HOW_TO_PASS : ''}`,
    docsUrl,
  };
  const around = Buffer.byteLength(writeHead(head, LONGEST_ORIGIN)) + 2;
  const written = writePaths(
    sold.operations,
    { components: owner?.components, customerHeader, prices },
    MOST_BYTES - around,
  );
  const receivers = new Set(written.operations.map(({ route }) => route.receiverConfigId ?? 'default'));
  const llms =
    ownText ??
    writeLlmsText({
      operations: written.operations,
      sold: sold.total,
      ways: [...new Set([...receivers].flatMap((id) => ways.get(id) ?? []))],
      docsUrl,
      prices,
    });
  const digest = createHash('sha256')
    .update(JSON.stringify([head, written.text, llms]))
    .digest('base64url');
  return {
    publication: { ...head, rest: written.text, llms, digest: digest.slice(0, 22) },
    report: {
      operations: written.operations.map(({ method, path, route }) => {
        const price = firstPrice(route, prices);
        const amount = 'amount' in price ? price.amount : route.amount;
        return { method, path, amount, currency: route.currency };
      }),
      leftOut: sold.leftOut,
      leftOutCounts: sold.leftOutCounts,
      taken,
      cut: sold.total - written.operations.length,
      without: written.without,
      bytes: Buffer.byteLength(writeHead(head, USUAL_ORIGIN)) + 2 + written.bytes,
    },
  };
}

/** The paths of ours that a route covers. */
export function takenPaths(resolve: RouteLookup): readonly TakenPath[] {
  return [OPENAPI_PATH, LLMS_PATH].flatMap((path) => takenBy(path, resolve));
}

function takenBy(path: string, resolve: RouteLookup): readonly TakenPath[] {
  const resolution = resolve('GET', path);
  if (!resolution.ok || resolution.match.kind === 'none') return [];
  const { match } = resolution;
  const route = match.kind === 'route' ? match.route : match.highestPriced;
  return [{ path, by: route === undefined ? 'a paused route' : `the route ${route.method} ${route.pattern}` }];
}

const HOW_TO_PAY =
  'Each request is paid by itself by x402 version 2, without an account. Send it without a payment: the answer is 402 and names price and ways to pay in the header PAYMENT-REQUIRED (base64 of JSON). Sign a payment for one entry of its accepts and send the same request again with it in the header PAYMENT-SIGNATURE; the receipt comes in PAYMENT-RESPONSE. If an answer is lost, send the very same request again: it is not charged twice. After a 503 send the same request with the same payment again when Retry-After says so.';

const HOW_TO_PASS =
  ' Entries of accepts with extra.pass sell a pass for many requests: the answer that it is bought with carries the header Tollgate-Pass, and later requests that send it cost nothing more.';

type PublicDocuments = { readonly openapi: string; readonly llms: string };

/** Renders the documents as clients at `origin` (scheme and authority) get them. */
export function renderPublication(publication: Publication, origin: string): PublicDocuments {
  const { rest, llms, title } = publication;
  return {
    openapi: `${writeHead(publication, origin)},${rest}}`,
    llms: typeof llms === 'string' ? llms : `# ${title ?? hostOf(origin)}\n\n${llms.join(origin)}`,
  };
}

type Head = Pick<Publication, 'openapi' | 'title' | 'version' | 'contact' | 'guidance' | 'docsUrl'>;

/** Writes the document as JSON without its last brace. */
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
