// Ways that a 402 asks for, read from its header PAYMENT-REQUIRED and joined with what the page knows of each. Ways
// from the document are only shown; only a price from a current 402 is signed.
import { tokenAmount, type PageData, type PageWay } from '../domain/payment/page-data.ts';

/** An entry of `accepts` (x402 version 2): sent back as it came. */
export type Accept = {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
  /** What it says beside its price: the token's names, the charge id, and the pass that it buys. */
  readonly extra: {
    readonly name?: string;
    readonly version?: string;
    readonly external_ref?: string;
    readonly pass?: { readonly id: string };
  };
};

/** A way as the page shows it. */
export type PricedWay = { readonly way: PageWay; readonly accept: Pick<Accept, 'amount'> };
/** A way as a 402 asks for it now. */
export type Choice = PricedWay & { readonly accept: Accept };

export function shownChoices({ ways }: PageData): readonly PricedWay[] {
  return ways.map((way) => ({ way, accept: way }));
}

/** The ways that are asked for now and that this page knows; none if `header` cannot be read. */
export function readChoices(header: string | null, data: PageData): readonly Choice[] {
  const { accepts = [] } = (readBase64Json(header) ?? {}) as { readonly accepts?: readonly Accept[] };
  return accepts.flatMap((accept) => {
    const way = wayOf(data, accept);
    return way === undefined ? [] : [{ way, accept }];
  });
}

/** The page's way that an entry is of; undefined: the page does not sell it. */
export function wayOf({ ways }: PageData, accept: Accept): PageWay | undefined {
  return ways.find((each) => isSameWay(each, accept));
}

/** Whether both are the same way and buy the same. */
export function isSameWay(one: NamedWay, other: NamedWay): boolean {
  return nameOf(one) === nameOf(other);
}

/** A way of the page, or an entry as it came. */
type NamedWay = Pick<PageWay, 'network' | 'asset' | 'payTo' | 'pass'> & Partial<Pick<Accept, 'extra'>>;

function nameOf({ network, asset, payTo, pass, extra }: NamedWay): string {
  return [network, asset, payTo, pass ?? extra?.pass?.id].join();
}

/** The amount, the token, and what is bought if that could be something else. */
export function bought(way: PageWay, atomic: string): string {
  return money(way, atomic) + (way.gives ?? '');
}

/** The amount and the token, `0.10 ABC`. */
export function money({ decimals, symbol }: PageWay, atomic: bigint | string): string {
  return `${tokenAmount(BigInt(atomic), decimals)} ${symbol}`;
}

/** JSON in base64 as headers carry it; undefined if it is none. */
export function readBase64Json(text: string | null): unknown {
  if (text === null) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0))));
  } catch {
    return undefined;
  }
}
