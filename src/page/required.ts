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
  readonly extra: Readonly<Record<string, string>>;
};

/** A way as the page shows it. */
export type PricedWay = { readonly way: PageWay; readonly accept: Pick<Accept, 'amount'> };
/** A way as a 402 asks for it now. */
export type Choice = PricedWay & { readonly accept: Accept };

export function shownChoices({ ways }: PageData): readonly PricedWay[] {
  return ways.map((way) => ({ way, accept: way }));
}

/** The ways that are asked for now and that this page knows; none if `header` cannot be read. */
export function readChoices(header: string | null, { ways }: PageData): readonly Choice[] {
  const { accepts = [] } = (readBase64Json(header) ?? {}) as { readonly accepts?: readonly Accept[] };
  return accepts.flatMap((accept) => {
    const way = ways.find((each) => isSameWay(each, accept));
    return way === undefined ? [] : [{ way, accept }];
  });
}

export function isSameWay(one: NamedWay, other: NamedWay): boolean {
  return one.network === other.network && one.asset === other.asset && one.payTo === other.payTo;
}

type NamedWay = Pick<PageWay, 'network' | 'asset' | 'payTo'>;

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
