// The page for people: one document that holds all it needs. A browser gets it in place of a 402's JSON. What an offer
// fixes is written once; a request only puts its host, path and PAYMENT-REQUIRED in between. It holds what the 402
// says, when money is charged, and the `page` section, and nothing else of the configuration.
import { createHash } from 'node:crypto';
import type { Offer, OfferedWay } from '../../domain/offer.ts';
import type { OwnResponse } from '../../host/respond.ts';
import { readPageAssets, type PageAssets } from './assets.ts';
import { moneyItems, pageData, pageWay, wayItem, type KnownNetworks } from './facts.ts';
import { html, jsonInHtml } from './html.ts';

/** The `page` section of the configuration. */
export type PageSection = {
  readonly name: string | undefined;
  /** A data URL. */
  readonly logo: string | undefined;
  /** `#rrggbb`. */
  readonly accent: string;
  readonly support: string | undefined;
  readonly termsUrl: string | undefined;
  readonly privacyUrl: string | undefined;
};

type PageFacts = {
  readonly offer: Offer;
  /** Those that the 402 shows: the same list for as long as it shows the same. */
  readonly ways: readonly OfferedWay[];
  /** The value of PAYMENT-REQUIRED. */
  readonly required: string;
  readonly publicOrigin: string;
  readonly path: string;
  readonly reason: string;
};

/** `headers` are added. */
export type Page = (facts: PageFacts, headers: readonly string[]) => OwnResponse;

/** Characters that are shown of a path, and of a description. */
const SHOWN = 160;
const DESCRIBED = 256;

export function createPage(section: PageSection, networks: KnownNetworks, assets = readPageAssets): Page {
  let frame: Frame | undefined;
  const known = new WeakMap<readonly OfferedWay[], readonly string[]>();
  return ({ offer, ways, required, publicOrigin, path, reason }, added) => {
    frame ??= createFrame(section, assets());
    let pieces = known.get(ways);
    if (pieces === undefined) known.set(ways, (pieces = fit(frame, section, offer, ways, networks).split(HOLE)));
    const host = html(publicOrigin.slice(publicOrigin.indexOf('//') + 2));
    const url = html(quoted(publicOrigin + path));
    const values: Readonly<Record<string, string>> = { host, path: html(cut(path, SHOWN)), url, required };
    let body = '';
    pieces.forEach((piece, index) => (body += index % 2 === 0 ? piece : values[piece]));
    return {
      status: 402,
      headers: [...frame.headers, 'PAYMENT-REQUIRED', required, 'Tollgate-Reason', reason, ...added],
      body,
      bodyBytes: Buffer.byteLength(body),
    };
  };
}

const PAGE_BYTES = 65_536;
/** What a request puts in at most: PAYMENT-REQUIRED, its host three times, its path and URL as HTML. */
const ROOM = 3072 + 3 * 261 + 2 * 5 * SHOWN;

/** Around the name of what each request puts there. */
const HOLE = '\u0000';
const hole = (name: 'host' | 'path' | 'url' | 'required'): string => HOLE + name + HOLE;

/** What is the same for every offer. */
type Frame = { readonly head: string; readonly script: string; readonly headers: readonly string[] };

function createFrame({ accent }: PageSection, { script, style }: PageAssets): Frame {
  const styles = `${style}:root{--accent:${accent};--on-accent:${textOn(accent)}}`;
  const policy = [
    `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(styles)}'; img-src data: blob:; connect-src 'self'`,
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ];
  return {
    head: `<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,"><style>${styles}</style>`,
    script: `<script>${script}</script>`,
    headers: [
      ...['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-store'],
      ...['X-Content-Type-Options', 'nosniff', 'Referrer-Policy', 'no-referrer', 'X-Frame-Options', 'DENY'],
      ...['Content-Security-Policy', policy.join('; ')],
    ],
  };
}

