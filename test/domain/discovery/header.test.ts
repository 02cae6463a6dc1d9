// `bazaar` in PAYMENT-REQUIRED: whole where there is room, without the example of the answer where there is less, and not at
// all where there is none; the same for all requests of one listing, and never more than a proxy takes.
import { expect, test } from 'vitest';
import type { Listing } from '../../../src/domain/discovery/listing.ts';
import { makeOffer } from '../../../src/domain/payment/offer.ts';
import { createPaymentRequired } from '../../../src/domain/payment/payment-required.ts';
import { RECEIVERS, requirement } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';
import { discoveryOf } from './kit.ts';

const REPORT = route('GET /reports/* 0.10', { description: 'A report' });
const made = makeOffer(REPORT, RECEIVERS);
if ('code' in made) throw new Error(made.detail);
const OFFER = made;
const render = createPaymentRequired({ v1: false, requirement });

function listingOf(exampleLength: number, inputLength = 1): Listing {
  const listing = discoveryOf(
    `openapi: 3.0.0
paths:
  /reports/q3:
    get:
      parameters: [{ name: a, in: query, schema: { type: string }, example: ${'i'.repeat(inputLength)} }]
      responses: { "200": { content: { application/json: { schema: { type: string }, example: ${'o'.repeat(exampleLength)} } } } }
`,
  ).listingOf(REPORT, 'GET', '/reports/q3');
  if (listing === undefined) throw new Error('not listed');
  return listing;
}

function header(
  listing: Listing | undefined,
  url = 'https://api.example.com/reports/q3',
): { text: string; shown: unknown } {
  const { origin, pathname } = new URL(url);
  const rendered = render({
    ...{ offer: OFFER, listing, method: 'GET', origin, path: pathname, reason: 'x402_version_unsupported' },
    chargeId: { signed: `chg_${'s'.repeat(96)}`, nonce: 'n'.repeat(16) },
  });
  if (rendered === undefined) throw new Error('nothing to offer');
  const { extensions } = JSON.parse(Buffer.from(rendered.header, 'base64').toString()) as { extensions?: unknown };
  return { text: rendered.header, shown: extensions };
}

const URL_256 = `https://api.example.com/${'p'.repeat(256 - 24)}`;
const parts = (listing: Listing): readonly unknown[] =>
  listing.bazaar.map((text): unknown => ({ bazaar: JSON.parse(text) as unknown }));

test('behaviour: a listing is whole while there is room, then without its example, then gone; the header stays in its limits', () => {
  const seen: string[] = [];
  for (const [exampleLength, inputLength] of [
    ...Array.from({ length: 60 }, (_, step) => [1 + step * 20, 1] as const),
    ...Array.from({ length: 60 }, (_, step) => [1_200, 1 + step * 20] as const),
  ]) {
    const listing = listingOf(exampleLength, inputLength);
    const { text, shown } = header(listing, URL_256);
    expect(text.length).toBeLessThanOrEqual(3072);
    const which = ['whole', 'less'][parts(listing).findIndex((part) => JSON.stringify(part) === JSON.stringify(shown))];
    expect(which === undefined).toBe(shown === undefined);
    if (seen.at(-1) !== (which ?? 'gone')) seen.push(which ?? 'gone');
    // What is shown does not depend on the URL of a request.
    expect(header(listing).shown).toEqual(shown);
    expect(header(listing, `${URL_256}${'p'.repeat(2_000)}`).text.length).toBeLessThanOrEqual(4096);
  }
  expect(seen).toEqual(['whole', 'less', 'gone']);
});

test('behaviour: a header without a listing has no extensions, and what is written for one is not given for another', () => {
  const [one, two] = [listingOf(1), listingOf(2)];
  for (const listing of [one, undefined, two, one, two, undefined])
    expect(header(listing).shown).toEqual(listing && parts(listing)[0]);
});
