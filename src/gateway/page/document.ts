// The page for people: one document that holds all it needs. A browser gets it in place of a 402's JSON. The frame (style,
// logo and program, nearly all of its bytes) is made once. What differs by route is written for each request, and nothing
// of it is kept. It holds what the 402 says and for how long, when money is charged, and the `page` section, and nothing
// else of the configuration.
import type { Offer, OfferedWay } from '../../domain/payment/offer.ts';
import { passGives } from '../../domain/selling/pass-words.ts';
import type { OwnResponse } from '../../host/respond.ts';
import { html, jsonInHtml } from '../../host/html.ts';
import type { PageAssets } from '../../host/page-assets.ts';
import { pageHeaders } from '../../host/page-headers.ts';
import { readPageAssets } from './assets.ts';
import { moneyItems, pageData, pageWay, passSection, wayItem, type KnownNetworks, type SoldOffers } from './facts.ts';
import { programLines } from './programs.ts';

/** The `page` section of the configuration. */
export type PageSection = {
  readonly name: string | undefined;
  /** A data URL. */
  readonly logo: string | undefined;
  /** Colour as `#rrggbb`. */
  readonly accent: string;
  readonly support: string | undefined;
  readonly termsUrl: string | undefined;
  readonly privacyUrl: string | undefined;
};

type PageFacts = SoldOffers & {
  /** Ways that the 402 shows. */
  readonly ways: readonly OfferedWay[];
  /** The value of PAYMENT-REQUIRED. */
  readonly required: string;
  readonly publicOrigin: string;
  readonly path: string;
  readonly reason: string;
};

/** Makes the page. `headers` are added to its own. */
export type Page = (facts: PageFacts, headers: readonly string[]) => OwnResponse;

/** Characters that are shown of a path, a description and a host. */
const SHOWN = 160;
const DESCRIBED = 256;
const HOST = 100;
const PAGE_BYTES = 65_536;

type PageOptions = {
  readonly section: PageSection;
  readonly networks: KnownNetworks;
  readonly quoteTtlMs: number;
  readonly assets?: () => PageAssets;
};

export function createPage(options: PageOptions): Page {
  const { section, assets = readPageAssets } = options;
  let frame: Frame | undefined;
  return (facts, added) => {
    frame ??= createFrame(section, assets());
    const { logo } = frame;
    let pieces = write(frame, options, facts, logo);
    let bodyBytes = sizeOf(pieces);
    // The logo is what a page can do without.
    if (bodyBytes > PAGE_BYTES && logo !== undefined) {
      pieces = write(frame, options, facts, undefined);
      bodyBytes = sizeOf(pieces);
    }
    const { required, reason } = facts;
    return {
      status: 402,
      headers: [...frame.headers, 'PAYMENT-REQUIRED', required, 'Tollgate-Reason', reason, ...added],
      body: Buffer.concat(pieces, bodyBytes),
      bodyBytes,
    };
  };
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Parts that are the same for every offer, as they are sent. */
type Frame = {
  readonly head: Buffer;
  readonly logo: Buffer<ArrayBuffer> | undefined;
  readonly script: Buffer;
  readonly headers: readonly string[];
};

function createFrame({ accent, logo }: PageSection, { script, style }: PageAssets): Frame {
  const styles = `${style}:root{--accent:${accent};--on-accent:${textOn(accent)}}`;
  return {
    head: Buffer.from(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,"><style>${styles}</style>`,
    ),
    logo: logo === undefined ? undefined : Buffer.from(`<img src="${logo}" alt="" height="32">`),
    script: Buffer.from(`<script>${script}</script></body></html>`),
    headers: pageHeaders({ script, style: styles }),
  };
}

const NO_LOGO = Buffer.alloc(0);

function write(
  frame: Frame,
  { section, networks, quoteTtlMs }: PageOptions,
  { publicOrigin, path, ways, ...sold }: PageFacts,
  logo = NO_LOGO,
): readonly Buffer[] {
  const { offer } = sold;
  const { route, amount } = offer;
  const price = `${amount} ${route.currency}`;
  const host = html(cut(publicOrigin.slice(publicOrigin.indexOf('//') + 2), HOST));
  const owner = section.name === undefined ? host : html(section.name);
  const shown = ways.map((offered) => ({ offered, way: pageWay(offered, networks) }));
  const isPaidHere = ({ way }: { readonly way: { readonly network: string } }): boolean =>
    networks.isPaidInBrowser(way.network);
  const items = shown.map((each) => wayItem(each.offered, each.way, isPaidHere(each)));
  const isTest = shown.every(({ way }) => way.testnet);
  const data = pageData(sold, shown, { networks, quoteTtlMs });
  const per = offer.pass === undefined ? 'one request' : passGives(offer.pass.terms, route.currency);
  const title = `<title>${html(price)} - ${owner}</title></head><body><header class="top"><p class="brand">`;
  const rest = [
    `${owner}</p>${isTest ? '<span class="tag">test network: no real money</span>' : ''}</header>`,
    `<main><div class="what"><p class="eyebrow" id="state">Payment required</p>${heading(offer, html(cut(path, SHOWN)))}`,
    `<p class="price"><span class="amount">${html(amount)}</span> <span class="currency">${html(route.currency)}</span> <span class="per">for ${html(per)}</span></p></div>`,
    '<section class="pay" id="pay" aria-label="Pay"><noscript><h2>Paying needs JavaScript</h2><p>Allow it here and load the page again, or let a program pay: see below.</p></noscript></section>',
    `<section class="offer"><h2>${ways.length === 1 ? 'How it is paid' : 'Ways to pay'}</h2><ul class="ways">${items.join('')}</ul></section>${passSection(sold)}`,
    `<section class="more"><div class="steps"><h2>What happens to your money</h2><ol class="money">${moneyItems(offer, ways)}</ol></div>`,
    programLines((publicOrigin + path).slice(0, SHOWN), shown.some(isPaidHere) || shown.length === 0),
    `</section></main><footer>${footer(section)}<span>${host}</span></footer>`,
    `<script type="application/json" id="data">${jsonInHtml(data)}</script>`,
  ].join('');
  return [frame.head, Buffer.from(title), logo, Buffer.from(rest), frame.script];
}

/** A route without a description is called by its path. */
function heading({ route, description }: Offer, path: string): string {
  const request = `<code>GET ${path}</code>`;
  return route.description || route.name
    ? `<h1>${html(cut(description, DESCRIBED))}</h1><p class="request">${request}</p>`
    : `<h1>${request}</h1>`;
}

function footer({ support, termsUrl, privacyUrl }: PageSection): string {
  const links: readonly (readonly [text: string, url: string | undefined])[] = [
    ['Support', support],
    ['Terms', termsUrl],
    ['Privacy', privacyUrl],
  ];
  return links
    .flatMap(([text, url]) => (url === undefined ? [] : [`<a href="${html(url)}" rel="noreferrer">${text}</a>`]))
    .join('');
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}...`;
}

/** Black or white, whichever reads better on `accent` (WCAG 2.2, relative luminance). */
function textOn(accent: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) =>
    linear(Number.parseInt(accent.slice(at, at + 2), 16) / 255),
  );
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? '#000' : '#fff';
}

function linear(channel: number): number {
  return channel <= 0.040_45 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}
