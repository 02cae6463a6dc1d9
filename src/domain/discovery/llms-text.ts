// Writes `/llms.txt`: what is sold and how it is paid, for programs that read prose. It is written around the origin, which
// each request names.
import { titleOf } from './public-openapi.ts';
import { passGives } from '../selling/pass-words.ts';
import { firstPrice, passesOf, sellsSingle, type PublishedPrices } from './published-price.ts';
import type { Route } from '../routing/route.ts';
import type { SoldOperation } from './sold-operations.ts';

type LlmsFacts = {
  readonly operations: readonly SoldOperation[];
  /** Number of operations that are sold; the list has fewer if they are many. */
  readonly sold: number;
  /** Networks with their tokens. */
  readonly ways: readonly string[];
  readonly docsUrl: string | undefined;
  readonly prices: PublishedPrices;
};

const MOST_LISTED = 200;

/** The text after its title; between the pieces stands the origin. */
export function writeLlmsText({ operations, sold, ways, docsUrl, prices }: LlmsFacts): readonly string[] {
  const listed = operations.slice(0, MOST_LISTED);
  const pieces: string[] = [];
  const hasPasses = listed.some(({ route }) => passesOf(route, prices).length > 0);
  const how = hasPasses ? 'Requests are paid one by one or by passes' : 'Each request is paid by itself';
  let text = `This API sells ${sold === 1 ? 'one operation' : `${sold} operations`}. ${how}, by x402 version 2: no account, no key, no contract.\n\n`;
  for (const each of listed) {
    const { method, path, route } = each;
    pieces.push(`${text}- [${escaped(titleOf(each))}](`);
    text = `${path.replace(/[()\s]/g, encodeURIComponent)}): ${method} ${path}, ${offersOf(route, prices).join(', or ')}\n`;
  }
  if (sold > listed.length) text += `\nThere are ${sold - listed.length} more.\n`;
  text += [
    '\n## How to pay\n',
    '1. Send the request without a payment. The answer is 402; its header `PAYMENT-REQUIRED` (base64 of JSON) names the price and the ways to pay.',
    '2. Sign a payment for one entry of its `accepts`, and send the same request again with that payment in the header `PAYMENT-SIGNATURE`. Clients such as `@x402/fetch` do this by themselves.',
    '3. The answer carries the receipt in the header `PAYMENT-RESPONSE`. If it is lost on the way, send the very same request again: it is not charged twice.',
    ...(hasPasses ? [PASS_STEP] : []),
    ...(ways.length === 0 ? [] : [`\nWays to pay: ${ways.join(', ')}.`]),
    ...(docsUrl === undefined ? [] : [`\nDocumentation: ${docsUrl}`]),
    '\nAll operations with their prices, as OpenAPI: ',
  ].join('\n');
  return [...pieces, text, '/openapi.json\n'];
}

const PASS_STEP =
  '4. A pass is one more entry of `accepts`, which says in `extra.pass` what it gives. The answer that it is bought with carries the header `Tollgate-Pass`: send that header with later requests, which cost nothing more until `Tollgate-Pass-Left` is used up.';

/** What can be bought for a request of a route, the first of it first. */
function offersOf(route: Route, prices: PublishedPrices): readonly string[] {
  const { currency } = route;
  const passes = passesOf(route, prices).map((pass) => `${pass.amount} ${currency} for ${passGives(pass, currency)}`);
  if (!sellsSingle(route, prices)) return passes;
  const price = firstPrice(route, prices);
  const amount = 'amount' in price ? price.amount : `${price.min} to ${price.max}`;
  return [`${amount} ${currency} per request`, ...passes];
}

/** Text of an owner inside a link of Markdown. */
function escaped(text: string): string {
  return text.replace(/[\\[\]<>`*_]/g, (character) => `\\${character}`);
}
