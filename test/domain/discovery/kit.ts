// OpenAPI documents as text, read as the program reads them; and what the reference says of the bazaar made of them.
import {
  extractDiscoveryInfo,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { readDocumentOf } from '../../../src/config/document.ts';
import { createDiscovery, type Discovery, type Listing } from '../../../src/domain/discovery/listing.ts';
import { readOpenApi, type OpenApi, type Remark } from '../../../src/domain/discovery/openapi.ts';
import { parsePattern, type Pattern } from '../../../src/domain/routing/pattern.ts';

export function readText(text: string): OpenApi | Remark {
  const document = readDocumentOf({ name: 'OpenAPI document', maxValues: 100_000, env: undefined }, text);
  return (
    document.syntax[0] ??
    readOpenApi(
      document.data,
      (path) => document.locate(path, 'key').line,
      (work) => ({ value: work() }),
    )
  );
}

export function descriptionOf(text: string): OpenApi {
  const read = readText(text);
  if (!('operations' in read)) throw new Error(read.message);
  return read;
}

export function patternOf(text: string): Pattern {
  const parsed = parsePattern(text);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.pattern;
}

export function discoveryOf(text: string, exclude: readonly string[] = []): Discovery {
  const { operations } = descriptionOf(text);
  return createDiscovery({ service: {}, exclude: exclude.map(patternOf), operations });
}

export type Bazaar = {
  readonly info: {
    readonly input: { readonly method: string } & Readonly<Record<string, unknown>>;
    readonly output?: { readonly example: unknown };
  };
  readonly schema: { readonly properties: Readonly<Record<string, Record<string, unknown>>> };
  readonly routeTemplate?: string;
};

/** The whole one, after the reference has found nothing wrong with any of its forms. */
export function bazaarOf(listing: Listing | undefined): Bazaar | undefined {
  if (listing === undefined) return undefined;
  const all = listing.bazaar.map((text) => JSON.parse(text) as Bazaar);
  for (const bazaar of all) assertReference(bazaar);
  return all[0];
}

/** Throws if the reference would not list it. */
export function assertReference(bazaar: Bazaar): void {
  const extension = bazaar as never;
  const judged = [validateDiscoveryExtension(extension), validateDiscoveryExtensionSpec(extension)];
  const wrong = judged.flatMap(({ errors = [] }) => errors);
  if (wrong.length > 0 || !judged.every(({ valid }) => valid)) throw new Error(wrong.join('; '));
  const payload = { x402Version: 2, resource: { url: 'https://api.example.com/a' }, extensions: { bazaar } };
  const listed = extractDiscoveryInfo(payload as never, {} as never);
  if (listed?.resourceUrl !== `https://api.example.com${bazaar.routeTemplate ?? '/a'}`)
    throw new Error(`listed as ${String(listed?.resourceUrl)}`);
}