/** The logo is what a page can do without. */
function fit(
  frame: Frame,
  section: PageSection,
  offer: Offer,
  ways: readonly OfferedWay[],
  networks: KnownNetworks,
): string {
  const whole = write(frame, section, offer, ways, networks);
  if (Buffer.byteLength(whole) <= PAGE_BYTES - ROOM) return whole;
  return write(frame, { ...section, logo: undefined }, offer, ways, networks);
}

function write(
  { head, script }: Frame,
  section: PageSection,
  offer: Offer,
  ways: readonly OfferedWay[],
  networks: KnownNetworks,
): string {
  const { route } = offer;
  const price = `${route.amount} ${route.currency}`;
  const owner = section.name === undefined ? hole('host') : html(section.name);
  const shown = ways.map((offered) => ({ offered, way: pageWay(offered, networks) }));
  const items = shown.map(({ offered, way }) => wayItem(offered, way, networks.isPaidInBrowser(way.network)));
  const isTest = shown.every(({ way }) => way.testnet);
  const data = pageData(
    offer,
    shown.map(({ way }) => way),
    networks,
    HOLE,
  );
  const [before = '', after = ''] = jsonInHtml(data).split(jsonInHtml(HOLE).slice(1, -1));
  return [
    `<!doctype html><html lang="en"><head>${head}<title>${html(price)} - ${owner}</title></head><body>`,
    `<header class="top">${brand(section, owner)}${isTest ? '<span class="tag">test network: no real money</span>' : ''}</header>`,
    '<main><div class="what">',
    `<p class="eyebrow" id="state">Payment required</p>${heading(offer)}`,
    `<p class="price"><span class="amount">${html(route.amount)}</span> <span class="currency">${html(route.currency)}</span> <span class="per">for one request</span></p>`,
    `<h2>${ways.length === 1 ? 'How it is paid' : 'Ways to pay'}</h2><ul class="ways">${items.join('')}</ul></div>`,
    '<section class="pay" id="pay" aria-label="Pay"><noscript><h2>Paying needs JavaScript</h2><p>All that is asked for stands on this page. To pay in a browser, allow JavaScript here and load the page again; programs pay without a browser.</p></noscript></section>',
    `<section class="more"><h2>What happens to your money</h2><ol class="money">${moneyItems(offer, ways)}</ol>`,
    `<details><summary>For programs</summary><p>Any x402 client pays this address, such as <code>@x402/fetch</code>. By hand, the first request answers 402 and <code>PAYMENT-REQUIRED</code> (base64 of JSON); the second one carries the signed payment:</p><pre tabindex="0" role="region" aria-label="Commands"><code>URL=<span id="url">${hole('url')}</span>\ncurl -i "$URL"\ncurl -i "$URL" -H "PAYMENT-SIGNATURE: $SIGNED"</code></pre></details></section>`,
    `</main><footer>${footer(section)}<span>${hole('host')}</span></footer>`,
    `<script type="application/json" id="data">${before}${hole('required')}${after}</script>${script}</body></html>`,
  ].join('');
}

/** A route without a description is called by its path. */
function heading({ route, description }: Offer): string {
  const request = `<code>GET ${hole('path')}</code>`;
  return route.description || route.name
    ? `<h1>${html(cut(description, DESCRIBED))}</h1><p class="request">${request}</p>`
    : `<h1>${request}</h1>`;
}

function brand({ logo, name }: PageSection, owner: string): string {
  if (logo === undefined) return `<p class="brand">${owner}</p>`;
  return `<p class="brand"><img src="${logo}" alt="" height="32">${name === undefined ? hole('host') : html(name)}</p>`;
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

/** `url` as one word of a shell; of one that is too long the beginning, which the program of the page completes. */
function quoted(url: string): string {
  return `'${url
    .slice(0, SHOWN)
    .replaceAll("'", "'\\''")
    .slice(0, 2 * SHOWN)}'`;
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

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
