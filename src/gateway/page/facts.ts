// The facts of an offer as the page for people shows them: in HTML for browsers without scripts, and as data for the
// page's program. They are what the 402 says, when money is charged, and public facts about networks.
import type { KnownNetwork } from '../../domain/payment/network.ts';
import type { Offer, OfferedWay } from '../../domain/payment/offer.ts';
import { tokenAmount, type PageData, type PageWay } from '../../domain/payment/page-data.ts';
import { passGives } from '../../domain/selling/pass-words.ts';
import { html } from '../../host/html.ts';

export type KnownNetworks = {
  /** Finds a network by its CAIP-2 name. */
  readonly find: (network: string) => KnownNetwork | undefined;
  /** Whether the page has the words for a wallet of that network. */
  readonly isPaidInBrowser: (network: string) => boolean;
};

/** A way as it is offered, and as the page shows it. */
export type WayOnPage = { readonly offered: OfferedWay; readonly way: PageWay };

/** Makes the page's data. `shown` are all ways, in which `offer` and the passes beside it may be paid. */
export function pageData(
  { offer, passes = [], cookie = false }: SoldOffers,
  shown: readonly WayOnPage[],
  { networks, quoteTtlMs }: { readonly networks: KnownNetworks; readonly quoteTtlMs: number },
): PageData {
  const here = shown.filter(({ way }) => networks.isPaidInBrowser(way.network));
  // A browser has no use for a pass that it cannot keep; the first price is paid anyway.
  const sold = passes.filter((each) => isKeptPass(each, cookie));
  const gives = offer.pass === undefined && sold.length > 0 ? { gives: ' for one request' } : passWords(offer, cookie);
  const first = here.map(({ way }) => ({ ...way, ...gives }));
  return { ways: [...first, ...sold.flatMap((each) => passWays(each, here, cookie))], quoteTtlMs };
}

/** The first price of a 402, and the passes that stand beside it. `cookie`: browsers keep passes by seconds. */
export type SoldOffers = {
  readonly offer: Offer;
  readonly passes?: readonly Offer[] | undefined;
  readonly cookie?: boolean | undefined;
};

function isKeptPass({ pass }: Offer, cookie: boolean): boolean {
  return cookie && pass?.terms.kind === 'seconds';
}

/** What the ways of a price say of the pass that it buys. */
function passWords(offer: Offer, cookie: boolean): Pick<PageWay, 'pass' | 'gives' | 'keeps'> {
  const { pass, route } = offer;
  if (pass === undefined) return {};
  const given = passGives(pass.terms, route.currency);
  const words = { pass: pass.terms.id, gives: ` for ${given}` };
  if (!isKeptPass(offer, cookie)) return words;
  return { ...words, keeps: `${given}, kept by this browser` };
}

/** The ways in which a pass beside the first price may be paid. */
function passWays(offer: Offer, here: readonly WayOnPage[], cookie: boolean): readonly PageWay[] {
  return here.flatMap(({ offered, way }) => {
    const amount = offer.ways.find((each) => each.way === offered.way)?.amount;
    return amount === undefined ? [] : [{ ...way, amount: amount.toString(), ...passWords(offer, cookie) }];
  });
}

/** The section of the passes that stand beside the first price; empty if there are none. */
export function passSection({ passes = [], cookie = false }: SoldOffers): string {
  const items = passes.flatMap((offer) => {
    const { pass, amount, route } = offer;
    if (pass === undefined) return [];
    const where = pass.terms.scope === 'plan' ? '' : ', of this address alone';
    const note = isKeptPass(offer, cookie)
      ? ''
      : '<p class="note">Not by a click: <a href="#programs">a program buys this</a>.</p>';
    const price = `<strong>${html(amount)} ${html(route.currency)}</strong>`;
    return `<li><p>${price} for ${html(passGives(pass.terms, route.currency))}${where}</p>${note}</li>`;
  });
  return items.length === 0
    ? ''
    : `<section class="offer"><h2>Passes</h2><ul class="ways">${items.join('')}</ul></section>`;
}

export function pageWay({ way, amount }: OfferedWay, networks: KnownNetworks): PageWay {
  const { network, asset, payTo, decimals } = way;
  const known = networks.find(network);
  const token = known?.tokens.find(({ address }) => address.toLowerCase() === asset.toLowerCase());
  return {
    ...{ network, asset, payTo, amount: amount.toString(), decimals },
    ...{ symbol: token?.symbol ?? shorten(asset), testnet: known?.testnet ?? false },
    chainName: known === undefined ? network : titleOf(known.name),
    ...(known === undefined
      ? {}
      : {
          explorer: known.explorer,
          chain: { nativeCurrency: known.nativeCurrency, rpcUrls: known.rpcUrls.slice(0, 1) },
        }),
  };
}

/** Makes a title of a name: `base-sepolia` is Base Sepolia. */
function titleOf(name: string): string {
  const words = name.split('-').map((word) => (word.length < 4 && word !== 'sei' ? word.toUpperCase() : capital(word)));
  return words.join(' ');
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

function shorten(address: string): string {
  return address.length <= 14 ? address : `${address.slice(0, 6)}...${address.slice(-4)}`;
}

/** An item of the list of ways. */
export function wayItem(
  { way, amount }: OfferedWay,
  { symbol, chainName, testnet }: PageWay,
  isPaidHere: boolean,
): string {
  const money = `${tokenAmount(amount, way.decimals)} ${symbol}`;
  const test = testnet ? ' <span class="tag">test network</span>' : '';
  const note = isPaidHere ? '' : '<p class="note">Not by a click: <a href="#programs">a program pays this</a>.</p>';
  return `<li><p><strong>${html(money)}</strong> on ${html(chainName)}${test}</p><p class="to">to <code>${html(way.payTo)}</code></p>${note}</li>`;
}

/** Tells what happens to the money, in the order in which it happens. */
export function moneyItems({ receiver }: Offer, ways: readonly OfferedWay[]): string {
  const minutes = Math.max(...ways.map(({ way }) => way.timeoutSeconds)) / 60;
  const valid = minutes < 1 ? 'a minute' : minutes === 1 ? '1 minute' : `${Math.ceil(minutes)} minutes`;
  const signed = `You sign a permission in your wallet: this amount, once, to this address, within ${valid}. Signing costs no network fee and sends nothing by itself.`;
  const charged =
    receiver.settle === 'before_forward'
      ? 'The money moves first, then the request is answered. If the service fails (an error of 500 and above), ask again without paying again. Any other answer counts, &ldquo;not found&rdquo; included.'
      : 'The money moves when the service begins to answer with success. If it fails or refuses, nothing is charged. (Only a wallet whose earlier payments here failed afterwards is charged first.)';
  return [
    ['You sign.', signed],
    ['You are charged.', charged],
    [
      'You get the answer.',
      'If the connection breaks, this page asks again with the same signature, which is never charged twice, for up to 24 hours.',
    ],
    [
      'You see it here.',
      'What the answer holds is not known before. Text, JSON and images up to 5 MB are shown, another address as a link; everything else, web pages included, can be saved or opened.',
    ],
  ]
    .map(([title, text]) => `<li><strong>${title}</strong> ${text}</li>`)
    .join('');
}
